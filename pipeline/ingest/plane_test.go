package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"lacuna/internal/geo"
	"lacuna/pipeline/field"
)

// A mapCDL describes a file on a projected grid of 6 by 8 cells.
type mapCDL struct {
	mapping     string // attributes of the variable crs
	y, x        []float64
	standardY   string
	standardX   string
	units       string
	coordinates func(y, x float64) (lat, lon float64) // nil: the file has none
	globals     string
}

func polarCDL() mapCDL {
	m := mapCDL{
		mapping: `crs:grid_mapping_name = "polar_stereographic" ; crs:latitude_of_projection_origin = 90. ; crs:straight_vertical_longitude_from_pole = -45. ;
	crs:standard_parallel = 70. ; crs:semi_major_axis = 6378273. ; crs:semi_minor_axis = 6356889.449 ;`,
		standardY: "projection_y_coordinate", standardX: "projection_x_coordinate", units: "km",
	}
	for i := range 6 {
		m.y = append(m.y, 62.5-25*float64(i)) // the pole lies between the third and the fourth row
	}
	for j := range 8 {
		m.x = append(m.x, -87.5+25*float64(j))
	}
	m.coordinates = func(y, x float64) (lat, lon float64) { return polarPlace(1000*y, 1000*x) }
	return m
}

func polarPlace(y, x float64) (lat, lon float64) {
	attrs := map[string]float64{
		"latitude_of_projection_origin": 90, "straight_vertical_longitude_from_pole": -45, "standard_parallel": 70,
		"semi_major_axis": 6378273, "semi_minor_axis": 6356889.449,
	}
	p, err := geo.Of(geo.PolarStereographic, func(name string) (float64, bool) { v, ok := attrs[name]; return v, ok })
	if err != nil {
		panic(err)
	}
	return p.Place(y, x)
}

func rotatedCDL() mapCDL {
	m := mapCDL{
		mapping:   `crs:grid_mapping_name = "rotated_latitude_longitude" ; crs:grid_north_pole_latitude = 39.25 ; crs:grid_north_pole_longitude = -162. ;`,
		standardY: "grid_latitude", standardX: "grid_longitude", units: "degrees",
	}
	for i := range 6 {
		m.y = append(m.y, 10+0.11*float64(i))
	}
	for j := range 8 {
		m.x = append(m.x, -20+0.11*float64(j))
	}
	m.coordinates = geo.Rotated{PoleLat: 39.25, PoleLon: -162}.Place
	return m
}

func (m mapCDL) String() string {
	join := func(all []float64) string {
		var words []string
		for _, v := range all {
			words = append(words, cdlNumber(v))
		}
		return strings.Join(words, ", ")
	}
	var lat, lon, sst []float64
	declared, numbers := "", ""
	for i, y := range m.y {
		for j, x := range m.x {
			sst = append(sst, 10+float64(i)+float64(j)/10)
			if m.coordinates != nil {
				n, e := m.coordinates(y, x)
				lat, lon = append(lat, n), append(lon, e)
			}
		}
	}
	if m.coordinates != nil {
		declared = `float lat(y, x) ; lat:standard_name = "latitude" ; lat:units = "degrees_north" ;
	float lon(y, x) ; lon:standard_name = "longitude" ; lon:units = "degrees_east" ;`
		numbers = fmt.Sprintf("lat = %s ; lon = %s ;", join(lat), join(lon))
	}
	mapping, points := "", ""
	if m.mapping != "" {
		mapping, points = "int crs ; "+m.mapping, `sst:grid_mapping = "crs" ;`
	}
	return fmt.Sprintf(`netcdf projected {
dimensions: time = 1 ; y = %d ; x = %d ;
variables:
	double time(time) ; time:units = "days since 2024-01-01" ;
	double y(y) ; y:standard_name = "%s" ; y:units = "%s" ; y:axis = "Y" ;
	double x(x) ; x:standard_name = "%s" ; x:units = "%s" ; x:axis = "X" ;
	%s
	%s
	float sst(time, y, x) ; sst:standard_name = "sea_surface_temperature" ; sst:units = "degC" ; %s
	%s
data:
 time = 3 ; y = %s ; x = %s ; sst = %s ; %s
}
`, len(m.y), len(m.x), m.standardY, m.units, m.standardX, m.units, mapping, declared, points, m.globals, join(m.y), join(m.x), join(sst), numbers)
}

