package classical

import (
	"cmp"
	"math"
	"slices"

	"lacuna/pipeline/field"
)

// A point is a cell, in kilometres from the centre of the Earth.
// Single precision is good to half a metre there.
type point struct {
	x, y, z float32
	cell    int32
	rank    int32 // place in the order of rows and of longitudes from -180
}

// A sphere has the positions of all cells of a grid. Those of a grid of latitudes and
// longitudes follow from its rows and columns: the points of a large one would take
// more memory than its observations.
type sphere struct {
	width  int
	rows   []parallel
	cols   []meridian
	points []point // where every cell has a place of its own; else nil
	leaves boxMap  // extents of the leaves of all search trees, whatever is observed in them
}

// A parallel is a circle of latitude.
type parallel struct {
	radius float64
	z      float32
}

type meridian struct {
	cos, sin float64
	rank     int32 // place in the order of longitudes from -180
}

// newSphere returns the positions of the cells. Longitudes are wrapped first:
// one place has the same position to the last bit on a grid that counts from
// 0 and on one that counts from -180.
func newSphere(g field.Grid) *sphere {
	s := &sphere{width: g.Width()}
	if g.Plane != nil {
		s.points = planePoints(g)
	} else {
		s.rows, s.cols = parallels(g), meridians(g)
	}
	s.leaves = s.leavesOf(g.Height())
	return s
}

func parallels(g field.Grid) []parallel {
	meridian := field.Grid{Lat: g.Lat, Lon: []float64{0}}
	rows := make([]parallel, len(g.Lat))
	for i := range rows {
		radius, _, z := meridian.Cartesian(i, 0)
		rows[i] = parallel{radius, float32(z)}
	}
	return rows
}

func meridians(g field.Grid) []meridian {
	wrapped, order := make([]float64, len(g.Lon)), make([]int, len(g.Lon))
	for j, lon := range g.Lon {
		wrapped[j], order[j] = field.Wrap(lon), j
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(wrapped[a], wrapped[b]) })
	cols := make([]meridian, len(g.Lon))
	for rank, j := range order {
		sin, cos := math.Sincos(wrapped[j] * math.Pi / 180)
		cols[j] = meridian{cos, sin, int32(rank)}
	}
	return cols
}

// planePoints returns the points of a grid with a place for every cell. The order of a
// row that closes begins at its westernmost cell, wherever the grid does.
func planePoints(g field.Grid) []point {
	w, first := g.Width(), 0
	for j := range w {
		_, lon := g.Place(0, j)
		if _, west := g.Place(0, first); g.Periodic() && field.Wrap(lon) < field.Wrap(west) {
			first = j
		}
	}
	points := make([]point, g.Len())
	for c := range points {
		x, y, z := g.Cartesian(c/w, c%w)
		points[c] = point{x: float32(x), y: float32(y), z: float32(z), cell: int32(c), rank: int32(c/w*w + (c%w-first+w)%w)}
	}
	return points
}

// of returns the point of a cell.
func (s *sphere) of(cell int32) point {
	width := uint32(s.width) // divides sooner than 64 bits
	return s.at(int(uint32(cell)/width), int(uint32(cell)%width))
}

func (s *sphere) at(row, col int) point {
	cell := row*s.width + col
	if s.points != nil {
		return s.points[cell]
	}
	r, c := &s.rows[row], &s.cols[col]
	return point{
		x: float32(r.radius * c.cos), y: float32(r.radius * c.sin), z: r.z,
		cell: int32(cell), rank: int32(row*s.width) + c.rank,
	}
}

// rank returns the place of a column in the order of longitudes from -180.
func (s *sphere) rank(col int) int { return int(s.at(0, col).rank) }

// leavesOf returns the extents of the leaves.
func (s *sphere) leavesOf(height int) boxMap {
	m := newBoxMap((height+leafSide-1)/leafSide, (s.width+leafSide-1)/leafSide)
	for i := range height {
		for j := range s.width {
			m.boxes[i/leafSide*m.cols+j/leafSide].include(s.at(i, j))
		}
	}
	return m
}
