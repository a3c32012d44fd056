package samples_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

const globeHeight, globeWidth = 24, 48

// globe returns days of a globe on a grid that begins at a meridian.
func globe(t *testing.T, west float64) samples.Train {
	t.Helper()
	const days = 60
	grid := field.Grid{Lat: make([]float64, globeHeight), Lon: make([]float64, globeWidth)}
	for i := range grid.Lat {
		grid.Lat[i] = -57.5 + 5*float64(i)
	}
	for j := range grid.Lon {
		grid.Lon[j] = west + 7.5*float64(j)
	}
	sea := make(field.Mask, grid.Len())
	var fs []field.Field
	for d := range days {
		values := make([]float32, grid.Len())
		for c := range values {
			lat, lon := grid.Place(c/globeWidth, c%globeWidth)
			number := int(math.Round(field.Wrap(lon)/7.5)) + 100*(c/globeWidth) // tells the place
			sea[c] = number%11 != 0
			values[c] = float32(math.Sin(float64(number)) + 0.1*lat/60)
			if (number+7*d)%5 < 2 {
				values[c] = field.NaN()
			}
		}
		fs = append(fs, field.Field{Grid: grid, Time: start.AddDate(0, 0, d), Values: values})
	}
	s, err := samples.New(fs, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	train, _, err := s.Split(samples.DefaultSplit())
	if err != nil {
		t.Fatal(err)
	}
	return train
}

// A window across the meridian at which a globe begins must be the same window as on
// a grid that has it in its middle, with its neighbouring days and its places.
func TestWindowsCrossTheMeridianAtWhichAGlobeBegins(t *testing.T) {
	const side = 16
	seam, inside := globe(t, -180), globe(t, 0)
	refs := seam.Refs(side, side, 1)
	crossing := 0
	for _, r := range refs {
		if r.Window.Col >= 0 && r.Window.Col+side <= globeWidth {
			continue
		}
		crossing++
		same := r
		same.Window.Col = r.Window.Col + globeWidth/2
		got, want := seam.Cut(r), inside.Cut(same)
		ignore := cmpopts.IgnoreFields(samples.Patch{}, "Ref")
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-4), ignore); diff != "" {
			t.Fatalf("the window at %+v (-inside +seam):\n%.600s", r, diff)
		}
		if !slices.Contains(got.Sea[:side/2], true) || !slices.Contains(got.Sea[side/2:side], true) {
			t.Fatalf("the window at %+v has no sea on one of its sides", r)
		}
		a, _ := seam.Around(r, got.Observed(), 3, 0)
		b, _ := inside.Around(same, want.Observed(), 3, 0)
		if diff := cmp.Diff(b.Frames, a.Frames, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-4)); diff != "" {
			t.Fatalf("days around the window (-inside +seam):\n%.600s", diff)
		}
		for c := range side * side {
			x, y, z := a.Grid.Cartesian(c/side, c%side)
			p, q, r := b.Grid.Cartesian(c/side, c%side)
			if math.Abs(x-p)+math.Abs(y-q)+math.Abs(z-r) > 1e-3 {
				t.Fatalf("cell %d of the window lies elsewhere", c)
			}
		}
	}
	if crossing == 0 {
		t.Fatal("no window crosses the meridian")
	}
	counted := make([]int, globeWidth)
	for _, r := range refs {
		if r.Day == refs[0].Day && r.Window.Row == refs[0].Window.Row {
			for j := range side {
				counted[(r.Window.Col+j+globeWidth)%globeWidth]++
			}
		}
	}
	if slices.Max(counted) != 1 || slices.Min(counted) != 1 {
		t.Errorf("windows a side apart have the columns %v times, want once each", counted)
	}
}
