package simulate

import (
	"math"
	"slices"
	"testing"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
)

// On any grid a cell has what the sea has at its place, to half a cell of the ocean.
func TestEveryGridShowsTheSameSea(t *testing.T) {
	for _, kind := range Mappings {
		t.Run(string(kind), func(t *testing.T) {
			w, err := New(Config{Product: "blk-chl", Height: 20, Width: 30, Days: 3, Seed: 2, Mapping: kind})
			if err != nil {
				t.Fatal(err)
			}
			g, day := w.Grid(), w.Day(1)
			ocean := w.physical(w.tracer(1))
			moved := 0.0
			if kind == DateLine {
				moved = 180 - (w.recipe.region.west+w.recipe.region.east)/2
			}
			fine, compared := w.chart.grid, 0
			half := math.Hypot(fine.Lat[1]-fine.Lat[0], fine.Lon[1]-fine.Lon[0]) / 2
			for c, v := range day.Truth.Values {
				if v != v { // NaN
					continue
				}
				lat, lon := g.Place(c/g.Width(), c%g.Width())
				near := false
				for k, have := range ocean {
					near = near || have == v && math.Hypot(fine.Lat[k/w.chart.w]-lat, field.Wrap(fine.Lon[k%w.chart.w]+moved-lon)) <= half*1.01
				}
				if !near {
					t.Fatalf("at %g, %g there is %v, and no such water within half a cell", lat, lon, v)
				}
				compared++
			}
			if sea := w.Sea().Count(); compared != sea || sea < 200 {
				t.Errorf("%d of %d cells of the sea have a value", compared, sea)
			}
			granule := w.Granule(w.Schedule()[1])
			file := granule.File
			own := file.Vars[slices.IndexFunc(file.Vars, func(v cdl.Var) bool { return v.Name == "CHL" })]
			stored := cdl.Floats(own.Type, own.Raw)
			for c, v := range granule.Seen.Values {
				if want := float64(v); v != v && stored[c] != colourFill || v == v && stored[c] != want {
					t.Fatalf("cell %d of the file has %v, want %v", c, stored[c], want)
				}
			}
			for i, d := range file.Dims[1:] {
				if want := []int{g.Height(), g.Width()}[i]; d.Len != want || own.Dims[i+1] != d.Name {
					t.Errorf("dimension %v of %v, want a length of %d", d, own.Dims, want)
				}
			}
		})
	}
	if _, err := New(Config{Product: "blk-chl", Mapping: "mercator"}); err == nil {
		t.Error("a grid that nobody knows was laid out")
	}
}
