package version

import (
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// changed returns the first days of the sea with their cells changed.
func changed(t *testing.T, change func(day, cell int, v float32) float32) samples.Series {
	t.Helper()
	s := series(t)
	s.Days = slices.Clone(s.Days[:40])
	for d, day := range s.Days {
		s.Days[d].Values = slices.Clone(day.Values)
		for cell, v := range day.Values {
			s.Days[d].Values[cell] = change(d, cell, v)
		}
	}
	return s
}

func TestDriftOfValuesAndMasksIsToldApart(t *testing.T) {
	version, backend := firstModel(t), enginetest.Open(t)
	spread := version.Evaluation.Values.Std
	measure := func(s samples.Series) Drift {
		t.Helper()
		d, err := DriftOf(t.Context(), backend, version.Parts, s, 16)
		if err != nil {
			t.Fatal(err)
		}
		if d.Masks == nil || d.Values == nil {
			t.Fatalf("drift %+v, want both", d)
		}
		return d
	}
	same := measure(changed(t, func(_, _ int, v float32) float32 { return v }))
	shifted := measure(changed(t, func(_, _ int, v float32) float32 { return v + float32(2*spread) }))
	salted := measure(changed(t, func(day, cell int, v float32) float32 {
		if (7*cell+11*day)%3 > 0 { // scattered holes, as of a sensor that lost detectors
			return field.NaN()
		}
		return v
	}))
	if grew := *shifted.Values - *same.Values; math.Abs(grew-2) > 1 {
		t.Errorf("values moved by 2 standard deviations, and their drift by %.2f", grew)
	}
	if *shifted.Masks != *same.Masks {
		t.Errorf("masks did not change, and their drift goes from %.3f to %.3f", *same.Masks, *shifted.Masks)
	}
	if *salted.Masks < *same.Masks+0.1 { // a prior of twelve steps is a weak one
		t.Errorf("scattered holes let the drift of masks go from %.3f to %.3f only", *same.Masks, *salted.Masks)
	}
	if moved := math.Abs(*salted.Values - *same.Values); moved > 0.2 {
		t.Errorf("holes move the drift of values by %.2f", moved)
	}
	t.Logf("masks %.2f, with holes %.2f; values %.2f, shifted %.2f", *same.Masks, *salted.Masks, *same.Values, *shifted.Values)
}

func TestDriftOfMasksIsKnownWithoutAPrior(t *testing.T) {
	months := func(n int, mean float64) Seasons { return seasonsOf(map[int][]float64{3: shares(n, mean)}) }
	before := months(100, 0.3)
	moved, ok := before.distance(months(100, 0.6), fewestWindows)
	if want := 0.3 / before[3].Std; !ok || math.Abs(moved-want) > 1e-9 {
		t.Errorf("moved by %.3f, want %.3f", moved, want)
	}
	if _, ok := before.distance(months(10, 0.6), fewestWindows); ok {
		t.Error("ten windows were enough")
	}
	if _, ok := before.distance(Seasons{9: before[3]}, fewestWindows); ok {
		t.Error("autumn was compared with spring")
	}
}

// shares returns n numbers about a mean.
func shares(n int, mean float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = mean + 0.2*(float64(i)/float64(n)-0.5)
	}
	return out
}
