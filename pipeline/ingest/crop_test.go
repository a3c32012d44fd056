package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/field"
)

// cropCDL has two maps of 5 by 8 cells with errors, quality, a sea mask and
// bounds; the value at map t, row y and column x is 100t + 10y + x.
func cropCDL(lon ...string) string {
	var values, errs, quality, sea, bounds []string
	for t := range 2 {
		for y := range 5 {
			for x := range 8 {
				values = append(values, fmt.Sprint(100*t+10*y+x))
				errs = append(errs, fmt.Sprint(1+y))
				quality = append(quality, fmt.Sprint((y+x)%2))
			}
		}
	}
	for y := range 5 {
		bounds = append(bounds, fmt.Sprintf("%g, %g", 39.5+float64(y), 40.5+float64(y)))
		for x := range 8 {
			sea = append(sea, fmt.Sprint(min(1, x)))
		}
	}
	list := func(of []string) string { return strings.Join(of, ", ") }
	return `netcdf c { dimensions: time = 2 ; lat = 5 ; lon = 8 ; nv = 2 ;
variables: double time(time) ; time:units = "days since 2024-05-01" ;
double lat(lat) ; lat:units = "degrees_north" ; lat:bounds = "lat_bnds" ; double lat_bnds(lat, nv) ;
float lon(lon) ; lon:units = "degrees_east" ;
short v(time, lat, lon) ; v:standard_name = "sea_surface_temperature" ; v:units = "degC" ; v:_FillValue = -1s ; v:scale_factor = 0.01 ;
float v_error(time, lat, lon) ; v_error:units = "degC" ; byte q(time, lat, lon) ; byte sea(lat, lon) ;
data: time = 0, 1 ; lat = 40, 41, 42, 43, 44 ; lon = ` + list(lon) + ` ; lat_bnds = ` + list(bounds) + ` ;
v = ` + list(values) + ` ; v_error = ` + list(errs) + ` ; q = ` + list(quality) + ` ; sea = ` + list(sea) + ` ; }`
}

func TestABBoxCutsEverythingAlike(t *testing.T) {
	path := ncgen(t, "nc4", "c.nc", cropCDL("10", "11", "12", "13", "14", "15", "16", "17"))
	opt := Options{Quality: []string{"q == 1"}}
	whole := mustRead(t, path, opt)
	opt.BBox = []float64{12.5, 40.5, 15, 43}
	cut := mustRead(t, path, opt)
	const row, column = 1, 3 // where the box begins
	if want := (field.Grid{Lat: []float64{41, 42, 43}, Lon: []float64{13, 14, 15}}); !cut.Fields[1].Grid.Same(want) {
		t.Fatalf("the grid is %v", cut.Fields[1].Grid)
	}
	for k := range 2 {
		for y := range 3 {
			for x := range 3 {
				from, to := (y+row)*8+x+column, y*3+x
				same := func(a, b float32) bool { return a == b || a != a && b != b }
				if !same(cut.Fields[k].Values[to], whole.Fields[k].Values[from]) || !same(cut.Errors[k][to], whole.Errors[k][from]) ||
					cut.Rejected[k][to] != whole.Rejected[k][from] || cut.Fields[k].Sea[to] != whole.Fields[k].Sea[from] {
					t.Errorf("map %d, row %d, column %d is not that of the whole granule", k, y, x)
				}
			}
		}
	}
	v, _ := cut.Source.Var("v")
	if len(v.Raw) != 2*2*3*3 || v.Raw[2*9] != 114-1 { // 113 at map 1, row 1, column 3, as a short
		t.Errorf("the source has %d bytes, that of map 1 begin with %d", len(v.Raw), v.Raw[2*9])
	}
	bounds, _ := cut.Source.Var("lat_bnds")
	if len(bounds.Raw) != 3*2*8 {
		t.Errorf("the bounds have %d bytes, want those of 3 rows", len(bounds.Raw))
	}
	for _, d := range cut.Source.Dims {
		if want := map[string]int{"time": 2, "lat": 3, "lon": 3, "nv": 2}[d.Name]; d.Len != want {
			t.Errorf("dimension %s has the length %d, want %d", d.Name, d.Len, want)
		}
	}
}

func TestABBoxAcrossTheEdgeOfTheGridIsOneMap(t *testing.T) {
	path := ncgen(t, "nc4", "c.nc", cropCDL("-180", "-135", "-90", "-45", "0", "45", "90", "135"))
	g := mustRead(t, path, Options{BBox: []float64{80, 41, -130, 42}})
	f := g.Fields[0]
	if !slices.Equal(f.Grid.Lon, []float64{90, 135, 180, 225}) || !slices.Equal(f.Grid.Lat, []float64{41, 42}) {
		t.Fatalf("the grid is %v by %v", f.Grid.Lat, f.Grid.Lon)
	}
	for i, want := range []float32{.16, .17, .10, .11, .26, .27, .20, .21} {
		if f.Values[i] != want {
			t.Errorf("cell %d is %v, want %v", i, f.Values[i], want)
		}
	}
}

func TestABBoxBesideTheGridIsToldWithTheGrid(t *testing.T) {
	path := ncgen(t, "nc4", "c.nc", cropCDL("10", "11", "12", "13", "14", "15", "16", "17"))
	_, err := reader(t, "decode").Read(t.Context(), path, Options{BBox: []float64{-40, 40, -30, 42}})
	if err == nil || !strings.Contains(err.Error(), "no longitude lies in the bbox -40,40,-30,42; the grid has 10 to 17") {
		t.Errorf("%v", err)
	}
}

func TestAMaskOfTheWholeGridServesABBox(t *testing.T) {
	path := ncgen(t, "nc4", "c.nc", cropCDL("10", "11", "12", "13", "14", "15", "16", "17"))
	grid := mustRead(t, path, Options{BBox: []float64{10, 41, 11, 42}}).Fields[0].Grid
	mask, err := reader(t, "decode").ReadSea(t.Context(), path, grid)
	if err != nil || !slices.Equal(mask, field.Mask{false, true, false, true}) {
		t.Errorf("ReadSea() = %v, %v", mask, err)
	}
}
