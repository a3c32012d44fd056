package classical

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lacuna/pipeline/field"
)

// sensors returns a smooth line that two sensors saw, in turns cell by cell: one
// with the noise quiet, the other with the noise loud; and its truth. Every third
// cell is a gap of the last day.
func sensors(quiet, loud float64) (s Series, truth []float32) {
	const n, days = 48, 5
	rng := rand.New(rand.NewPCG(5, 6))
	var all [][]float32
	var errs [][]float32
	for day := range days {
		values, errors := make([]float32, n), make([]float32, n)
		truth = make([]float32, n)
		for i := range values {
			truth[i] = float32(math.Sin(float64(i)/9+float64(day)/8) + 0.6*math.Cos(float64(i)/5))
			noise := quiet
			if (i+day)%2 == 1 {
				noise = loud
			}
			errors[i] = float32(noise)
			values[i] = truth[i] + float32(noise*rng.NormFloat64())
			if day == days-1 && i%3 == 0 {
				values[i], errors[i] = field.NaN(), field.NaN()
			}
		}
		all, errs = append(all, values), append(errs, errors)
	}
	s = line(5, all...)
	for f := range s.Frames {
		s.Frames[f].Errors = errs[f]
	}
	return s, truth
}

// alike returns the series without errors.
func alike(s Series) Series {
	s.Frames = slices.Clone(s.Frames)
	for f := range s.Frames {
		s.Frames[f].Errors = nil
	}
	return s
}

func missOf(t *testing.T, o OI, s Series, truth []float32) float64 {
	t.Helper()
	last := len(s.Frames) - 1
	e := fill(t, o, s, last)
	sum, n := 0.0, 0.0
	for i, v := range s.Frames[last].Values {
		if v != v { // a gap
			d := float64(e.Mean[i] - truth[i])
			sum, n = sum+d*d, n+1
		}
	}
	return math.Sqrt(sum / n)
}

func TestObservationsAreWeighedByTheirErrors(t *testing.T) {
	s, truth := sensors(0.05, 0.6)
	o := plain(s.Grid)
	weighed, same := missOf(t, o, s, truth), missOf(t, o, alike(s), truth)
	if weighed > 0.8*same {
		t.Errorf("with a sensor of a twelfth of the other's noise the error is %.3f, and %.3f where both weigh alike", weighed, same)
	}
	e := fill(t, o, s, 4)
	if e.Sigma[1] <= e.Sigma[2] {
		t.Errorf("sigma is %v where the loud sensor saw, and %v where the quiet one did", e.Sigma[1], e.Sigma[2])
	}
}

// A sensor of mere noise must not spoil what a good one tells, however small the nugget is
// that was tuned on the good one.
func TestASensorOfMereNoiseDoesNoHarm(t *testing.T) {
	s, truth := sensors(0.05, 4)
	o := plain(s.Grid)
	o.Nugget = 0.02
	quiet := alike(s)
	for f, frame := range s.Frames {
		quiet.Frames[f].Values = slices.Clone(frame.Values)
		for i, e := range frame.Errors {
			if e > 1 {
				quiet.Frames[f].Values[i] = field.NaN()
			}
		}
	}
	e := fill(t, o, quiet, len(s.Frames)-1)
	sum, n := 0.0, 0.0
	for i, v := range s.Frames[len(s.Frames)-1].Values {
		if v != v { // the same gaps as of both
			d := float64(e.Mean[i] - truth[i])
			sum, n = sum+d*d, n+1
		}
	}
	alone, both := math.Sqrt(sum/n), missOf(t, o, s, truth)
	t.Logf("the error is %.4f by the good sensor alone, %.4f by both", alone, both)
	if both > 1.1*alone {
		t.Errorf("the error is %.4f by the good sensor alone, %.4f by both", alone, both)
	}
}

// What errors are said to be in all must not matter: the noise is that of the nugget.
func TestObservationsThatErrAlikeWeighAlike(t *testing.T) {
	for _, e := range []float64{1e-3, 0.2, 5} {
		s, _ := sensors(e, e)
		got, want := fill(t, DefaultOI(s.Grid), s, 4), fill(t, DefaultOI(s.Grid), alike(s), 4)
		for i := range want.Mean {
			if d := math.Abs(float64(got.Mean[i] - want.Mean[i])); d > 1e-4 {
				t.Fatalf("with the error %g of all observations cell %d is %v, without %v", e, i, got.Mean[i], want.Mean[i])
			}
		}
	}
}

// An error that is not known, or none at all, must change nothing, to the bit.
func TestUnknownErrorsChangeNothing(t *testing.T) {
	s, _ := sensors(0.1, 0.4)
	for _, unknown := range []float32{field.NaN(), 0, -1, float32(math.Inf(1))} {
		odd := alike(s)
		for f := range odd.Frames {
			odd.Frames[f].Errors = slices.Repeat([]float32{unknown}, odd.Grid.Len())
		}
		got, want := fill(t, DefaultOI(s.Grid), odd, 4), fill(t, DefaultOI(s.Grid), alike(s), 4)
		for i := range want.Mean {
			if got.Mean[i] != want.Mean[i] || got.Sigma[i] != want.Sigma[i] {
				t.Fatalf("with errors of %v cell %d is %v±%v, without %v±%v", unknown, i, got.Mean[i], got.Sigma[i], want.Mean[i], want.Sigma[i])
			}
		}
	}
}