func TestAProjectedGridHasItsPlacesFromCoordinatesOrFromItsMapping(t *testing.T) {
	for name, make := range map[string]func() mapCDL{"polar": polarCDL, "rotated": rotatedCDL} {
		want := make()
		bare, unmapped := want, want
		bare.coordinates = nil
		unmapped.mapping = ""
		for kind, file := range map[string]mapCDL{"both": want, "mapping only": bare, "coordinates only": unmapped} {
			t.Run(name+", "+kind, func(t *testing.T) {
				g := mustRead(t, ncgen(t, "nc4", "projected.nc", file.String()), Options{})
				grid := g.Fields[0].Grid
				if grid.Plane == nil || grid.Height() != 6 || grid.Width() != 8 {
					t.Fatalf("it is read as %v", grid)
				}
				for c := range grid.Len() {
					lat, lon := grid.Place(c/8, c%8)
					n, e := want.coordinates(want.y[c/8], want.x[c%8])
					if math.Abs(lat-n) > 1e-4 || math.Abs(field.Wrap(lon-e)) > 1e-2 { // near the pole a degree is short
						t.Fatalf("cell %d lies at %g°N %g°E, want %g, %g", c, lat, lon, n, e)
					}
				}
				if up := want.y[1] > want.y[0]; kind != "coordinates only" && up != (grid.Lat[1] > grid.Lat[0]) {
					t.Errorf("it is drawn upside down")
				}
				checkKeptGrid(t, g, file)
			})
		}
	}
}

// checkKeptGrid checks that the source carries axes, mapping and coordinates.
func checkKeptGrid(t *testing.T, g Granule, file mapCDL) {
	t.Helper()
	data, _ := g.Source.Var("sst")
	if !slices.Equal(data.Dims, []string{"time", "y", "x"}) {
		t.Errorf("the variable has the dimensions %v", data.Dims)
	}
	for _, name := range []string{"y", "x", "lat", "lon"} {
		if v, ok := g.Source.Var(name); !ok || len(name) == 3 && !slices.Equal(v.Dims, []string{"y", "x"}) {
			t.Errorf("%s is carried over as %v, %v", name, v.Dims, ok)
		}
	}
	if _, ok := g.Source.Var("crs"); ok != (file.mapping != "") {
		t.Errorf("the mapping is carried over: %v", ok)
	}
}

