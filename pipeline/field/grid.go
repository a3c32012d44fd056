package field

import (
	"fmt"
	"math"
	"slices"
)

// earthRadiusKM is the mean radius of the WGS84 ellipsoid.
const earthRadiusKM = 6371.0088

// A Grid is a rectilinear longitude-latitude grid: every combination of the
// given latitudes and longitudes is one cell centre, in degrees. Either axis
// may run in either direction and need not be evenly spaced. Longitudes may
// count from -180 or from 0, and go on counting where they pass 180 or 360.
//
// Where there is a plane, the cells lie where it says, and the axes are lengths
// along the middle row and column: see NewPlane.
type Grid struct {
	Lat, Lon []float64
	Plane    *Plane `json:",omitempty"` // nil: rows are circles of latitude and columns meridians
}

// NewGrid returns the grid of the given axes, or an error with the reason why they
// are not the axes of a grid.
func NewGrid(lat, lon []float64) (Grid, error) {
	if err := checkAxis("latitude", lat, -90, 90, 180); err != nil {
		return Grid{}, err
	}
	// A centre at exactly 360 is legal on a grid that counts from 0, and some
	// producers let an axis run across the date line.
	if err := checkAxis("longitude", lon, -360, 540, 360); err != nil {
		return Grid{}, err
	}
	return Grid{Lat: lat, Lon: lon}, nil
}

// axisSlack tolerates the rounding of axes that are stored in single precision:
// 180 degrees in float32 is exact to 1.5e-5.
const axisSlack = 1e-4

func checkAxis(name string, x []float64, low, high, span float64) error {
	if len(x) == 0 {
		return fmt.Errorf("%s axis is empty", name)
	}
	for i, v := range x {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return fmt.Errorf("%s axis has %v at index %d", name, v, i)
		case v < low-axisSlack || v > high+axisSlack:
			return fmt.Errorf("%s axis has %g at index %d, outside %g..%g", name, v, i, low, high)
		case i > 1 && (v-x[i-1])*(x[1]-x[0]) <= 0, i == 1 && v == x[0]:
			return fmt.Errorf("%s axis does not run one way: %g follows %g at index %d", name, v, x[i-1], i)
		}
	}
	if s := math.Abs(x[len(x)-1] - x[0]); s > span+axisSlack {
		return fmt.Errorf("%s axis spans %g degrees, more than %g", name, s, span)
	}
	return nil
}

// Height returns the number of rows.
func (g Grid) Height() int { return len(g.Lat) }

// Width returns the number of columns.
func (g Grid) Width() int { return len(g.Lon) }

// Len returns the number of cells.
func (g Grid) Len() int { return len(g.Lat) * len(g.Lon) }

// String returns size, extent and step of the grid in words.
func (g Grid) String() string {
	south, north, west, east := g.Bounds()
	kind := ""
	if g.Plane != nil {
		kind = ", with coordinates of each cell"
	}
	return fmt.Sprintf("%d×%d, %.4g..%.4g°N, %.4g..%.4g°E, about %.3g km%s", g.Height(), g.Width(),
		south, north, west, east, g.StepKM(), kind)
}

// Bounds returns the extent of the cell centres.
func (g Grid) Bounds() (south, north, west, east float64) {
	if g.Plane != nil {
		return g.Plane.bounds()
	}
	south, north = bounds(g.Lat)
	west, east = bounds(g.Lon)
	return south, north, west, east
}

func bounds(x []float64) (low, high float64) {
	return min(x[0], x[len(x)-1]), max(x[0], x[len(x)-1])
}

// sameGridCells is how far, in cells, two descriptions of one grid may lie
// apart: producers write the same grid in single and in double precision, but
// a shift of a tenth of a cell is another grid.
const sameGridCells = 0.05

