package swath

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lacuna/pipeline/field"
)

func pixels(places [][2]float64, values ...float32) field.Field {
	p := &field.Plane{Width: len(places)}
	for _, at := range places {
		p.Lat, p.Lon = append(p.Lat, at[0]), append(p.Lon, at[1])
	}
	return field.Field{Grid: field.Grid{Plane: p}, Values: values}
}

func TestPixelsFallIntoTheCellThatTheyLieIn(t *testing.T) {
	grid, err := NewGrid(179, 40, -179, 42, 1) // two rows and two columns about the date line
	if err != nil {
		t.Fatal(err)
	}
	b := NewBins(grid, field.Transform{})
	f := pixels([][2]float64{
		{41.99, 179.01},
		{41.01, 179.99},
		{41.5, -179.5},
		{40.5, 180.5},
		{40.5, 179.5},
		{40.5, 179.5},
		{42.01, 179.5},
		{40.5, 178.99},
		{40.5, -178.99},
		{math.NaN(), 179.5},
		{40.5, math.NaN()},
	}, 1, 3, 5, 7, 9, field.NaN(), 99, 99, 99, 99, 99)
	if n := b.Add(f, nil); n != 5 {
		t.Errorf("%d pixels lie on the grid, want 5", n)
	}
	values, _, count := b.Maps()
	for c, want := range []float32{2, 5, 9, 7} {
		if values[c] != want || count[c] != [4]int32{2, 1, 1, 1}[c] {
			t.Errorf("cell %d has %g of %d pixels, want %g", c, values[c], count[c], want)
		}
	}
	if _, err := NewGrid(0, 0, 1, 1, 0.9); err == nil {
		t.Error("a grid of one cell was made")
	}
}

// The grid of another file may run from the south and from the east, with uneven
// steps and across the date line.
func TestAnyAxesHaveTheirCells(t *testing.T) {
	lat, lon := []float64{10, 11, 13}, []float64{182, 181, 179}
	for _, turned := range []bool{false, true} {
		if turned {
			slices.Reverse(lat)
			slices.Reverse(lon)
		}
		grid, err := field.NewGrid(lat, lon)
		if err != nil {
			t.Fatal(err)
		}
		b := NewBins(grid, field.Transform{})
		var places [][2]float64
		var values []float32
		for c := range grid.Len() { // a pixel near the centre of each cell
			y, x := grid.Place(c/grid.Width(), c%grid.Width())
			places, values = append(places, [2]float64{y + 0.4, field.Wrap(x - 0.4)}), append(values, float32(c))
		}
		for _, at := range [][2]float64{{9.4, 181}, {14.1, 181}, {11, 177.9}, {11, -177.4}} { // beyond the edges
			places, values = append(places, at), append(values, 99)
		}
		if n := b.Add(pixels(places, values...), nil); n != grid.Len() {
			t.Errorf("%d pixels lie on the grid, want %d", n, grid.Len())
		}
		got, _, _ := b.Maps()
		for c, v := range got {
			if v != float32(c) {
				t.Errorf("cell %d has %v", c, v)
			}
		}
	}
}

// The stated error is that of the mean: over many cells the misses, in units of
// it, have the size of one.
func TestTheErrorIsThatOfTheMean(t *testing.T) {
	grid, err := NewGrid(0, 0, 40, 40, 1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var places [][2]float64
	var values []float32
	for range 8000 { // five a cell
		places = append(places, [2]float64{40 * rng.Float64(), 40 * rng.Float64()})
		values = append(values, float32(10+0.5*rng.NormFloat64()))
	}
	b := NewBins(grid, field.Transform{})
	b.Add(pixels(places, values...), nil)
	means, errs, count := b.Maps()
	sum, n := 0.0, 0.0
	for c := range means {
		if count[c] > 0 {
			sum, n = sum+math.Pow(float64((means[c]-10)/errs[c]), 2), n+1
		}
	}
	if ratio := math.Sqrt(sum / n); math.Abs(ratio-1) > 0.05 {
		t.Errorf("the misses are %.3f of the stated errors", ratio)
	}
}

func TestTheInputsOwnErrorIsAFloor(t *testing.T) {
	grid, err := NewGrid(0, 0, 2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBins(grid, field.Transform{Log10: true, Floor: 1e-3})
	same := [2]float64{1.5, 0.5}
	b.Add(pixels([][2]float64{same, same, same, same, {0.5, 0.5}}, 0.1, 1, 10, 1, 2), []float32{2, 2, 2, 2, field.NaN()})
	values, errs, _ := b.Maps()
	if math.Abs(float64(values[0]-1)) > 1e-5 || math.Abs(float64(errs[0]-1)) > 1e-5 {
		t.Errorf("%g with the error %g, want the geometric mean 1 and 2 decades over the root of 4", values[0], errs[0])
	}
	if !(errs[2] > 0) { // of a single pixel: the spread within the other cells
		t.Errorf("a single pixel has the error %g", errs[2])
	}
}
