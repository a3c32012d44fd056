// Package bbox is a box of longitudes and latitudes, as configurations,
// catalogues and GeoJSON write it: west, south, east, north, in degrees.
//
// A box may cross the date line: its west is then greater than its east, or its
// east beyond 180. Longitudes are compared around the globe, so that 190 and
// -170 are one meridian.
//
// Package bbox knows nothing of grids and files.
package bbox

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Box is a box. The zero Box is the whole globe.
type Box struct {
	West, South, East, North float64 // degrees
}

// Of returns the box of four numbers, or the whole globe of none.
func Of(numbers []float64) (Box, error) {
	if len(numbers) == 0 {
		return Box{}, nil
	}
	if len(numbers) != 4 {
		return Box{}, fmt.Errorf("bbox has %d numbers, must be [west, south, east, north] in degrees", len(numbers))
	}
	b := Box{West: numbers[0], South: numbers[1], East: numbers[2], North: numbers[3]}
	for _, n := range numbers {
		if math.IsNaN(n) || math.Abs(n) > 360 {
			return Box{}, fmt.Errorf("bbox has %v, must be [west, south, east, north] in degrees", n)
		}
	}
	switch {
	case b.South >= b.North || b.South < -90 || b.North > 90:
		return Box{}, fmt.Errorf("bbox has the latitudes %v and %v, must be south and north within -90..90", b.South, b.North)
	case b.West == b.East:
		return Box{}, fmt.Errorf("bbox has the longitude %v twice, must be west and east", b.West)
	}
	return b, nil
}

// IsZero reports whether the box is the whole globe.
func (b Box) IsZero() bool { return b == Box{} }

// String returns the numbers as catalogues want them.
func (b Box) String() string {
	var parts []string
	for _, n := range []float64{b.West, b.South, b.East, b.North} {
		parts = append(parts, strconv.FormatFloat(n, 'f', -1, 64))
	}
	return strings.Join(parts, ",")
}

// Width returns the degrees of longitude from west to east, up to 360.
func (b Box) Width() float64 {
	if b.IsZero() || b.East-b.West >= 360 {
		return 360
	}
	return around(b.East - b.West)
}

// HoldsLon reports whether a longitude lies in the box.
func (b Box) HoldsLon(lon float64) bool {
	return b.Width() >= 360 || around(lon-b.West) <= b.Width()
}

// HoldsLat reports whether a latitude lies in the box.
func (b Box) HoldsLat(lat float64) bool { return b.IsZero() || lat >= b.South && lat <= b.North }

// Touches reports whether two boxes have a point in common.
func (b Box) Touches(c Box) bool {
	if b.IsZero() || c.IsZero() {
		return true
	}
	return b.South <= c.North && c.South <= b.North && (b.HoldsLon(c.West) || c.HoldsLon(b.West))
}

// around brings a difference of longitudes into [0, 360).
func around(degrees float64) float64 {
	d := math.Mod(degrees, 360)
	if d < 0 {
		d += 360
	}
	return d
}
