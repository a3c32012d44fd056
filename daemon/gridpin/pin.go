// Package gridpin says which grid a dataset has: the one that the configuration
// pins, else what most of its first granules have.
//
// It knows nothing of who counts the granules.
package gridpin

import (
	"fmt"
	"math"

	"lacuna/internal/faults"
	"lacuna/pipeline/field"
)

// SettledVotes is how many granules must agree for the grid of a dataset to be
// settled: an archive has an odd file among its first ones now and then, and
// hardly three of five.
const SettledVotes = 5

// A Pin is the grid that the configuration gives a dataset.
type Pin struct {
	Shape Shape      `yaml:"shape"` // rows and columns, as HEIGHTxWIDTH
	Lat   [2]float64 `yaml:"lat"`   // latitudes of the first and the last row, in either order
	Lon   [2]float64 `yaml:"lon"`   // longitudes of the first and the last column, in either order
}

// Shape is how many rows and columns a grid has, written as HEIGHTxWIDTH.
type Shape struct{ Height, Width int }

// mostCells bounds a side of a grid: at a hundred metres the Earth has twice as
// many columns, and no granule of the whole of it.
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

// String writes what UnmarshalText reads.
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

// String writes p as the configuration has it.
func (p Pin) String() string {
	return fmt.Sprintf("{shape: %v, lat: [%g, %g], lon: [%g, %g]}", p.Shape, p.Lat[0], p.Lat[1], p.Lon[0], p.Lon[1])
}

// Of returns how a configuration would name a grid.
func Of(g field.Grid) Pin {
	south, north, west, east := g.Bounds()
	return Pin{
		Shape: Shape{g.Height(), g.Width()},
		Lat:   [2]float64{roundDegrees(south), roundDegrees(north)}, Lon: [2]float64{roundDegrees(west), roundDegrees(east)},
	}
}

// roundDegrees keeps a tenth of a metre: axes in single precision have no more.
func roundDegrees(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// pinnedCells is how far, in cells, the ends of an axis may be off: they are
// typed from a document. A shift of a tenth of a cell is another grid.
const pinnedCells = 0.05

// Has reports whether g is the grid that is named.
func (p Pin) Has(g field.Grid) bool {
	south, north, west, east := g.Bounds()
	near := func(named [2]float64, low, high float64, cells int) bool {
		slack := pinnedCells * (high - low) / float64(max(cells-1, 1))
		return math.Abs(min(named[0], named[1])-low) <= slack && math.Abs(max(named[0], named[1])-high) <= slack
	}
	return p.Shape == Shape{g.Height(), g.Width()} && near(p.Lat, south, north, g.Height()) && near(p.Lon, west, east, g.Width())
}
