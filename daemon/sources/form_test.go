package sources

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// An axis that runs the other way is turned; another place is another grid.
func TestFieldsAreBroughtToTheOrderOfTheDataset(t *testing.T) {
	to := field.Grid{Lat: []float64{40, 41}, Lon: []float64{27, 28, 29}}
	for _, tt := range []struct {
		name string
		from field.Grid
		want []float32 // of the numbers 0 to 5; nil: not the same cells
	}{
		{"the same", to, []float32{0, 1, 2, 3, 4, 5}},
		{"north first", field.Grid{Lat: []float64{41, 40}, Lon: to.Lon}, []float32{3, 4, 5, 0, 1, 2}},
		{"east first", field.Grid{Lat: to.Lat, Lon: []float64{29, 28, 27}}, []float32{2, 1, 0, 5, 4, 3}},
		{"both", field.Grid{Lat: []float64{41, 40}, Lon: []float64{29, 28, 27}}, []float32{5, 4, 3, 2, 1, 0}},
		{"from 0 to 360", field.Grid{Lat: to.Lat, Lon: []float64{387, 388, 389}}, []float32{0, 1, 2, 3, 4, 5}},
		{"shifted by half a cell", field.Grid{Lat: []float64{40.5, 41.5}, Lon: to.Lon}, nil},
	} {
		order, ok := alike(tt.from, to)
		if ok != (tt.want != nil) {
			t.Errorf("%s: the same cells: %v", tt.name, ok)
			continue
		}
		if ok {
			if got := order([]float32{0, 1, 2, 3, 4, 5}); !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

// Of a file only what describes the plane is kept: no quality of one source, and no
// time.
func TestAMergedGranuleHasTheCoordinatesOfItsSource(t *testing.T) {
	numbers := func(n int) []byte { return make([]byte, 4*n) }
	v := func(name string, dims ...string) ingest.Var {
		n := 1
		for _, d := range dims {
			n *= map[string]int{"time": 3, "lat": 2, "lon": 2, "nv": 2, "depth": 1}[d]
		}
		return ingest.Var{Name: name, Type: "float", Dims: dims, Raw: numbers(n)}
	}
	chl := v("CHL", "time", "depth", "lat", "lon")
	chl.Attrs = []ingest.Attr{{Name: "units", Value: "mg m-3"}, {Name: "grid_mapping", Value: "crs"}, {Name: "scale_factor", Value: []float32{2}}}
	g := ingest.Granule{
		Fields: []field.Field{{Grid: field.Grid{Lat: []float64{40, 41}, Lon: []float64{27, 28}}}},
		Source: ingest.Source{
			Variable: "CHL",
			Dims:     []ingest.Dim{{Name: "time", Len: 3}, {Name: "depth", Len: 1}, {Name: "lat", Len: 2}, {Name: "lon", Len: 2}, {Name: "nv", Len: 2}},
			Vars:     []ingest.Var{v("time", "time"), v("time_bnds", "time", "nv"), v("depth", "depth"), v("lat", "lat"), v("lon", "lon"), v("lat_bnds", "lat", "nv"), v("crs"), chl, v("quality", "time", "lat", "lon"), v("flags", "lat", "lon")},
		},
	}
	f := formOf(g)
	var kept []string
	for _, c := range f.coords {
		kept = append(kept, c.Name)
	}
	if want := []string{"lat", "lon", "lat_bnds", "crs"}; !slices.Equal(kept, want) {
		t.Errorf("coordinates are %v, want %v", kept, want)
	}
	if want := []string{"time", "lat", "lon"}; !slices.Equal(f.variable.Dims, want) || len(f.variable.Attrs) != 2 {
		t.Errorf("the variable is %+v, want it on %v without packing", f.variable, want)
	}
	for _, d := range f.dims {
		if d.Name == "depth" || d.Name == "time" && d.Len != 1 || d.Name != "time" && d.Len != 2 {
			t.Errorf("dimension %+v", d)
		}
	}
	raw := floats([]float32{1.5})
	if got := math.Float32frombits(binary.LittleEndian.Uint32(raw)); got != 1.5 {
		t.Errorf("1.5 is stored as %v", got)
	}
}
