package skill

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// errorSeries is a series of errors with log-normal, persistent weather.
func errorSeries(seed uint64, days int, level func(day int) float64) []float64 {
	const scatter, persistence = 0.4, 0.5 // as the daily errors of real chlorophyll have it, roughly
	random := rand.New(rand.NewPCG(seed, 1))
	all := make([]float64, days)
	weather := random.NormFloat64()
	for i := range all {
		all[i] = level(i) * math.Exp(scatter*weather)
		weather = persistence*weather + math.Sqrt(1-persistence*persistence)*random.NormFloat64()
	}
	return all
}

func TestDriftIsSeenAndWeatherIsNot(t *testing.T) {
	const worlds = 2000
	steady := func(int) float64 { return 0.15 }
	times := func(factor float64) func(day int) float64 {
		return func(day int) float64 {
			if day >= 60 {
				return 0.15 * factor
			}
			return 0.15
		}
	}
	alarms := func(level func(int) float64) (n int) {
		for seed := range uint64(worlds) {
			if DriftOf(errorSeries(seed, 74, level)).Alarm != "" {
				n++
			}
		}
		return n
	}
	n := [4]int{alarms(steady), alarms(times(2)), alarms(times(3)), alarms(times(0.5))}
	t.Logf("alarms in %d series: steady %d, doubled %d, tripled %d, halved %d", worlds, n[0], n[1], n[2], n[3])
	switch {
	case n[0] > worlds/100:
		t.Errorf("%d alarms in %d steady series, want at most one in a hundred", n[0], worlds)
	case n[1] < worlds/2 || n[2] < worlds*95/100:
		t.Errorf("a doubled error was seen in %d and a tripled one in %d of %d series, want half and nearly all within two weeks", n[1], n[2], worlds)
	case n[3] > 0:
		t.Errorf("%d alarms where the error fell", n[3])
	}
}

func TestDriftNeedsDaysAndSaysWhatItSaw(t *testing.T) {
	level := func(day int) float64 {
		if day >= 60 {
			return 0.5
		}
		return 0.1
	}
	if news := DriftOf(errorSeries(1, 20, level)); news.Alarm != "" || news.RecentDays != 14 || news.BeforeDays != 6 {
		t.Errorf("of twenty days: %+v, want no alarm", news)
	}
	if news := DriftOf(nil); news != (Drift{}) {
		t.Errorf("of nothing: %+v", news)
	}
	news := DriftOf(errorSeries(1, 74, level))
	if !strings.Contains(news.Alarm, "the last 14 scored days") || news.Recent < 3*news.Before {
		t.Errorf("news %+v", news)
	}
	flat := make([]float64, 74)
	for i := range flat {
		flat[i] = 0.2
	}
	if news := DriftOf(flat); news.Alarm != "" || math.IsNaN(news.Sigmas) {
		t.Errorf("of a series without scatter: %+v", news)
	}
}