// Same reports whether g and o are the same grid up to rounding: the same places
// in the same order, in whichever of the two conventions longitudes are counted.
func (g Grid) Same(o Grid) bool {
	if !sameAxis(g.Lat, o.Lat, 0) || len(g.Lon) != len(o.Lon) || !g.samePlaces(o) {
		return false
	}
	turn := 0.0
	if len(g.Lon) > 0 {
		turn = 360 * math.Round((g.Lon[0]-o.Lon[0])/360)
	}
	return sameAxis(g.Lon, o.Lon, turn)
}

// sameAxis compares a with b, all of whose numbers are shifted.
func sameAxis(a, b []float64, shift float64) bool {
	if len(a) != len(b) {
		return false
	}
	tol := axisSlack
	if n := len(a); n > 1 {
		tol = sameGridCells * math.Abs(a[n-1]-a[0]) / float64(n-1)
	}
	for i := range a {
		if math.Abs(a[i]-b[i]-shift) > tol {
			return false
		}
	}
	return true
}

// Periodic reports whether the columns close the circle, so that the last one
// is a neighbour of the first.
func (g Grid) Periodic() bool {
	n := g.Width()
	if n < 3 {
		return false
	}
	if g.Plane != nil {
		return g.Plane.Closes
	}
	span := math.Abs(g.Lon[n-1] - g.Lon[0])
	step := span / float64(n-1)
	return math.Abs(span+step-360) < step/2
}

// StepKM returns the typical distance between neighbouring cell centres: the
// geometric mean of the row and column steps at the middle latitude.
func (g Grid) StepKM() float64 {
	perDegree := earthRadiusKM * math.Pi / 180
	step := func(x []float64) float64 {
		if len(x) < 2 {
			return 0
		}
		return math.Abs(x[len(x)-1]-x[0]) / float64(len(x)-1)
	}
	south, north := bounds(g.Lat)
	dy := step(g.Lat) * perDegree
	dx := step(g.Lon) * perDegree * math.Cos((south+north)/2*math.Pi/180)
	switch {
	case dx == 0:
		return dy
	case dy == 0:
		return dx
	}
	return math.Sqrt(dx * dy)
}

// Cartesian returns the cell centre at row i, column j as a point on the
// sphere, in kilometres from the centre of the Earth. Distances between such
// points are chords: the true distance to 0.1 % up to 950 km, and free of
// date line and poles.
func (g Grid) Cartesian(i, j int) (x, y, z float64) {
	v := onSphere(g.Place(i, j))
	return v[0], v[1], v[2]
}

func onSphere(lat, lon float64) vector {
	sinLat, cosLat := math.Sincos(lat * math.Pi / 180)
	sinLon, cosLon := math.Sincos(lon * math.Pi / 180)
	return vector{earthRadiusKM * cosLat * cosLon, earthRadiusKM * cosLat * sinLon, earthRadiusKM * sinLat}
}

// Unwrap returns longitudes that run across the date line, or across Greenwich,
// without the jump: 179, -179 becomes 179, 181, and 1, 359 becomes 1, -1. Axes
// without one jump of more than half a circle are returned as they are.
func Unwrap(lon []float64) []float64 {
	jump, turn := 0, 0.0
	for i := 1; i < len(lon); i++ {
		if d := lon[i] - lon[i-1]; math.Abs(d) > 180 {
			if jump > 0 {
				return lon
			}
			jump, turn = i, -math.Copysign(360, d)
		}
	}
	if jump == 0 {
		return lon
	}
	out := slices.Clone(lon)
	for i := jump; i < len(out); i++ {
		out[i] += turn
	}
	if low, high := bounds(out); low < -360 || high > 540 {
		for i := range out {
			out[i] -= turn
		}
	}
	return out
}

// Wrap returns the longitude that means the same as lon and lies in
// [-180, 180).
func Wrap(lon float64) float64 {
	lon = math.Mod(lon+180, 360)
	if lon < 0 {
		lon += 360
	}
	return lon - 180
}
