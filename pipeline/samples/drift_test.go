package samples

import (
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

// The drift of a day goes with it to optimal interpolation, in units of the spread and cut
// to the window, and nowhere else.
func TestTheDriftOfADayReachesOptimalInterpolation(t *testing.T) {
	grid := field.Grid{Lat: []float64{40, 40.1, 40.2, 40.3}, Lon: []float64{28, 28.1, 28.2, 28.3, 28.4}}
	s := Series{Grid: grid, Sea: slices.Repeat(field.Mask{true}, grid.Len())}
	for d := range 4 {
		day := Day{Time: time.Date(2024, 5, 1+d, 12, 0, 0, 0, time.UTC), Values: make([]float32, grid.Len()), Drift: make([]float32, grid.Len())}
		for i := range day.Values {
			day.Values[i], day.Drift[i] = float32(math.Sin(float64(i*(d+1)))), float32(i)
		}
		s.Days = append(s.Days, day)
	}
	plain := s
	plain.Days = slices.Clone(s.Days)
	for i := range plain.Days {
		plain.Days[i].Drift = nil
	}
	train, err := s.Whole()
	if err != nil {
		t.Fatal(err)
	}
	without, err := plain.Whole()
	if err != nil {
		t.Fatal(err)
	}
	r := Ref{Day: 2, Window: Window{Row: 1, Col: 2, Height: 2, Width: 2}}
	visible := []bool{true, true, false, true}
	got, target := train.Around(r, visible, 1, 1)
	want, _ := without.Around(r, visible, 1, 1)
	if len(got.Frames) != 3 || target != 1 {
		t.Fatalf("%d frames, target %d", len(got.Frames), target)
	}
	std := train.Scaling().Std
	for f, frame := range got.Frames {
		if !slices.EqualFunc(frame.Values, want.Frames[f].Values, func(a, b float32) bool { return a == b || a != a && b != b }) || want.Frames[f].Drift != nil {
			t.Errorf("frame %d: a drift changes the values, or comes of nothing", f)
		}
		for i, cell := range []int{7, 8, 12, 13} {
			if d := float64(frame.Drift[i]) - float64(cell)/std; math.Abs(d) > 1e-5 {
				t.Errorf("frame %d: the drift of cell %d is %g, want %g", f, cell, frame.Drift[i], float64(cell)/std)
			}
		}
	}
	if !slices.Equal(train.Cut(r).Values, without.Cut(r).Values) {
		t.Error("a drift changes what a network sees")
	}
}
