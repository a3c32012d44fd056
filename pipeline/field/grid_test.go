package field

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestNewGridNamesTheFaultOfAnAxis(t *testing.T) {
	up := []float64{40, 41, 42}
	tests := []struct {
		name     string
		lat, lon []float64
		want     string // part of the message; empty: valid
	}{
		{name: "ascending", lat: up, lon: up},
		{name: "descending latitudes", lat: []float64{42, 41, 40}, lon: up},
		{name: "longitudes from 0 to 360", lat: up, lon: []float64{0.5, 180, 359.5}},
		{name: "sine-spaced latitudes of the EASE grid", lat: []float64{-83.5, -78, -30, 0, 30, 78, 83.5}, lon: up},
		{name: "pole in single precision", lat: []float64{0, float64(float32(90.000004))}, lon: up},
		{name: "one cell", lat: []float64{1}, lon: []float64{2}},
		{name: "empty", lat: nil, lon: up, want: "latitude axis is empty"},
		{name: "nan", lat: up, lon: []float64{1, math.NaN(), 3}, want: "longitude axis has NaN at index 1"},
		{name: "beyond the pole", lat: []float64{80, 91}, lon: up, want: "outside -90..90"},
		{name: "turns back", lat: []float64{1, 2, 1.5}, lon: up, want: "does not run one way: 1.5 follows 2"},
		{name: "repeats at the start", lat: []float64{1, 1, 2}, lon: up, want: "does not run one way"},
		{name: "more than a circle", lat: up, lon: []float64{-180, 0, 200}, want: "spans 380 degrees"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewGrid(tt.lat, tt.lon)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("NewGrid() = %v, want no error", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("NewGrid() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

func axis(start, step float64, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = start + float64(i)*step
	}
	return x
}

func TestSameToleratesRoundingButNotAShift(t *testing.T) {
	g := Grid{Lat: axis(40, 8.0/789, 790), Lon: axis(26.5, 15.5/1100, 1101)}
	single := Grid{Lat: append([]float64(nil), g.Lat...), Lon: append([]float64(nil), g.Lon...)}
	for i := range single.Lat {
		single.Lat[i] = float64(float32(single.Lat[i]))
	}
	if !g.Same(single) {
		t.Error("the same grid in single precision counts as another grid")
	}
	shifted := Grid{Lat: g.Lat, Lon: axis(26.5+0.2*15.5/1100, 15.5/1100, 1101)}
	if g.Same(shifted) {
		t.Error("a shift of a fifth of a cell goes unnoticed")
	}
	flipped := Grid{Lat: axis(48, -8.0/789, 790), Lon: g.Lon}
	if g.Same(flipped) {
		t.Error("a flipped axis goes unnoticed")
	}
	if g.Same(Grid{Lat: g.Lat[1:], Lon: g.Lon}) {
		t.Error("a missing row goes unnoticed")
	}
}

func TestOnlyAClosedCircleIsPeriodic(t *testing.T) {
	lat := axis(-89.875, 0.25, 720)
	for _, tt := range []struct {
		name string
		lon  []float64
		want bool
	}{
		{"global from -180", axis(-179.875, 0.25, 1440), true},
		{"global from 0, descending", axis(359.875, -0.25, 1440), true},
		{"EASE columns", axis(-179.87, 360.0/1388, 1388), true},
		{"one column short", axis(-179.875, 0.25, 1438), false},
		{"a region", axis(26.5, 0.014, 1101), false},
	} {
		if got := (Grid{Lat: lat, Lon: tt.lon}).Periodic(); got != tt.want {
			t.Errorf("%s: Periodic() = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestCartesianChordsCrossTheDateLine(t *testing.T) {
	g := Grid{Lat: []float64{0, 60}, Lon: []float64{-179.5, 179.5}}
	dist := func(i int) float64 {
		x1, y1, z1 := g.Cartesian(i, 0)
		x2, y2, z2 := g.Cartesian(i, 1)
		return math.Sqrt((x1-x2)*(x1-x2) + (y1-y2)*(y1-y2) + (z1-z2)*(z1-z2))
	}
	// One degree of longitude is 111.195 km on the equator of a sphere of mean
	// radius and half of that at 60 degrees.
	if got := dist(0); math.Abs(got-111.195) > 0.01 {
		t.Errorf("one degree across the date line on the equator = %.3f km, want 111.195", got)
	}
	if got := dist(1); math.Abs(got-55.597) > 0.01 {
		t.Errorf("one degree across the date line at 60°N = %.3f km, want 55.597", got)
	}
}

func TestStepOfTheBlackSeaGridIsAboutOneKilometre(t *testing.T) {
	g := Grid{Lat: axis(40, 8.0/789, 790), Lon: axis(26.5, 15.5/1100, 1101)}
	if got := g.StepKM(); math.Abs(got-1.12) > 0.02 {
		t.Errorf("StepKM() = %.3f, want about 1.12 km", got)
	}
}

func TestWrapKeepsTheMeaning(t *testing.T) {
	for in, want := range map[float64]float64{0: 0, 179: 179, 180: -180, 181: -179, 359.5: -0.5, 360: 0, -181: 179, -180: -180, 540: -180} {
		if got := Wrap(in); math.Abs(got-want) > 1e-9 {
			t.Errorf("Wrap(%g) = %g, want %g", in, got, want)
		}
	}
}

func TestUnwrapCountsOnAcrossTheDateLine(t *testing.T) {
	tests := []struct {
		name      string
		lon, want []float64
	}{
		{"eastwards across the date line", []float64{178, 179, 180, -179, -178}, []float64{178, 179, 180, 181, 182}},
		{"westwards across the date line", []float64{-178, -179, 180, 179}, []float64{-178, -179, -180, -181}},
		{"eastwards across Greenwich", []float64{358, 359, 0, 1}, []float64{358, 359, 360, 361}},
		{"westwards across Greenwich", []float64{1, 0, 359, 358}, []float64{1, 0, -1, -2}},
		{"a globe that begins east of Greenwich", []float64{30, 120, -150, -60}, []float64{30, 120, 210, 300}},
		{"a globe that begins just before Greenwich", []float64{350, 80, 170, 260}, []float64{-10, 80, 170, 260}},
		{"already monotone beyond 180", []float64{170, 180, 190}, []float64{170, 180, 190}},
		{"two jumps are no date line", []float64{179, -179, 179}, []float64{179, -179, 179}},
		{"a globe", []float64{-180, -90, 0, 90}, []float64{-180, -90, 0, 90}},
	}
	for _, tt := range tests {
		before := slices.Clone(tt.lon)
		got := Unwrap(tt.lon)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if !slices.Equal(tt.lon, before) {
			t.Errorf("%s: the axis itself was changed to %v", tt.name, tt.lon)
		}
	}
}

// A grid across the date line is one basin: neighbours are neighbours, and it is
// the same in every convention.
func TestAGridAcrossTheDateLineIsOneGrid(t *testing.T) {
	lat := []float64{-10, -9, -8}
	across := Grid{Lat: lat, Lon: Unwrap([]float64{178, 179, 180, -179, -178})}
	east, west := Grid{Lat: lat, Lon: []float64{178, 179, 180, 181, 182}}, Grid{Lat: lat, Lon: []float64{-182, -181, -180, -179, -178}}
	if !across.Same(east) || !across.Same(west) || !west.Same(across) {
		t.Error("one grid in three conventions counts as three")
	}
	if across.Same(Grid{Lat: lat, Lon: []float64{-178, -177, -176, -175, -174}}) || across.Same(Grid{Lat: lat, Lon: []float64{182, 181, 180, 179, 178}}) {
		t.Error("another grid counts as the same")
	}
	if across.Periodic() {
		t.Error("five columns close the circle")
	}
	distance := func(a, b int) float64 {
		ax, ay, az := across.Cartesian(1, a)
		bx, by, bz := across.Cartesian(1, b)
		return math.Sqrt((ax-bx)*(ax-bx) + (ay-by)*(ay-by) + (az-bz)*(az-bz))
	}
	if inside, over := distance(0, 1), distance(2, 3); math.Abs(inside-over) > 1e-6 {
		t.Errorf("a step over the date line is %g km, another one %g km", over, inside)
	}
	if step := across.StepKM(); step < 105 || step > 115 {
		t.Errorf("a degree is %g km", step)
	}
}
