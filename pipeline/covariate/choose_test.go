package covariate

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/simulate"
)

// A simulatedSea is a series of the simulator with companions, and the complete truth.
type simulatedSea struct {
	series classical.Series
	truth  [][]float32
	world  *simulate.World
}

func newSea(t *testing.T, days int, seed uint64) simulatedSea {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 40, Width: 64, Days: days, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	s := simulatedSea{world: w, series: classical.Series{Grid: w.Grid(), Sea: w.Sea()}}
	tr := field.Transform{Log10: true, Floor: 1e-4}
	for n := range days {
		d := w.Day(n)
		seen, truth := make([]float32, len(d.Seen.Values)), make([]float32, len(d.Seen.Values))
		tr.Forward(seen, d.Seen.Values)
		tr.Forward(truth, d.Truth.Values)
		s.series.Frames = append(s.series.Frames, classical.Frame{Time: d.Time, Values: seen})
		s.truth = append(s.truth, truth)
	}
	return s
}

// companion returns a term of the simulator for all frames.
func (s simulatedSea) companion(t *testing.T, name string, correlation float64) Term {
	t.Helper()
	term := Term{Name: name, Units: "kelvin"}
	var r *Regridder
	for n := range s.series.Frames {
		g, err := s.world.Companion(n, correlation)
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			if r, err = NewRegridder(g.Seen.Grid, s.series.Grid); err != nil {
				t.Fatal(err)
			}
		}
		term.Maps = append(term.Maps, r.Apply(g.Seen.Values))
	}
	return term
}

func (s simulatedSea) times() []time.Time {
	var out []time.Time
	for _, f := range s.series.Frames {
		out = append(out, f.Time)
	}
	return out
}

func setting(g field.Grid) Setting {
	t := classical.DefaultTuning()
	t.Overlays = 60
	return Setting{OI: classical.DefaultOI(g), Tuning: t}
}

const gap = 5 * 24 * time.Hour

// An informative covariate is used and noise beside it is not; and the gain holds where
// clouds hid the truth, which nothing of the choice has seen.
func TestOnlyACovariateThatPaysIsUsed(t *testing.T) {
	sea := newSea(t, 100, 5)
	// Noise of the same sea would tell what of sst is noise, and pay.
	terms := []Term{sea.companion(t, "sst", 0.8), newSea(t, 100, 50).companion(t, "noise", 0)}
	r, err := Choose(t.Context(), sea.series, terms, Halves(sea.times(), gap), setting(sea.series.Grid))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Judged {
		t.Log(v)
	}
	if r.Names() != "sst" || !r.Judged[0].Used || r.Judged[1].Used || r.Judged[1].Why != noGain {
		t.Fatalf("used %q, judged %+v: want sst and not noise", r.Names(), r.Judged)
	}
	if g := r.Gain; g == nil || g.Interval.Low <= 0 || g.Share < leastGain {
		t.Fatalf("gain of sst is %+v, want one beyond chance", g)
	}
	plain, with := sea.errorUnderClouds(t, nil), sea.errorUnderClouds(t, r.Drift(sea.series, terms))
	t.Logf("all: %v; MSE under the clouds %.4f, with sst %.4f: %+.1f %%", *r.Gain, plain, with, 100*(with/plain-1))
	if with > 0.95*plain {
		t.Errorf("MSE under the clouds is %.4f with sst and %.4f without", with, plain)
	}
}

