package skill

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"lacuna/pipeline/field"
)

// strip is a sample of one row with the given errors on its last cells, all
// others visible.
func strip(width int, errs ...float32) Sample {
	x := Sample{Day: dayOf(0), Height: 1, Width: width}
	x.Truth, x.Mean = make([]float32, width), make([]float32, width)
	x.Visible, x.Scored = make(field.Mask, width), make(field.Mask, width)
	for c := range width {
		x.Truth[c] = float32(c)
		x.Mean[c] = x.Truth[c]
		k := c - (width - len(errs))
		x.Visible[c], x.Scored[c] = k < 0, k >= 0
		if k >= 0 {
			x.Mean[c] += errs[k]
		}
	}
	return x
}

func repeated(v float32, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func summed(t *testing.T, opt Options, samples ...Sample) Summary {
	t.Helper()
	s := NewScores(opt)
	for _, x := range samples {
		if err := s.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	return s.Summary()
}

func TestPooledAndMeanOfSamplesDifferWhereSamplesDifferInSize(t *testing.T) {
	small, large := strip(40, repeated(3, 20)...), strip(100, repeated(1, 60)...)
	large.Day = dayOf(1)
	s := summed(t, Options{Bootstrap: DefaultBootstrap(), Range: 10}, small, large)
	near(t, "pooled MSE", *s.MSE, (20*9+60*1)/80.0, exact)
	near(t, "mean of samples", *s.MSEOfSamples, (9+1)/2.0, exact)
	near(t, "PSNR", *s.PSNR, (10*math.Log10(100/9.0)+20)/2, exact)
	near(t, "bias", *s.Bias, (20*3+60)/80.0, exact)
	if s.Days != 2 || s.Samples != 2 {
		t.Errorf("%d samples on %d days", s.Samples, s.Days)
	}
}

func TestErrorsFallIntoTheirDistanceClass(t *testing.T) {
	errs := make([]float32, 24)
	for k := range errs {
		errs[k] = float32(k + 1) // the k-th cell is k+1 cells from the last visible one
	}
	opt := DefaultOptions()
	s := summed(t, opt, strip(50, errs...))
	want := []struct {
		above, upTo float64
		pixels      int
		mse         float64
	}{{0, 1, 1, 1}, {1, 2, 1, 4}, {2, 4, 2, 12.5}, {4, 8, 4, 43.5}, {8, 16, 8, 161.5}, {16, 32, 8, 425.5}}
	if len(s.ByDistance) != len(want) {
		t.Fatalf("%d classes, want %d: %+v", len(s.ByDistance), len(want), s.ByDistance)
	}
	for k, w := range want {
		got := s.ByDistance[k]
		if got.Above != w.above || *got.UpTo != w.upTo || got.Pixels != w.pixels {
			t.Errorf("class %d is %+v, want %+v", k, got, w)
		}
		near(t, "MSE of the class", got.MSE, w.mse, 1e-4)
	}
}

func TestWeightsMoveTheWeightedErrorOnly(t *testing.T) {
	x := strip(50, append(repeated(1, 20), repeated(3, 10)...)...)
	x.Weights = make([]float32, 50)
	for c := 40; c < 50; c++ {
		x.Weights[c] = 2
	}
	s := summed(t, DefaultOptions(), x)
	near(t, "MSE", *s.MSE, (20+90)/30.0, exact)
	near(t, "weighted MSE", *s.WeightedMSE, 9, exact)
}

func TestCellsNeitherVisibleNorScoredDoNotMatter(t *testing.T) {
	x := slanted()
	x.Sigma = repeated(0.4, len(x.Truth))
	x.Members = [][]float32{x.Mean, x.Truth}
	before := summed(t, DefaultOptions(), x)
	for c := range x.Truth {
		if !x.Visible[c] && !x.Scored[c] {
			x.Truth[c], x.Mean[c], x.Sigma[c] = 1e6, float32(math.Inf(1)), field.NaN()
		}
		if x.Visible[c] {
			x.Mean[c], x.Sigma[c] = 1e6, field.NaN()
		}
	}
	x.Members = [][]float32{x.Mean, x.Truth}
	if after := summed(t, DefaultOptions(), x); !reflect.DeepEqual(before, after) {
		t.Errorf("scores changed from %+v to %+v", before, after)
	}
}

func TestNonFiniteOutputIsCountedAndLeftOut(t *testing.T) {
	x := strip(60, repeated(1, 30)...)
	x.Mean[45] = field.NaN()
	x.Sigma = repeated(1, 60)
	x.Sigma[50] = field.NaN()
	x.Members = [][]float32{append([]float32(nil), x.Mean...), append([]float32(nil), x.Mean...)}
	x.Members[0][55] = float32(math.Inf(-1))
	s := summed(t, DefaultOptions(), x)
	if s.NonFinite != 3 || s.Pixels != 29 {
		t.Errorf("%d non-finite and %d scored, want 3 and 29", s.NonFinite, s.Pixels)
	}
	near(t, "MSE", *s.MSE, 1, exact)
}

func TestSummaryIsJSONWhateverIsMissing(t *testing.T) {
	for name, s := range map[string]Summary{
		"nothing": NewScores(DefaultOptions()).Summary(),
		"perfect": summed(t, DefaultOptions(), strip(50, repeated(0, 25)...)),
		"full": func() Summary {
			x := slanted()
			x.Sigma, x.Members = repeated(0.4, len(x.Truth)), [][]float32{x.Mean, x.Truth}
			return summed(t, DefaultOptions(), x)
		}(),
	} {
		text, err := json.Marshal(s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var back Summary
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: came back as %+v, %v", name, back, err)
		}
	}
}

func TestSamplesThatCannotBeScoredSayWhy(t *testing.T) {
	few := strip(50, repeated(1, 19)...)
	if err := NewScores(DefaultOptions()).Add(few); !errors.Is(err, ErrTooFewPixels) {
		t.Errorf("19 scored pixels: %v", err)
	}
	unknown := strip(50, repeated(1, 20)...)
	unknown.Truth[49] = field.NaN()
	if err := NewScores(DefaultOptions()).Add(unknown); err == nil || !strings.Contains(err.Error(), "truth of cell 49") {
		t.Errorf("unknown truth: %v", err)
	}
	s := NewScores(DefaultOptions())
	x := strip(50, repeated(1, 20)...)
	x.Members = [][]float32{x.Mean, x.Mean}
	if err := s.Add(x); err != nil {
		t.Fatal(err)
	}
	x.Members = x.Members[:1]
	if err := s.Add(x); err == nil || !strings.Contains(err.Error(), "1 members after samples of 2") {
		t.Errorf("another number of members: %v", err)
	}
}

func TestOverlapIsABug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a cell that is visible and scored was accepted")
		}
	}()
	x := strip(50, repeated(1, 20)...)
	x.Visible[45] = true
	_ = NewScores(DefaultOptions()).Add(x)
}