func TestProjectedGridsThatAreWrongAreRefusedInASentence(t *testing.T) {
	for name, tt := range map[string]struct {
		edit            func(m *mapCDL)
		problem, remedy string
	}{
		"shifted by half a cell": {func(m *mapCDL) {
			place := m.coordinates
			m.coordinates = func(y, x float64) (float64, float64) { return place(y, x+12.5) }
		}, "its coordinates lat and lon disagree with its mapping crs: at row", "ncks -x -v crs"},
		"swapped axes": {func(m *mapCDL) {
			place := m.coordinates
			m.coordinates = func(y, x float64) (float64, float64) { return place(x, y) }
		}, "disagree with its mapping crs", "tell its producer"},
		"latitude and longitude swapped": {func(m *mapCDL) {
			place := m.coordinates
			m.coordinates = func(y, x float64) (float64, float64) { lat, lon := place(y, x); return lon, lat }
		}, "latitude is", "lacuna grid"},
		"axis turns back": {func(m *mapCDL) { m.y[3] = m.y[1] }, "axis y does not run one way", "download"},
		"rows turn back":  {func(m *mapCDL) { m.mapping = ""; m.y[3] = m.y[1] }, "do not run one way: rows and columns cross", "lacuna grid"},
		"cells without place": {func(m *mapCDL) {
			m.mapping = ""
			place := m.coordinates
			m.coordinates = func(y, x float64) (lat, lon float64) {
				if lat, lon = place(y, x); y == m.y[2] {
					lat = math.NaN()
				}
				return lat, lon
			}
		}, "missing at 8 of 48 cells", "lacuna grid"},
		"a swath by its name": {func(m *mapCDL) { m.globals = `:processing_level = "L2P" ;` }, `it is a swath and no grid: its processing_level is "L2P"`, "lacuna grid IN.nc -o DIR"},
		"unknown projection": {func(m *mapCDL) {
			m.mapping = `crs:grid_mapping_name = "lambert_conformal_conic" ;`
			m.coordinates = nil
		}, "lambert_conformal_conic", "cdo remapbil"},
		"no mapping":     {func(m *mapCDL) { m.mapping = ""; m.coordinates = nil }, "no variable has the attribute grid_mapping_name", "cdo remapbil"},
		"half a mapping": {func(m *mapCDL) { m.mapping = `crs:grid_mapping_name = "polar_stereographic" ;` }, "of its mapping crs, latitude_of_projection_origin is NaN", "ncks -x"},
	} {
		t.Run(name, func(t *testing.T) {
			m := polarCDL()
			tt.edit(&m)
			_, err := reader(t, "decode").Read(t.Context(), ncgen(t, "nc4", "projected.nc", m.String()), Options{})
			if b := wantBad(t, err); !strings.Contains(b.Problem, tt.problem) || !strings.Contains(b.Remedy, tt.remedy) {
				t.Errorf("%q, %q; want %q, %q", b.Problem, b.Remedy, tt.problem, tt.remedy)
			}
		})
	}
}

// A projection that is not known does no harm where the cells have coordinates.
func TestCoordinatesOfCellsDoWithoutTheirProjection(t *testing.T) {
	m := polarCDL()
	m.mapping = `crs:grid_mapping_name = "lambert_azimuthal_equal_area" ;`
	g := mustRead(t, ncgen(t, "nc4", "projected.nc", m.String()), Options{})
	if g.Fields[0].Grid.Plane == nil {
		t.Errorf("it is read as %v", g.Fields[0].Grid)
	}
	checkKeptGrid(t, g, m)
}

func TestABoxCutsAProjectedGridToTheRowsAndColumnsInIt(t *testing.T) {
	file := ncgen(t, "nc4", "projected.nc", rotatedCDL().String())
	whole := mustRead(t, file, Options{}).Fields[0]
	lat, lon := whole.Grid.Place(2, 3)
	g := mustRead(t, file, Options{BBox: []float64{lon - 0.01, lat - 0.01, lon + 0.01, lat + 0.2}})
	cut := g.Fields[0]
	if cut.Grid.Len() >= whole.Grid.Len() || cut.Grid.Len() != len(cut.Values) {
		t.Fatalf("%v was cut to %v", whole.Grid, cut.Grid)
	}
	found := false
	for c := range cut.Grid.Len() {
		n, e := cut.Grid.Place(c/cut.Grid.Width(), c%cut.Grid.Width())
		if n == lat && e == lon {
			found = cut.Values[c] == whole.Values[2*8+3]
		}
	}
	if !found {
		t.Error("the cell in the box has another value, or is not there")
	}
	_, err := reader(t, "decode").Read(t.Context(), file, Options{BBox: []float64{100, -10, 110, 0}})
	if b := wantBad(t, err); !strings.Contains(b.Problem, "none of its cells") {
		t.Error(b)
	}
}

// A window of days on one grid has the places of its cells in memory once.
func TestGranulesOfOneGridShareItsPlaces(t *testing.T) {
	r := reader(t, "decode")
	read := func(m mapCDL) *field.Plane {
		g, err := r.Read(t.Context(), ncgen(t, "nc4", "projected.nc", m.String()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return g.Fields[0].Grid.Plane
	}
	first, again, other := read(polarCDL()), read(polarCDL()), read(rotatedCDL())
	if first != again || first == other {
		t.Errorf("the places of one grid are at %p and %p, those of another at %p", first, again, other)
	}
}
