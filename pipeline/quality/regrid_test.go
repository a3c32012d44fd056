package quality

import (
	"math"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/simulate"
)

// bent returns the grid of a simulated sea under a mapping.
func bent(t *testing.T, m simulate.Mapping) field.Grid {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 40, Width: 56, Days: 1, Seed: 1, Mapping: m})
	if err != nil {
		t.Fatal(err)
	}
	return w.Grid()
}

// steep is a map whose value tells the place.
func steep(g field.Grid) []float32 {
	out := make([]float32, g.Len())
	for c := range out {
		lat, lon := g.Place(c/g.Width(), c%g.Width())
		out[c] = float32(lat + lon)
	}
	return out
}

// A climatology or a map of ice comes to a bent grid by the places of its cells, from a
// grid of latitudes and longitudes, from another bent one, and back.
func TestMapsComeToBentGridsByTheirPlaces(t *testing.T) {
	regular, polar, turned := bent(t, simulate.Regular), bent(t, simulate.Polar), bent(t, simulate.Rotated)
	for name, way := range map[string][2]field.Grid{
		"regular to polar": {regular, polar}, "polar to regular": {polar, regular}, "polar to rotated": {polar, turned},
	} {
		got, want := Regrid(steep(way[0]), way[0], way[1]), steep(way[1])
		south, north, west, east := way[0].Bounds()
		known := 0
		for c, v := range got {
			lat, lon := way[1].Place(c/way[1].Width(), c%way[1].Width())
			beyond := lat < south-1 || lat > north+1 || lon < west-1 || lon > east+1
			switch {
			case v != v: // NaN
			case beyond:
				t.Fatalf("%s: %g, %g lies outside and has %v", name, lat, lon, v)
			case math.Abs(float64(v-want[c])) > 0.4: // a step is 0.2 by 0.28 degrees
				t.Fatalf("%s: at %g, %g there is %v, want %v", name, lat, lon, v, want[c])
			default:
				known++
			}
		}
		if known < len(got)*3/4 {
			t.Errorf("%s: %d of %d cells have a value", name, known, len(got))
		}
	}
}

// Cells beside one another are those of the rows and columns of the grid, however it is
// bent: a spike is found in the middle, and nothing else.
func TestASpikeIsFoundOnABentGrid(t *testing.T) {
	g := bent(t, simulate.Polar)
	height, width := g.Height(), g.Width()
	values := calm(height, width, "bent")
	at := height/2*width + 7
	values[at]++
	s := Scene{Grid: g, Frames: []Frame{{Time: day0, Values: values}}}
	for i, cause := range on(t, "spike=6").Screen(s)[0] {
		row, col := i/width, i%width
		corner := (row < 2 || row > height-3) && (col < 2 || col > width-3)
		if (cause == BySpike) != (i == at) && !corner {
			t.Errorf("cell %d, %d: %v", row, col, cause)
		}
	}
}