// errorUnderClouds returns the mean squared error of optimal interpolation in the gaps of
// the last days.
func (s simulatedSea) errorUnderClouds(t *testing.T, drift [][]float32) float64 {
	t.Helper()
	series := s.series
	series.Frames = slices.Clone(series.Frames)
	for f := range drift {
		series.Frames[f].Drift = drift[f]
	}
	sum, n := 0.0, 0.0
	for f := len(series.Frames) - 20; f < len(series.Frames); f += 4 {
		window, target := series.Window(f, 10*24*time.Hour, 0)
		o := classical.DefaultOI(series.Grid)
		o.Overlays = 0
		e, err := o.Fill(window, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		for c, v := range series.Frames[f].Values {
			if d := float64(e.Mean[c] - s.truth[f][c]); v != v && !math.IsNaN(d) {
				sum, n = sum+d*d, n+1
			}
		}
	}
	return sum / n
}

// Noise alone leaves everything as it was.
func TestNoiseIsNotUsed(t *testing.T) {
	sea := newSea(t, 100, 6)
	for _, terms := range [][]Term{
		{sea.companion(t, "noise", 0)},
		{gradientOf(sea, sea.companion(t, "noise", 0))},
	} {
		r, err := Choose(t.Context(), sea.series, terms, Halves(sea.times(), gap), setting(sea.series.Grid))
		if err != nil {
			t.Fatal(err)
		}
		t.Log(r.Judged[0])
		if r.Any() || r.Gain != nil || r.Drift(sea.series, terms) != nil || r.Judged[0].Gain == nil {
			t.Errorf("%+v: want nothing used, and the measured gain kept as the reason", r)
		}
	}
}

func gradientOf(s simulatedSea, t Term) Term {
	g := Term{Name: t.Name + ".gradient"}
	for _, m := range t.Maps {
		g.Maps = append(g.Maps, Gradient(m, s.series.Grid))
	}
	return g
}

// What the days that choose hold has no part in the coefficients.
func TestCoefficientsComeFromDaysThatLearn(t *testing.T) {
	sea := newSea(t, 60, 7)
	days := Halves(sea.times(), gap)
	slope := func(s classical.Series, term Term) float64 {
		with := setting(s.Grid)
		misses, err := with.OI.Misses(t.Context(), s, [][][]float32{term.anomalies(s)}, days.Learn, with.Tuning)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := fit(daysOf(misses, []float64{1}), []int{0})
		return c[0]
	}
	term := sea.companion(t, "sst", 0.8)
	before := slope(sea.series, term)
	other := sea.series
	other.Frames = slices.Clone(other.Frames)
	for _, f := range days.Choose {
		values := slices.Clone(other.Frames[f].Values)
		for i := range values {
			values[i] += 1e3
		}
		other.Frames[f].Values = values
	}
	if after := slope(other, term); after != before || before == 0 {
		t.Errorf("slope %g became %g when days that choose changed", before, after)
	}
}

// Too few days settle nothing, and say so.
func TestFewDaysUseNoCovariate(t *testing.T) {
	sea := newSea(t, 12, 7)
	r, err := Choose(context.Background(), sea.series, []Term{sea.companion(t, "sst", 1)}, Halves(sea.times(), gap), setting(sea.series.Grid))
	if err != nil || r.Any() || r.Note == "" {
		t.Errorf("%+v, %v: want none used and a note", r, err)
	}
}

// A covariate that is missing on some days, and in places on others, neither breaks the
// analysis nor leaves a step at the edge of what is known.
func TestMissingValuesOfACovariateLeaveNoStep(t *testing.T) {
	sea := newSea(t, 12, 8)
	term := sea.companion(t, "sst", 1)
	term.Maps[3] = nil
	last := len(term.Maps) - 1
	w := sea.series.Grid.Width()
	cut := slices.Clone(term.Maps[last])
	for i := range cut {
		if i%w > w/2 {
			cut[i] = field.NaN()
		}
	}
	whole := term.anomalies(sea.series)[last]
	term.Maps[last] = cut
	got := term.anomalies(sea.series)
	for i, v := range got[3] {
		if v != 0 {
			t.Fatalf("cell %d of a day without a map has the anomaly %g", i, v)
		}
	}
	spread, step, natural, n := 0.0, 0.0, 0.0, 0.0
	for i, v := range got[last] {
		if v-v != 0 {
			t.Fatalf("cell %d is %v", i, v)
		}
		if col := i % w; col == w/2 && sea.series.Sea[i] && sea.series.Sea[i+1] {
			step, n = step+math.Abs(float64(got[last][i+1]-v)), n+1
			spread += math.Abs(float64(whole[i]))
			natural += math.Abs(float64(whole[i+1] - whole[i]))
		}
	}
	if n == 0 || step > 1.5*natural || natural > spread/2 {
		t.Errorf("the mean step at the edge is %.3f, %.3f where nothing is missing, and anomalies there are %.3f", step/n, natural/n, spread/n)
	}
	if far := got[last][20*w+w-3]; math.Abs(float64(far)) > 0.3*spread/n {
		t.Errorf("far from all that is known the anomaly is %g, want about zero", far)
	}
}

// A season that all of the sea shares, far stronger than what a covariate tells of places,
// neither drowns it nor is taken for it.
func TestASharedSeasonIsNoAnomaly(t *testing.T) {
	sea := newSea(t, 30, 9)
	term := sea.companion(t, "sst", 1)
	want := term.anomalies(sea.series)
	for f, m := range term.Maps {
		for i := range m {
			m[i] += float32(f) // a degree a day
		}
	}
	for f, m := range term.anomalies(sea.series) {
		for i, v := range m {
			if math.Abs(float64(v-want[f][i])) > 0.02 {
				t.Fatalf("day %d, cell %d: %g with the season and %g without", f, i, v, want[f][i])
			}
		}
	}
}