func TestLossesAddUpToTheSummary(t *testing.T) {
	s := NewScores(DefaultOptions())
	for d, x := range []Sample{slanted(), strip(60, repeated(0.5, 30)...)} {
		x.Day = dayOf(d)
		x.Sigma = repeated(0.3, len(x.Truth))
		x.Members = [][]float32{x.Mean, x.Truth, x.Mean}
		if err := s.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	sum := s.Summary()
	near(t, "MSE", pooled(s.SquaredErrors()), *sum.MSE, exact)
	near(t, "CRPS of sigma", pooled(s.GaussianCRPS()), sum.Gaussian.CRPS, exact)
	near(t, "CRPS of members", pooled(s.EnsembleCRPS()), sum.Ensemble.CRPS, exact)
	covered, _ := sum.Ensemble.Covers(0.9)
	near(t, "coverage of members", pooled(s.Covered()), covered, exact)
}

// A method that covers nothing on some days and everything on others is less sure of
// its coverage than one that covers as much on each.
func TestCoverageIsAsSureAsItsDaysAgree(t *testing.T) {
	intervalOf := func(sigma func(day int) float32) (Interval, float64) {
		t.Helper()
		s := NewScores(DefaultOptions())
		for d := range 64 {
			x := strip(60, repeated(0.5, 30)...)
			x.Day = dayOf(d)
			x.Sigma = repeated(sigma(d), len(x.Truth))
			for c := range x.Mean {
				x.Mean[c] = x.Truth[c] + float32(c%2) // one cell in two is off by one
			}
			if err := s.Add(x); err != nil {
				t.Fatal(err)
			}
		}
		covered, _ := s.Summary().Gaussian.Covers(0.9)
		near(t, "coverage", pooled(s.Covered()), covered, exact)
		in, known := DefaultBootstrap().Share(s.Covered())
		if !known {
			t.Fatal("64 days are too few")
		}
		return in, covered
	}
	alike, half := intervalOf(func(int) float32 { return 0.1 })
	if alike.Low != half || alike.High != half {
		t.Errorf("days that all cover %g give %v", half, alike)
	}
	apart, most := intervalOf(func(day int) float32 { return float32(1 - day/8%2) }) // blocks of eight days
	if !(apart.Low < most-0.1 && apart.High > most+0.1 && apart.Low >= 0 && apart.High <= 1) {
		t.Errorf("days that cover half and all give %v about %g", apart, most)
	}
}
