package ingest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
)

// planeCDL is a file with lat(y, x) and lon(y, x) as place says, and a map whose
// value in row i, column j is 10 + i + j / 10.
func planeCDL(height, width int, extra string, place func(i, j int) (lat, lon float64)) string {
	var lat, lon, sst []string
	for i := range height {
		for j := range width {
			y, x := place(i, j)
			lat, lon = append(lat, cdlNumber(y)), append(lon, cdlNumber(x))
			sst = append(sst, fmt.Sprintf("%g", 10+float64(i)+float64(j)/10))
		}
	}
	return fmt.Sprintf(`netcdf plane {
dimensions: time = 1 ; y = %d ; x = %d ; nv = 4 ;
variables:
	double time(time) ; time:units = "days since 2024-01-01" ;
	float lat(y, x) ; lat:standard_name = "latitude" ; lat:units = "degrees_north" ; lat:_FillValue = -999.f ; lat:bounds = "lat_corners" ;
	float lon(y, x) ; lon:standard_name = "longitude" ; lon:units = "degrees_east" ; lon:_FillValue = -999.f ;
	float lat_corners(y, x, nv) ;
	float sst(time, y, x) ; sst:standard_name = "sea_surface_temperature" ; sst:units = "degC" ; sst:coordinates = "lon" ;
	%s
data:
 time = 3 ; lat = %s ; lon = %s ; sst = %s ;
}
`, height, width, extra, strings.Join(lat, ", "), strings.Join(lon, ", "), strings.Join(sst, ", "))
}

func cdlNumber(x float64) string {
	if math.IsNaN(x) {
		return "_"
	}
	return fmt.Sprintf("%.9g", x)
}

// third is a place on a grid of thirds of a degree, which no float32 holds exactly,
// with the noise of a projection there and back.
func third(i, j int) (lat, lon float64) {
	noise := 1e-4 * math.Sin(float64(7*i+13*j))
	return 44 - float64(i)/3 + noise, 27 + float64(j)/3 - noise
}

func TestCoordinatesThatAreMapsOfARegularGridAreItsAxes(t *testing.T) {
	for name, tt := range map[string]struct {
		extra string
		place func(i, j int) (float64, float64)
		note  string
	}{
		"rounded": {place: third},
		"over land none": {place: func(i, j int) (float64, float64) {
			if i > 0 && j > 1 {
				return math.NaN(), math.NaN()
			}
			return third(i, j)
		}},
		"indices beside them": {place: third, extra: "float x(x) ; float y(y) ;"},
	} {
		t.Run(name, func(t *testing.T) {
			g := mustRead(t, ncgen(t, "nc4", "plane.nc", planeCDL(4, 6, tt.extra, tt.place)), Options{})
			want := field.Grid{}
			for i := range 4 {
				want.Lat = append(want.Lat, 44-float64(i)/3)
			}
			for j := range 6 {
				want.Lon = append(want.Lon, 27+float64(j)/3)
			}
			if got := g.Fields[0].Grid; !got.Same(want) {
				t.Fatalf("grid is %v %v, want %v %v", got.Lat, got.Lon, want.Lat, want.Lon)
			}
			if v := g.Fields[0].Values; v[0] != 10 || v[1] != 10.1 || v[6] != 11 {
				t.Errorf("values are %v: rows and columns are mixed up", v)
			}
			if !slices.ContainsFunc(g.Notes, func(n string) bool { return strings.Contains(n, "maps of a regular grid") }) {
				t.Errorf("nobody is told: %q", g.Notes)
			}
			checkCarriedAxes(t, g, tt.extra != "")
		})
	}
}

