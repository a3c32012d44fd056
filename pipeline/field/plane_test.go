package field

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"lacuna/internal/geo"
)

// polarGrid returns a grid of the polar stereographic projection about the north
// pole, true at 70 degrees, with its corner and its step in kilometres.
func polarGrid(t *testing.T, height, width int, topKM, leftKM, stepKM float64) Grid {
	t.Helper()
	attrs := map[string]float64{"latitude_of_projection_origin": 90, "straight_vertical_longitude_from_pole": -45, "standard_parallel": 70}
	p, err := geo.Of(geo.PolarStereographic, func(name string) (float64, bool) { v, ok := attrs[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	lat, lon := make([]float64, height*width), make([]float64, height*width)
	for c := range lat {
		lat[c], lon[c] = p.Place(1000*(topKM-float64(c/width)*stepKM), 1000*(leftKM+float64(c%width)*stepKM))
	}
	g, err := NewPlane(lat, lon, width, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAPolarGridKnowsItsPlacesStepsAndExtent(t *testing.T) {
	g := polarGrid(t, 41, 61, 500, -750, 25) // the pole is its middle cell
	if lat, _ := g.Place(20, 30); math.Abs(lat-90) > 1e-9 {
		t.Errorf("the middle cell lies at %g°N", lat)
	}
	// At the pole the projection is smaller by 1.03 than at 70 degrees, where it is true.
	if step := g.StepKM(); math.Abs(step-25*1.03) > 0.15 {
		t.Errorf("a step is %g km", step)
	}
	south, north, west, east := g.Bounds()
	if math.Abs(south-81.69) > 0.01 || north < 90-1e-9 || west != -180 || east != 180 {
		t.Errorf("it extends from %g to %g°N, %g to %g°E", south, north, west, east)
	}
	if g.Periodic() {
		t.Error("it closes")
	}
	if g.Lat[0] < g.Lat[40] || g.Lon[0] > g.Lon[60] || math.Abs(g.Lat[20]) > 0.01 {
		t.Errorf("rows run from %g to %g, columns from %g to %g", g.Lat[0], g.Lat[40], g.Lon[0], g.Lon[60])
	}
}

// Cells on either side of the pole are neighbours, whatever their longitudes.
func TestDistancesCrossThePole(t *testing.T) {
	g := polarGrid(t, 4, 4, 37.5, -37.5, 25) // the pole lies between the middle cells
	across := g.vector(1, 1).apart(g.vector(2, 2))
	if want := 25 * 1.03 * math.Sqrt2; math.Abs(across-want) > 0.2 {
		t.Errorf("two cells about the pole are %g km apart, want %g", across, want)
	}
}

func TestAnExtentAcrossTheDateLineIsOne(t *testing.T) {
	lat, lon := make([]float64, 6), []float64{178, 180, -178, 178.5, -179.5, -177.5}
	for c := range lat {
		lat[c] = 10 + float64(c/3)
	}
	g, err := NewPlane(lat, lon, 3, true, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, west, east := g.Bounds(); west != 178 || east != 182.5 {
		t.Errorf("it extends from %g to %g°E, want 178 to 182.5", west, east)
	}
}

func TestAShiftedPlaneIsAnotherGridAndARoundedOneIsNot(t *testing.T) {
	g := polarGrid(t, 20, 30, 500, -750, 25)
	rounded := Plane{Width: 30}
	for c := range g.Plane.Lat {
		rounded.Lat, rounded.Lon = append(rounded.Lat, float64(float32(g.Plane.Lat[c]))), append(rounded.Lon, float64(float32(g.Plane.Lon[c]))+360)
	}
	if !g.Same(Grid{Lat: g.Lat, Lon: g.Lon, Plane: &rounded}) {
		t.Error("in single precision, and counted from 0, it is another grid")
	}
	for name, o := range map[string]Grid{
		"a fifth of a cell to the right": polarGrid(t, 20, 30, 500, -745, 25),
		"a row less":                     polarGrid(t, 19, 30, 500, -750, 25),
		"no plane":                       {Lat: g.Lat, Lon: g.Lon},
	} {
		if g.Same(o) || o.Same(g) {
			t.Errorf("%s: it counts as the same", name)
		}
	}
}

func TestAPlaneIsKnownAgainFromJSON(t *testing.T) {
	g := polarGrid(t, 200, 300, 500, -750, 5)
	data, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 20_000 {
		t.Errorf("%d bytes for a row of the ledger", len(data))
	}
	var back Grid
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !g.Same(back) || !back.Same(g) || back.String() != g.String() {
		t.Errorf("%v came back as %v", g, back)
	}
	if other := polarGrid(t, 200, 300, 500, -749, 5); other.Same(back) {
		t.Error("a grid a fifth of a cell off counts as the same")
	}
	again, err := json.Marshal(back)
	if err != nil || string(again) != string(data) {
		t.Errorf("written again it is %.100s, %v", again, err)
	}
	if data, err = json.Marshal(Grid{Lat: []float64{1}, Lon: []float64{2}}); err != nil || string(data) != `{"Lat":[1],"Lon":[2]}` {
		t.Errorf("a grid without a plane is %s, %v: ledgers have it otherwise", data, err)
	}
}

func TestCoordinatesThatMakeNoGridAreNamed(t *testing.T) {
	sound := func() (lat, lon []float64) {
		g := polarGrid(t, 4, 5, 500, -750, 25)
		return g.Plane.Lat, g.Plane.Lon
	}
	for want, spoil := range map[string]func(lat, lon []float64){
		"missing at 2 of 20 cells":                        func(lat, lon []float64) { lat[3], lon[7] = math.NaN(), math.Inf(1) },
		"latitude is 125 at row 0, column 2":              func(lat, _ []float64) { lat[2] = 125 },
		"longitude is 1e+20 at row 1, column 0":           func(_, lon []float64) { lon[5] = 1e20 },
		"do not run one way: rows and columns cross":      func(lat, lon []float64) { lat[7], lat[8], lon[7], lon[8] = lat[8], lat[7], lon[8], lon[7] },
		"or cells share a place, at row 1, column":        func(lat, lon []float64) { copy(lat[10:15], lat[5:10]); copy(lon[10:15], lon[5:10]) },
		"19 latitudes and 20 longitudes are not those of": nil,
	} {
		lat, lon := sound()
		if spoil == nil {
			lat = lat[1:]
		} else {
			spoil(lat, lon)
		}
		if _, err := NewPlane(lat, lon, 5, false, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Round a pole a grid of circles and rays closes, as one of latitudes does.
func TestARingCloses(t *testing.T) {
	const width = 36
	ring := func(columns int) Grid {
		lat, lon := make([]float64, 5*columns), make([]float64, 5*columns)
		for c := range lat {
			lat[c], lon[c] = 60+3*float64(c/columns), 10*float64(c%columns)+2*float64(c/columns) // slanted, so that it is no regular grid
		}
		g, err := NewPlane(lat, lon, columns, true, false)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if !ring(width).Periodic() {
		t.Error("a full ring does not close")
	}
	if ring(width-3).Periodic() || ring(width+1).Periodic() {
		t.Error("a ring with a hole, or with a column twice, closes")
	}
}

func TestAWindowOfAPlaneGoesOnBeyondTheEdges(t *testing.T) {
	g := polarGrid(t, 30, 40, 500, -750, 25)
	whole := polarGrid(t, 34, 46, 550, -825, 25) // two rows and three columns more on each side
	cut := g.Cut(-2, -3, 34, 46)
	for c := range cut.Plane.Lat {
		if off := cut.vector(c/46, c%46).apart(whole.vector(c/46, c%46)); off > 0.5 {
			t.Fatalf("row %d, column %d is %g km off", c/46, c%46, off)
		}
	}
	if inner := whole.Cut(2, 3, 30, 40); !inner.Same(g) {
		t.Error("the window of the larger grid is not the smaller one")
	}
}

func TestACoarsePlaneHasTheMiddlesOfItsSquares(t *testing.T) {
	g := polarGrid(t, 9, 12, 500, -750, 25)
	coarse := g.Coarse(3)
	if want := polarGrid(t, 3, 4, 475, -725, 75); !coarse.Same(want) {
		t.Errorf("%v, want %v", coarse, want)
	}
}
