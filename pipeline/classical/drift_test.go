package classical

import (
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

// drifting returns a series of smooth days under gaps with a drift that is far steeper
// than what is left, and the complete last day.
func drifting() (s Series, truth []float32) {
	g := field.Grid{Lat: make([]float64, 24), Lon: make([]float64, 30)}
	for i := range g.Lat {
		g.Lat[i] = 40 + 0.05*float64(i)
	}
	for j := range g.Lon {
		g.Lon[j] = 28 + 0.05*float64(j)
	}
	s = Series{Grid: g}
	for day := range 8 {
		f := Frame{Time: time.Date(2024, 5, 1+day, 12, 0, 0, 0, time.UTC), Values: make([]float32, g.Len()), Drift: make([]float32, g.Len())}
		truth = make([]float32, g.Len())
		for c := range truth {
			i, j := float64(c/30), float64(c%30)
			f.Drift[c] = float32(math.Sin(i*0.9+2*float64(day)) * math.Cos(j*1.1-float64(day*day)))
			truth[c] = 3 + f.Drift[c] + float32(0.1*math.Sin(i/9+j/11))
			if f.Values[c] = truth[c]; (c%30+7*day)%30 < 12 {
				f.Values[c] = field.NaN()
			}
		}
		s.Frames = append(s.Frames, f)
	}
	return s, truth
}

// What the drift explains comes back in gaps, observed cells keep their bits, and the
// frames stay as they were.
func TestDriftIsTakenOutAndAddedAgain(t *testing.T) {
	s, truth := drifting()
	last := len(s.Frames) - 1
	before := slices.Clone(s.Frames[last].Values)
	o := DefaultOI(s.Grid)
	rms := func(s Series) float64 {
		e, err := o.Fill(s, last, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum, n := 0.0, 0.0
		for c, v := range s.Frames[last].Values {
			if v == v {
				if e.Mean[c] != v {
					t.Fatalf("observed cell %d is %v, was %v", c, e.Mean[c], v)
				}
				continue
			}
			d := float64(e.Mean[c] - truth[c])
			sum, n = sum+d*d, n+1
		}
		return math.Sqrt(sum / n)
	}
	plain := s
	plain.Frames = slices.Clone(s.Frames)
	for f := range plain.Frames {
		plain.Frames[f].Drift = nil
	}
	with, without := rms(s), rms(plain)
	if with > 0.1*without || with > 0.03 {
		t.Errorf("the error is %.4f with the drift and %.4f without", with, without)
	}
	for i, v := range s.Frames[last].Values {
		if v != before[i] && v == v {
			t.Fatal("a frame was changed")
		}
	}
}

// A drift of zeros, or of nothing but gaps, changes no bit.
func TestADriftOfNothingChangesNothing(t *testing.T) {
	s, _ := drifting()
	want := []Estimate{}
	for _, drift := range [][]float32{nil, make([]float32, s.Grid.Len()), slices.Repeat([]float32{field.NaN()}, s.Grid.Len())} {
		for f := range s.Frames {
			s.Frames[f].Drift = drift
		}
		e, err := DefaultOI(s.Grid).Fill(s, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
	}
	for _, e := range want[1:] {
		if !slices.Equal(e.Mean, want[0].Mean) || !slices.Equal(e.Sigma, want[0].Sigma) {
			t.Error("a drift of zeros gives another estimate")
		}
	}
}

// Tuning looks at what the drift leaves; errors are linear in the variables, and those of
// the target days only.
func TestMissesAreThoseOfTheTargetDays(t *testing.T) {
	s, _ := drifting()
	plain := s
	plain.Frames = slices.Clone(s.Frames)
	for f := range plain.Frames {
		plain.Frames[f].Drift = nil
	}
	tuning := DefaultTuning()
	tuning.Apart, tuning.Overlays = 0, 12
	others := make([][][]float32, 1)
	for _, f := range s.Frames {
		others[0] = append(others[0], f.Drift)
	}
	got, err := DefaultOI(s.Grid).Misses(t.Context(), plain, others, []int{2, 5}, tuning)
	if err != nil {
		t.Fatal(err)
	}
	var sums [2]float64
	for i, m := range got {
		if at := m.Time; !at.Equal(s.Frames[2].Time) && !at.Equal(s.Frames[5].Time) || len(m.By[0]) == 0 || len(m.By[1]) != len(m.By[0]) {
			t.Errorf("overlay %d is of %v with %d and %d cells", i, at, len(m.By[0]), len(m.By[1]))
		}
		for c, e := range m.By[0] {
			sums[0], sums[1] = sums[0]+(e-m.By[1][c])*(e-m.By[1][c]), sums[1]+e*e
		}
	}
	if sums[0] > 0.05*sums[1] {
		t.Errorf("squared errors are %g less the drift's own and %g with them", sums[0], sums[1])
	}
	_, with, err := Tune(t.Context(), s, tuning)
	if err != nil {
		t.Fatal(err)
	}
	if _, without, err := Tune(t.Context(), plain, tuning); err != nil || with.MSE > 0.05*without.MSE {
		t.Errorf("tuned MSE is %g with the drift and %g without (%v)", with.MSE, without.MSE, err)
	}
}

// Sources and covariates may both be there: without its drift an observation is as
// sure as before.
func TestADetrendedSeriesKeepsTheErrorsOfItsObservations(t *testing.T) {
	s, _ := drifting()
	errs := slices.Repeat([]float32{0.3}, s.Grid.Len())
	s.Frames[2].Errors = errs
	if got := s.Detrended().Frames[2].Errors; !slices.Equal(got, errs) {
		t.Errorf("%d errors are left of %d", len(got), len(errs))
	}
}