// checkCarriedAxes checks that a product of g would have axes of one dimension,
// which is called like them unless its name is that of another variable.
func checkCarriedAxes(t *testing.T, g Granule, taken bool) {
	t.Helper()
	dims, coordinates := map[string]string{"lat": "lat", "lon": "lon"}, ""
	if taken {
		dims, coordinates = map[string]string{"lat": "y", "lon": "x"}, "lat lon"
	}
	for name, dim := range dims {
		v, ok := g.Source.Var(name)
		axis := g.Fields[0].Grid.Lat
		if name == "lon" {
			axis = g.Fields[0].Grid.Lon
		}
		if !ok || !slices.Equal(v.Dims, []string{dim}) || len(v.Raw) != 4*len(axis) {
			t.Fatalf("%s is carried over as %s%v with %d bytes", name, v.Type, v.Dims, len(v.Raw))
		}
		for i, want := range axis {
			if got := math.Float32frombits(binary.LittleEndian.Uint32(v.Raw[4*i:])); math.Abs(float64(got)-want) > 1e-5 {
				t.Errorf("%s[%d] is carried over as %g, want %g", name, i, got, want)
			}
		}
		if slices.ContainsFunc(v.Attrs, func(a Attr) bool { return a.Name == "_FillValue" }) {
			t.Errorf("%s keeps a fill value", name)
		}
	}
	sst, _ := g.Source.Var("sst")
	if got := textIn(sst.Attrs, "coordinates"); got != coordinates || !slices.Equal(sst.Dims, []string{"time", dims["lat"], dims["lon"]}) {
		t.Errorf("sst%v has the coordinates %q, want %q", sst.Dims, got, coordinates)
	}
	for _, d := range g.Source.Dims {
		if d.Name != "time" && d.Name != dims["lat"] && d.Name != dims["lon"] {
			t.Errorf("dimension %s is carried over", d.Name)
		}
	}
	if _, ok := g.Source.Var("lat_corners"); ok {
		t.Error("corners of cells are carried over without the map that they belong to")
	}
}

func TestCoordinatesOfNoRegularGridAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		place           func(i, j int) (float64, float64)
		problem, remedy string
	}{
		"the other way":  {func(i, j int) (float64, float64) { return 44 + 0.3*float64(j), 27 + 0.3*float64(i) }, "latitude runs along x", "ncpdq -a x,y"},
		"a row without":  {func(i, j int) (float64, float64) { return [4]float64{44, math.NaN(), 45, 46}[i], 27 + float64(j) }, "latitude axis has NaN at index 1", "download"},
		"it turns back":  {func(i, j int) (float64, float64) { return 44 + float64(i), [6]float64{1, 2, 3, 2.5, 4, 5}[j] }, "does not run one way", "download"},
		"no coordinates": {func(int, int) (float64, float64) { return math.NaN(), math.NaN() }, "latitude axis has NaN", "download"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := reader(t, "decode").Read(t.Context(), ncgen(t, "nc4", "plane.nc", planeCDL(4, 6, "", tt.place)), Options{})
			if b := wantBad(t, err); !strings.Contains(b.Problem, tt.problem) || !strings.Contains(b.Remedy, tt.remedy) {
				t.Errorf("%q, %q; want %q, %q", b.Problem, b.Remedy, tt.problem, tt.remedy)
			}
		})
	}
}

// lineCDL is a file whose longitudes are stored as type says, across the date line.
func lineCDL(typ, attrs, lon, bounds string) string {
	return fmt.Sprintf(`netcdf line {
dimensions: time = 1 ; lat = 2 ; lon = 5 ; nv = 2 ;
variables:
	double time(time) ; time:units = "days since 2024-01-01" ;
	double lat(lat) ; lat:units = "degrees_north" ;
	%s lon(lon) ; lon:units = "degrees_east" ; lon:bounds = "lon_bnds" ; %s
	double lon_bnds(lon, nv) ;
	float sst(time, lat, lon) ; sst:standard_name = "sea_surface_temperature" ; sst:units = "degC" ;
data:
 time = 3 ; lat = -10, -9 ; lon = %s ; lon_bnds = %s ;
 sst = 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 ;
}
`, typ, attrs, lon, bounds)
}

