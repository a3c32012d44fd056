package field

import (
	"math"
	"math/rand/v2"
	"testing"
)

var nan = NaN()

func TestCoverageCountsSeaOnly(t *testing.T) {
	f := Field{Values: []float32{1, nan, 3, 4}, Sea: Mask{true, true, false, true}}
	observed, sea, share := f.Coverage()
	if observed != 2 || sea != 3 || math.Abs(share-2.0/3) > 1e-12 {
		t.Errorf("Coverage() = %d, %d, %g, want 2, 3, 2/3: a value on land is no coverage", observed, sea, share)
	}
	f.Sea = nil
	if observed, sea, _ = f.Coverage(); observed != 3 || sea != 4 {
		t.Errorf("without a sea mask Coverage() = %d of %d, want 3 of 4", observed, sea)
	}
	f.Sea = make(Mask, 4)
	if _, _, share = f.Coverage(); share != 0 {
		t.Errorf("without sea the share is %g, want 0 and not NaN", share)
	}
}

func TestEverObservedIsTheUnion(t *testing.T) {
	m := EverObserved(3, Field{Values: []float32{1, nan, nan}}, Field{Values: []float32{nan, nan, 2}})
	if !m[0] || m[1] || !m[2] || m.Count() != 2 {
		t.Errorf("EverObserved() = %v, want the first and the last cell", m)
	}
}

func TestTransformsComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	src := make([]float32, 1000)
	for i := range src {
		src[i] = float32(math.Pow(10, rng.Float64()*5-3)) // 0.001..100, the range of chlorophyll
	}
	src[7] = nan
	log10, err := ParseTransform("log10", 0.001)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range []Transform{{}, log10} {
		x := make([]float32, len(src))
		tr.Forward(x, src)
		tr.Inverse(x, x)
		for i := range x {
			// Single precision keeps 24 bits; log10 and back costs a few of them.
			const tolerance = 2e-6
			if math.IsNaN(float64(src[i])) != math.IsNaN(float64(x[i])) || math.Abs(float64(x[i]/src[i]-1)) > tolerance {
				t.Fatalf("%v: %g came back as %g", tr, src[i], x[i])
			}
		}
	}
}

func TestLog10KnowsItsFloor(t *testing.T) {
	tr := Transform{Log10: true, Floor: 0.01}
	got := make([]float32, 4)
	tr.Forward(got, []float32{1000, 0.001, -5, nan})
	if got[0] != 3 || got[1] != -2 || got[2] != -2 || got[3] == got[3] {
		t.Errorf("log10 with floor 0.01 of 1000, 0.001, -5, NaN = %v, want 3, -2, -2, NaN", got)
	}
	if _, err := ParseTransform("log10", 0); err == nil {
		t.Error("log10 without a floor was accepted")
	}
	if _, err := ParseTransform("cube", 1); err == nil {
		t.Error("an unknown transform was accepted")
	}
}

func TestSummariseIsStableFarFromZero(t *testing.T) {
	// 2, 4, 4, 4, 5, 5, 7, 9 has mean 5 and population deviation 2; shifted by
	// 300 000 a sum of squares in single precision would lose it.
	vs := []float32{2, 4, 4, 4, nan, 5, 5, 7, 9}
	for i := range vs {
		vs[i] += 300000
	}
	s := Summarise(vs[:4], vs[4:])
	if s.N != 8 || s.Mean != 300005 || math.Abs(s.Std-2) > 1e-9 || s.Min != 300002 || s.Max != 300009 {
		t.Errorf("Summarise() = %+v, want N 8, mean 300005, std 2, 300002..300009", s)
	}
	if e := Summarise([]float32{nan}); e.N != 0 || e.Mean == e.Mean {
		t.Errorf("Summarise of a gap = %+v, want N 0 and NaN", e)
	}
}

func TestQuantilesInterpolateAndSkipGaps(t *testing.T) {
	got := Quantiles([]float32{4, nan, 1, 3, 2}, 0, 0.5, 1, 0.25)
	want := []float64{1, 2.5, 4, 1.75} // as numpy.quantile([1,2,3,4], ...) gives
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("Quantiles() = %v, want %v", got, want)
			break
		}
	}
	if q := Quantiles([]float32{nan}, 0.5); q[0] == q[0] {
		t.Errorf("median of a gap = %v, want NaN", q)
	}
}

func TestNormalisationGivesZeroMeanAndUnitVariance(t *testing.T) {
	src := []float32{280, 281, 285, nan, 290}
	n, err := NormalisationOf(Summarise(src))
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, len(src))
	n.Forward(x, src)
	if s := Summarise(x); math.Abs(s.Mean) > 1e-6 || math.Abs(s.Std-1) > 1e-6 {
		t.Errorf("normalised mean %g and deviation %g, want 0 and 1", s.Mean, s.Std)
	}
	if x[3] == x[3] {
		t.Errorf("normalised %v, want a gap where there is one in %v", x, src)
	}
	if _, err := NormalisationOf(Summarise([]float32{7, 7})); err == nil {
		t.Error("a constant was accepted as a scale")
	}
	if _, err := NormalisationOf(Stats{}); err == nil {
		t.Error("no values were accepted as a scale")
	}
}

func TestDifferentLengthsPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("slices of different length did not panic")
		}
	}()
	Transform{}.Forward(make([]float32, 2), make([]float32, 3))
}
