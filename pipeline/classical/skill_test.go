package classical

import (
	"flag"
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

var report = flag.Bool("report", false, "print the skill of all methods on the whole of the real chlorophyll")

var pacific = recording{file: "phytofit/pacific_modis_poly4_2021.nc", variable: "CHL", log10: true}

// estimates runs a method on all overlays of a trial and returns the errors
// of each.
func (t *trial) estimates(method func(s Series, target int) Estimate) [][]miss {
	all := make([][]miss, len(t.overlays))
	OI{}.each(len(t.overlays), func(i int) {
		l := t.overlays[i]
		e := method(t.covered(l))
		for _, c := range l.hidden {
			truth := t.series.Frames[l.target].Values[c]
			all[i] = append(all[i], miss{by: float64(e.Mean[c] - truth), sigma: float64(e.Sigma[c])})
		}
	})
	return all
}

// solved is estimates for an OI, at the cost of the hidden cells only.
func (t *trial) solved(o OI) [][]miss {
	all := make([][]miss, len(t.overlays))
	o.each(len(t.overlays), func(i int) { all[i] = t.missesOn(t.overlays[i], []OI{o})[0] })
	return all
}

// better returns by how much the MSE of a is below that of b in the mean of
// overlays, in standard errors of the paired differences.
func better(a, b [][]miss) float64 {
	var d []float32
	for i := range a {
		d = append(d, float32(score(b[i], 1).MSE-score(a[i], 1).MSE))
	}
	s := field.Summarise(d)
	if s.Std == 0 {
		return 0
	}
	return s.Mean / (s.Std / math.Sqrt(float64(s.N-1)))
}

func persist(s Series, target int) Estimate { return Persistence(s, target, 30*24*time.Hour) }

func TestOnRealChlorophyllOIBeatsPersistenceBeatsClimatology(t *testing.T) {
	// A stretch of coast. Offshore the order of the last two changes: there the
	// noise of a single observation exceeds the error of the mean.
	part := pacific
	part.row, part.col = 60, 165
	part.height, part.width, part.frames = 120, 120, 120
	s := part.load(t)
	tuning := DefaultTuning()
	tuning.Past, tuning.Overlays, tuning.Pixels = 30*24*time.Hour, 16, 60
	trial := newTrial(s, tuning, DefaultOI(s.Grid))
	oi, last, mean := trial.solved(DefaultOI(s.Grid)), trial.estimates(persist), trial.estimates(Climatology)
	all := func(m [][]miss) Score { return score(slices.Concat(m...), len(m)) }
	t.Logf("oi %+v\npersistence %+v\nclimatology %+v", all(oi), all(last), all(mean))
	if all(oi).MSE >= 0.6*all(last).MSE || all(last).MSE >= all(mean).MSE {
		t.Errorf("MSE of oi, persistence, climatology is %.4f, %.4f, %.4f", all(oi).MSE, all(last).MSE, all(mean).MSE)
	}
	if c := all(oi).Coverage90; c < 0.8 || c > 0.97 {
		t.Errorf("90 %% intervals of the untuned oi cover %.3f", c)
	}
}

// TestReportSkill prints the table of all methods; run it with -report -v.
func TestReportSkill(t *testing.T) {
	if !*report {
		t.Skip("prints a table: run with -report")
	}
	s := pacific.load(t)
	values := make([][]float32, len(s.Frames))
	for f := range s.Frames {
		values[f] = s.Frames[f].Values
	}
	variance := math.Pow(field.Summarise(values...).Std, 2)
	const day = 24 * time.Hour
	for _, window := range []struct{ past, future time.Duration }{{30 * day, 0}, {10 * day, 0}, {10 * day, 10 * day}} {
		tuning := DefaultTuning()
		tuning.Past, tuning.Future, tuning.Seed = window.past, window.future, 1
		tuned, _, err := Tune(t.Context(), s, tuning)
		if err != nil {
			t.Fatal(err)
		}
		tuning.Seed = 2 // not the overlays that chose the scales
		trial := newTrial(s, tuning, tuned)
		t.Logf("past %v, future %v, tuned %+v", window.past, window.future, tuned)
		base := trial.estimates(persist)
		crowded := DefaultOI(s.Grid)
		crowded.PerSector = crowded.Neighbours
		for _, row := range []struct {
			name   string
			misses [][]miss
		}{
			{"climatology", trial.estimates(Climatology)},
			{"persistence", base},
			{"oi, no sectors", trial.solved(crowded)},
			{"oi", trial.solved(DefaultOI(s.Grid))},
			{"oi, tuned", trial.solved(tuned)},
		} {
			sc := score(slices.Concat(row.misses...), len(row.misses))
			t.Logf("%-15s MSE %.4f  90%% covers %.3f  spread/skill %.3f  better than persistence by %.1f se  (%d overlays, %d cells)",
				row.name, sc.MSE/variance, sc.Coverage90, sc.SpreadSkill, better(row.misses, base), sc.Overlays, sc.Pixels)
		}
	}
}
