// Package gridpin is the grid that the configuration pins for a dataset, by its
// shape and its corners: how it is written, checked and compared with the grid of
// a granule. Where none is pinned, SettledVotes granules settle it.
//
// It does not know how the votes of granules are counted.
package gridpin

import (
	"fmt"
	"math"

	"lacuna/internal/faults"
	"lacuna/pipeline/field"
)

// SettledVotes is the number of granules that must agree for the grid of a
// dataset to be settled: an archive may well have an odd file among its first
// ones, but hardly three of five.
const SettledVotes = 5

// A Pin is the grid that the configuration gives a dataset.
type Pin struct {
	Shape Shape      `yaml:"shape"` // rows and columns, as HEIGHTxWIDTH
	Lat   [2]float64 `yaml:"lat"`   // latitudes of the first and the last row, in either order
	Lon   [2]float64 `yaml:"lon"`   // longitudes of the first and the last column, in either order
}

// Shape is the number of rows and columns of a grid, written as HEIGHTxWIDTH.
type Shape struct{ Height, Width int }

// mostCells bounds the rows and the columns of a grid. The whole Earth at a
// hundred metres has twice as many columns, but no granule holds it.
const mostCells = 200_000

// UnmarshalText reads "158x220".
func (s *Shape) UnmarshalText(text []byte) error {
	var h, w int
	var rest string
	if n, _ := fmt.Sscanf(string(text), "%dx%d%s", &h, &w, &rest); n != 2 || h < 2 || w < 2 || h > mostCells || w > mostCells {
		return fmt.Errorf("shape is %q, must be HEIGHTxWIDTH like 158x220, 2 to %d each", text, mostCells)
	}
	*s = Shape{Height: h, Width: w}
	return nil
}

// String returns the text that UnmarshalText reads.
func (s Shape) String() string { return fmt.Sprintf("%dx%d", s.Height, s.Width) }

// Validate reports everything wrong with p. Each message begins with the key.
func (p Pin) Validate() error {
	var errs faults.List
	errs.Check(p.Shape != Shape{}, "shape is missing, must be HEIGHTxWIDTH like 158x220")
	errs.Check(p.Lat[0] != p.Lat[1] && inside(p.Lat, -90, 90), "lat is %v, must be the latitudes of the first and the last row, -90 to 90", p.Lat)
	errs.Check(p.Lon[0] != p.Lon[1] && inside(p.Lon, -360, 540), "lon is %v, must be the longitudes of the first and the last column", p.Lon)
	return errs.Err()
}

func inside(ends [2]float64, low, high float64) bool {
	return min(ends[0], ends[1]) >= low && max(ends[0], ends[1]) <= high
}

// String returns p as it is written in the configuration.
func (p Pin) String() string {
	return fmt.Sprintf("{shape: %v, lat: [%g, %g], lon: [%g, %g]}", p.Shape, p.Lat[0], p.Lat[1], p.Lon[0], p.Lon[1])
}

// Of returns the pin of a grid.
func Of(g field.Grid) Pin {
	south, north, west, east := g.Bounds()
	return Pin{
		Shape: Shape{g.Height(), g.Width()},
		Lat:   [2]float64{roundDegrees(south), roundDegrees(north)}, Lon: [2]float64{roundDegrees(west), roundDegrees(east)},
	}
}

// roundDegrees rounds to a tenth of a metre: axes in single precision are no
// finer.
func roundDegrees(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// pinnedCells is the tolerance for the ends of an axis, in cells: they are typed
// from a document. A shift of a tenth of a cell is another grid.
const pinnedCells = 0.05

// Has reports whether g is the pinned grid. Longitudes may be pinned in either
// convention: 170 and -170 are the ends of a grid across the date line too.
func (p Pin) Has(g field.Grid) bool {
	south, north, west, east := g.Bounds()
	near := func(named [2]float64, low, high float64, cells int, off func(a, b float64) float64) bool {
		slack := pinnedCells * (high - low) / float64(max(cells-1, 1))
		ends := func(a, b float64) bool { return off(a, low) <= slack && off(b, high) <= slack }
		return ends(named[0], named[1]) || ends(named[1], named[0])
	}
	return p.Shape == Shape{g.Height(), g.Width()} &&
		near(p.Lat, south, north, g.Height(), func(a, b float64) float64 { return math.Abs(a - b) }) &&
		near(p.Lon, west, east, g.Width(), func(a, b float64) float64 { return math.Abs(math.Remainder(a-b, 360)) })
}