func TestLongitudesThatWrapAreCountedOn(t *testing.T) {
	const bounds = "177.5, 178.5, 178.5, 179.5, 179.5, -179.5, -179.5, -178.5, -178.5, -177.5"
	counted := []float64{178, 179, 180, 181, 182}
	for name, tt := range map[string]struct {
		typ, attrs, lon string
		want            []float64
		kind            string // type in the product
		same            bool   // carried over unchanged
	}{
		"single precision":  {typ: "float", attrs: "lon:valid_max = 180.f ;", lon: "178, 179, 180, -179, -178", want: counted, kind: "float"},
		"double precision":  {typ: "double", lon: "178, 179, -180, -179, -178", want: counted, kind: "double"},
		"packed":            {typ: "short", attrs: "lon:scale_factor = 0.01 ; lon:_FillValue = -32767s ;", lon: "17800, 17900, 18000, -17900, -17800", want: counted, kind: "double"},
		"already counted":   {typ: "float", lon: "178, 179, 180, 181, 182", want: counted, kind: "float", same: true},
		"across Greenwich":  {typ: "double", lon: "358, 359, 0, 1, 2", want: []float64{358, 359, 360, 361, 362}, kind: "double"},
		"westwards":         {typ: "double", lon: "-178, -179, 180, 179, 178", want: []float64{-178, -179, -180, -181, -182}, kind: "double"},
		"beyond the circle": {typ: "double", lon: "170, 175, 180, 185, 190", want: []float64{170, 175, 180, 185, 190}, kind: "double", same: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := mustRead(t, ncgen(t, "nc4", "line.nc", lineCDL(tt.typ, tt.attrs, tt.lon, bounds)), Options{})
			if got := g.Fields[0].Grid.Lon; !slices.Equal(got, tt.want) {
				t.Fatalf("longitudes are %v, want %v", got, tt.want)
			}
			v, _ := g.Source.Var("lon")
			carried := cdl.Floats(v.Type, v.Raw)
			if v.Type != tt.kind || !slices.Equal(carried, tt.want) {
				t.Errorf("a product would have %s %v, want %s %v", v.Type, carried, tt.kind, tt.want)
			}
			limited := slices.ContainsFunc(v.Attrs, func(a Attr) bool {
				return slices.Contains([]string{"valid_max", "scale_factor", "_FillValue"}, a.Name)
			})
			told := slices.ContainsFunc(g.Notes, func(n string) bool { return strings.Contains(n, "counted on") })
			if limited || told == tt.same {
				t.Errorf("attributes %v, notes %q", v.Attrs, g.Notes)
			}
			b, ok := g.Source.Var("lon_bnds")
			if x := cdl.Floats(b.Type, b.Raw); name == "single precision" && (!ok || !slices.Equal(x, []float64{177.5, 178.5, 178.5, 179.5, 179.5, 180.5, 180.5, 181.5, 181.5, 182.5})) {
				t.Errorf("bounds would be %v", x)
			}
			if f := g.Fields[0].Values; f[2] != 22 || f[3] != 23 {
				t.Errorf("values moved: %v", f)
			}
		})
	}
}

func TestMapsOfLongitudesMayWrapToo(t *testing.T) {
	g := mustRead(t, ncgen(t, "nc4", "plane.nc", planeCDL(3, 5, "", func(i, j int) (float64, float64) {
		lon := 179 + float64(j)/2 // 179, 179.5, 180, 180.5, 181
		if j == 2 && i > 0 {
			return -float64(i), -180 // one column, written as 180 and as -180
		}
		return -float64(i), field.Wrap(lon-1e-9) + 1e-9
	})), Options{})
	if got := g.Fields[0].Grid.Lon; !slices.EqualFunc(got, []float64{179, 179.5, 180, 180.5, 181}, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) {
		t.Errorf("longitudes are %v", got)
	}
	checkCarriedAxes(t, g, false)
}

func TestASeaMaskMayUseAnotherConventionOfLongitudes(t *testing.T) {
	cdl := strings.Replace(lineCDL("double", "", "178, 179, 180, 181, 182", "0,0,0,0,0,0,0,0,0,0"), "sst(time,", "sea(time,", 1)
	cdl = strings.NewReplacer("sst:standard_name = \"sea_surface_temperature\" ; sst:units = \"degC\" ;", "", "sst = 20, 21, 22, 23, 24, 25, 26, 27, 28, 29", "sea = 1, 1, 0, 1, 1, 1, 1, 1, 1, 0").Replace(cdl)
	grid := field.Grid{Lat: []float64{-10, -9}, Lon: field.Unwrap([]float64{-182, -181, -180, -179, -178})}
	sea, err := reader(t, "decode").ReadSea(t.Context(), ncgen(t, "nc4", "sea.nc", cdl), grid)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sea, field.Mask{true, true, false, true, true, true, true, true, true, false}) {
		t.Errorf("sea is %v", sea)
	}
}
