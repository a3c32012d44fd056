package netcdf

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// arctic is shaped like an ice product of OSI SAF: axes in kilometres along a polar
// stereographic projection, and the coordinates of each cell.
func arctic() Product {
	var lat, lon []float64
	for c := range rows * cols {
		lat, lon = append(lat, 80+0.2*float64(c/cols)+0.03*float64(c%cols)), append(lon, -170+0.9*float64(c%cols)-0.2*float64(c/cols))
	}
	src := File{
		Dims: []Dim{{Name: "time", Len: 1}, {Name: "yc", Len: rows}, {Name: "xc", Len: cols}},
		Vars: []Var{
			{Name: "Polar_Stereographic_Grid", Type: "int", Raw: raw("int", 0), Attrs: []Attr{
				{Name: "grid_mapping_name", Value: "polar_stereographic"},
				{Name: "straight_vertical_longitude_from_pole", Value: []float32{-45}},
				{Name: "latitude_of_projection_origin", Value: []float32{90}},
				{Name: "standard_parallel", Value: []float32{70}},
				{Name: "false_easting", Value: []float32{0}},
				{Name: "false_northing", Value: []float32{0}},
				{Name: "semi_major_axis", Value: []float32{6378273}},
				{Name: "semi_minor_axis", Value: []float32{6356889}},
			}},
			{Name: "time", Type: "double", Dims: []string{"time"}, Attrs: []Attr{{Name: "units", Value: "days since 2021-01-01"}}, Raw: raw("double", 5)},
			{Name: "xc", Type: "double", Dims: []string{"xc"}, Raw: raw("double", -1000, -975, -950, -925, -900), Attrs: []Attr{
				{Name: "axis", Value: "X"}, {Name: "units", Value: "km"}, {Name: "long_name", Value: "x coordinate of projection"}, {Name: "standard_name", Value: "projection_x_coordinate"},
			}},
			{Name: "yc", Type: "double", Dims: []string{"yc"}, Raw: raw("double", 500, 475, 450, 425, 400, 375), Attrs: []Attr{
				{Name: "axis", Value: "Y"}, {Name: "units", Value: "km"}, {Name: "long_name", Value: "y coordinate of projection"}, {Name: "standard_name", Value: "projection_y_coordinate"},
			}},
			{Name: "lat", Type: "float", Dims: []string{"yc", "xc"}, Raw: raw("float", lat...), Attrs: []Attr{{Name: "units", Value: "degrees_north"}, {Name: "standard_name", Value: "latitude"}}},
			{Name: "lon", Type: "float", Dims: []string{"yc", "xc"}, Raw: raw("float", lon...), Attrs: []Attr{{Name: "units", Value: "degrees_east"}, {Name: "standard_name", Value: "longitude"}}},
			{Name: "sst", Type: "float", Dims: []string{"time", "yc", "xc"}, Attrs: []Attr{
				{Name: "_FillValue", Value: []float32{-999}}, {Name: "units", Value: "degC"}, {Name: "grid_mapping", Value: "Polar_Stereographic_Grid"},
			}},
		},
	}
	p := product(src, "sst", Identity)
	p.StandardName, p.LongName = "sea_surface_temperature", "sea surface temperature"
	p.Times = []time.Time{day(2021, 1, 6)}
	return fill(p, func(i int) float64 { return 1 + 0.11*float64(i) })
}

// rotated is a file without a time dimension on a rotated pole, whose variable
// names its coordinates.
func rotated() Product {
	p := arctic()
	src := &p.Source
	src.Dims = []Dim{{Name: "rlat", Len: rows}, {Name: "rlon", Len: cols}}
	src.Vars = slices.DeleteFunc(src.Vars, func(v Var) bool { return v.Name == "time" })
	for i := range src.Vars {
		v := &src.Vars[i]
		switch v.Name {
		case "Polar_Stereographic_Grid":
			v.Name, v.Attrs = "rotated_pole", []Attr{
				{Name: "grid_mapping_name", Value: "rotated_latitude_longitude"},
				{Name: "grid_north_pole_latitude", Value: []float64{39.25}},
				{Name: "grid_north_pole_longitude", Value: []float64{-162}},
			}
		case "xc":
			v.Name, v.Dims, v.Raw = "rlon", []string{"rlon"}, raw("double", -5, -4.9, -4.8, -4.7, -4.6)
			v.Attrs = []Attr{{Name: "units", Value: "degrees"}, {Name: "standard_name", Value: "grid_longitude"}, {Name: "long_name", Value: "longitude about the rotated pole"}, {Name: "axis", Value: "X"}}
		case "yc":
			v.Name, v.Dims, v.Raw = "rlat", []string{"rlat"}, raw("double", 5, 4.9, 4.8, 4.7, 4.6, 4.5)
			v.Attrs = []Attr{{Name: "units", Value: "degrees"}, {Name: "standard_name", Value: "grid_latitude"}, {Name: "long_name", Value: "latitude about the rotated pole"}, {Name: "axis", Value: "Y"}}
		default:
			v.Dims = []string{"rlat", "rlon"}
			if v.Name == "sst" {
				v.Attrs = with(with(v.Attrs, "grid_mapping", "rotated_pole"), "coordinates", "lat lon")
			}
		}
	}
	return p
}

// A product keeps the granule's own grid: its axes, its mapping and the
// coordinates of its cells, byte by byte, and every map of it points at them.
func TestAProductKeepsTheProjectionOfItsInput(t *testing.T) {
	for name, tt := range map[string]struct {
		product Product
		mapping string
		axes    []string
	}{
		"polar": {arctic(), "Polar_Stereographic_Grid", []string{"yc", "xc"}}, "rotated": {rotated(), "rotated_pole", []string{"rlat", "rlon"}},
	} {
		f, err := tt.product.File()
		if err != nil {
			t.Fatal(err)
		}
		for _, kept := range append(tt.axes, "lat", "lon", tt.mapping) {
			before, _ := tt.product.Source.variable(kept)
			after, ok := f.variable(kept)
			if !ok || !slices.Equal(before.Raw, after.Raw) || !slices.Equal(before.Dims, after.Dims) {
				t.Errorf("%s: %s(%v) was %s(%v)", name, kept, after.Dims, kept, before.Dims)
			}
		}
		if lat, _ := f.variable("lat"); text(lat.Attrs, "axis") != "" {
			t.Errorf("%s: lat of each cell is the axis %s", name, text(lat.Attrs, "axis"))
		}
		for _, v := range f.Vars {
			if !f.isField(v) || v.Name == "lat" || v.Name == "lon" {
				continue
			}
			words := strings.Fields(text(v.Attrs, "coordinates"))
			if text(v.Attrs, "grid_mapping") != tt.mapping || !slices.Contains(words, "lat") || !slices.Contains(words, "lon") {
				t.Errorf("%s: %s has the mapping %q and the coordinates %v", name, v.Name, text(v.Attrs, "grid_mapping"), words)
			}
		}
		data, _ := f.variable("sst")
		if words := strings.Fields(text(data.Attrs, "ancillary_variables")); slices.Contains(words, "lat") {
			t.Errorf("%s: its ancillary variables are %v", name, words)
		}
	}
}
