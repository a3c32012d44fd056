package field

import (
	"encoding/json"
	"fmt"
	"math"
)

// A Plane has the places of the cells of a grid whose rows and columns are not
// circles of latitude and meridians: a polar or rotated grid, or any other that
// is bent. It must not be changed.
type Plane struct {
	Lat, Lon []float64 // of every cell, row by row; nil in a plane that came from JSON
	Width    int       // cells of a row
	Closes   bool      // the last column is a neighbour of the first

	kept *sketch // of a plane that came from JSON
}

// NewPlane returns the grid of cells with the given places, row by row, or an error
// with the reason why they are not those of a grid. Rows of cells are drawn
// from the top down, and columns from the left, unless up and left say otherwise.
//
// The axes of the grid are lengths along its middle column and row, in degrees
// of a great circle from the middle: to code that knows axes only, the grid is
// one of the same size on the equator.
func NewPlane(lat, lon []float64, width int, up, left bool) (Grid, error) {
	if width < 2 || len(lat) != len(lon) || len(lat)%width != 0 || len(lat)/width < 2 {
		return Grid{}, fmt.Errorf("%d latitudes and %d longitudes are not those of two rows of %d cells or more", len(lat), len(lon), width)
	}
	missing := 0
	for i, v := range lat {
		switch {
		case !(math.Abs(v) < math.Inf(1)) || !(math.Abs(lon[i]) < math.Inf(1)):
			missing++
		case math.Abs(v) > 90+axisSlack:
			return Grid{}, fmt.Errorf("latitude is %g at row %d, column %d, outside -90..90", v, i/width, i%width)
		case lon[i] < -360-axisSlack || lon[i] > 540+axisSlack:
			return Grid{}, fmt.Errorf("longitude is %g at row %d, column %d, outside -360..540", lon[i], i/width, i%width)
		}
	}
	if missing > 0 {
		return Grid{}, fmt.Errorf("latitude or longitude is missing at %d of %d cells", missing, len(lat))
	}
	g := Grid{Lat: make([]float64, len(lat)/width), Lon: make([]float64, width), Plane: &Plane{Lat: lat, Lon: lon, Width: width}}
	if err := g.unfolded(); err != nil {
		return Grid{}, err
	}
	g.measureAxes(up, left)
	g.Plane.Closes = g.closes()
	return g, nil
}

// unfolded returns an error where a cell lies on the wrong side of its
// neighbours: seen from above, the step to the next column and that to the next
// row make the same turn everywhere.
func (g Grid) unfolded() error {
	h, w := g.Height(), g.Width()
	line := func(i int) []vector {
		out := make([]vector, w)
		for j := range out {
			out[j] = g.vector(i, j)
		}
		return out
	}
	turn := 0.0
	for i, row := 0, line(0); i+1 < h; i++ {
		next := line(i + 1)
		for j := range w - 1 {
			t := row[j+1].minus(row[j]).cross(next[j].minus(row[j])).dot(row[j])
			if turn == 0 {
				turn = t
			}
			if !(t*turn > 0) {
				return fmt.Errorf("coordinates do not run one way: rows and columns cross, or cells share a place, at row %d, column %d", i, j)
			}
		}
		row = next
	}
	return nil
}

// measureAxes sets the axes to the lengths of the middle column and row.
func (g Grid) measureAxes(up, left bool) {
	measure := func(axis []float64, reversed bool, at func(k int) vector) {
		for k := 1; k < len(axis); k++ {
			axis[k] = axis[k-1] + at(k).apart(at(k-1))/earthRadiusKM/math.Pi*180
		}
		middle := axis[len(axis)-1] / 2
		for k := range axis {
			axis[k] -= middle
			if reversed {
				axis[k] = -axis[k]
			}
		}
	}
	measure(g.Lat, !up, func(k int) vector { return g.vector(k, g.Width()/2) })
	measure(g.Lon, left, func(k int) vector { return g.vector(g.Height()/2, k) })
}

// closes reports whether in every row the step from the last cell to the first
// is about as long as the steps before, and goes the same way.
func (g Grid) closes() bool {
	w := g.Width()
	for i := range g.Height() {
		before, last, first, second := g.vector(i, w-2), g.vector(i, w-1), g.vector(i, 0), g.vector(i, 1)
		step := max(last.apart(before), second.apart(first))
		gap := first.apart(last)
		if w < 3 || gap > 1.5*step || gap < 0.5*step || first.minus(last).dot(last.minus(before)) <= 0 {
			return false
		}
	}
	return true
}

// A vector is a place in kilometres from the centre of the Earth.
type vector [3]float64

func (g Grid) vector(i, j int) vector {
	x, y, z := g.Cartesian(i, j)
	return vector{x, y, z}
}

func (a vector) plus(b vector) vector   { return vector{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }
func (a vector) minus(b vector) vector  { return vector{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func (a vector) times(s float64) vector { return vector{a[0] * s, a[1] * s, a[2] * s} }
func (a vector) dot(b vector) float64   { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func (a vector) apart(b vector) float64 { d := a.minus(b); return math.Sqrt(d.dot(d)) }
func (a vector) place() (lat, lon float64) {
	return math.Atan2(a[2], math.Hypot(a[0], a[1])) * 180 / math.Pi, math.Atan2(a[1], a[0]) * 180 / math.Pi
}

func (a vector) cross(b vector) vector {
	return vector{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// Place returns the latitude and the longitude of a cell.
func (g Grid) Place(i, j int) (lat, lon float64) {
	if g.Plane != nil {
		return g.Plane.place(i, j)
	}
	return g.Lat[i], g.Lon[j]
}

func (p *Plane) place(i, j int) (lat, lon float64) { return p.Lat[i*p.Width+j], p.Lon[i*p.Width+j] }

// Cut returns a window of the grid. Beyond the edges it goes on with the steps
// there, or on the other side of a grid that closes.
func (g Grid) Cut(row, col, height, width int) Grid {
	out := Grid{Lat: cutAxis(g.Lat, row, height), Lon: cutAxis(g.Lon, col, width)}
	if g.Plane == nil {
		return out
	}
	out.Plane = &Plane{Lat: make([]float64, height*width), Lon: make([]float64, height*width), Width: width}
	for c := range out.Plane.Lat {
		i, j := row+c/width, col+c%width
		if g.Plane.Closes {
			j = (j%g.Width() + g.Width()) % g.Width()
		}
		if i >= 0 && j >= 0 && i < g.Height() && j < g.Width() {
			out.Plane.Lat[c], out.Plane.Lon[c] = g.Place(i, j)
			continue
		}
		out.Plane.Lat[c], out.Plane.Lon[c] = g.beyond(i, j).place()
	}
	out.Plane.Closes = g.Plane.Closes && width == g.Width()
	return out
}

// At returns the places of the crossings of lines that are counted in rows and
// columns of g, between its cells or beyond its edges: points as Cartesian gives
// them, row by row.
func (g Grid) At(rows, cols []float64) [][3]float64 {
	out := make([][3]float64, len(rows)*len(cols))
	for c := range out {
		row, col := rows[c/len(cols)], cols[c%len(cols)]
		i, j := int(math.Floor(row)), int(math.Floor(col))
		down, across := row-float64(i), col-float64(j)
		north := g.beyond(i, j).times(1 - across).plus(g.beyond(i, j+1).times(across))
		south := g.beyond(i+1, j).times(1 - across).plus(g.beyond(i+1, j+1).times(across))
		out[c] = onSphere(north.times(1 - down).plus(south.times(down)).place())
	}
	return out
}

// beyond returns the place of a cell that may lie outside of the grid.
func (g Grid) beyond(i, j int) vector {
	atRow, atCol := min(max(i, 0), g.Height()-1), min(max(j, 0), g.Width()-1)
	edge := g.vector(atRow, atCol)
	at := edge
	if off := i - atRow; off != 0 {
		at = at.plus(edge.minus(g.vector(min(max(atRow-sign(off), 0), g.Height()-1), atCol)).times(math.Abs(float64(off))))
	}
	if off := j - atCol; off != 0 {
		at = at.plus(edge.minus(g.vector(atRow, min(max(atCol-sign(off), 0), g.Width()-1))).times(math.Abs(float64(off))))
	}
	return at
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

func cutAxis(axis []float64, first, n int) []float64 {
	out := make([]float64, n)
	last := len(axis) - 1
	for i := range out {
		switch at := first + i; {
		case at < 0:
			out[i] = axis[0] + float64(at)*(axis[1]-axis[0])
		case at > last:
			out[i] = axis[last] + float64(at-last)*(axis[last]-axis[last-1])
		default:
			out[i] = axis[at]
		}
	}
	return out
}

// Coarse returns the grid of squares of factor by factor cells, without the rows
// and columns that fill none.
func (g Grid) Coarse(factor int) Grid {
	h, w := g.Height()/factor, g.Width()/factor
	out := Grid{Lat: means(g.Lat[:h*factor], factor), Lon: means(g.Lon[:w*factor], factor)}
	if g.Plane == nil {
		return out
	}
	out.Plane = &Plane{Lat: make([]float64, h*w), Lon: make([]float64, h*w), Width: w, Closes: g.Plane.Closes && g.Width()%factor == 0}
	for c := range out.Plane.Lat {
		var sum vector
		for k := range factor * factor {
			sum = sum.plus(g.vector(c/w*factor+k/factor, c%w*factor+k%factor))
		}
		out.Plane.Lat[c], out.Plane.Lon[c] = sum.place()
	}
	return out
}

func means(values []float64, each int) []float64 {
	out := make([]float64, len(values)/each)
	for i, v := range values {
		out[i/each] += v / float64(each)
	}
	return out
}

// A sketch is what is kept of a plane to know it again: its extent, and the
// places of some of its cells.
type sketch struct {
	South  float64      `json:"south"`
	North  float64      `json:"north"`
	West   float64      `json:"west"`
	East   float64      `json:"east"`
	Closes bool         `json:"closes,omitempty"`
	Places [][2]float64 `json:"places"` // latitude and longitude of the cells at the crossings of some rows and columns
}

// sketchLines is the number of rows and of columns of a sketch, at most. A grid
// that was moved, turned or cut is off at all of them.
const sketchLines = 9

func (p *Plane) sketch() sketch {
	if p.kept != nil {
		return *p.kept
	}
	s := sketch{Closes: p.Closes}
	s.South, s.North, s.West, s.East = p.bounds()
	height := len(p.Lat) / p.Width
	rows, cols := min(sketchLines, height), min(sketchLines, p.Width)
	for k := range rows * cols {
		lat, lon := p.place(k/cols*(height-1)/max(rows-1, 1), k%cols*(p.Width-1)/max(cols-1, 1))
		s.Places = append(s.Places, [2]float64{lat, lon})
	}
	return s
}

// samePlaces compares the planes of two grids of one size, to within a share of a
// cell.
func (g Grid) samePlaces(o Grid) bool {
	if g.Plane == nil || o.Plane == nil || g.Plane == o.Plane {
		return g.Plane == o.Plane
	}
	a, b := g.Plane.sketch(), o.Plane.sketch()
	if len(a.Places) != len(b.Places) {
		return false
	}
	at := func(p [2]float64) vector { return onSphere(p[0], p[1]) }
	for i, p := range a.Places {
		if at(p).apart(at(b.Places[i])) > sameGridCells*g.StepKM() {
			return false
		}
	}
	return true
}

// MarshalJSON keeps what Same, Bounds, Periodic and String need: the places are
// too many for a row of a ledger.
func (p *Plane) MarshalJSON() ([]byte, error) { return json.Marshal(p.sketch()) }

// UnmarshalJSON reads what MarshalJSON wrote. The plane has no places then.
func (p *Plane) UnmarshalJSON(data []byte) error {
	var s sketch
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*p = Plane{Closes: s.Closes, kept: &s}
	return nil
}

// pole returns 1 or -1 where the edge of the grid goes round the north or the
// south pole, else 0.
func (p *Plane) pole() float64 {
	height, turn := len(p.Lat)/p.Width, 0.0
	lat, before := p.place(0, 0)
	walk := func(n int, at func(k int) (i, j int)) {
		for k := range n {
			_, lon := p.place(at(k))
			turn += Wrap(lon - before)
			before = lon
		}
	}
	walk(p.Width, func(k int) (i, j int) { return 0, k })
	walk(height, func(k int) (i, j int) { return k, p.Width - 1 })
	walk(p.Width, func(k int) (i, j int) { return height - 1, p.Width - 1 - k })
	walk(height, func(k int) (i, j int) { return height - 1 - k, 0 })
	if math.Abs(turn) < 180 {
		return 0
	}
	return math.Copysign(1, lat)
}

// bounds returns the extent of the places. Longitudes leave out the widest span
// without a cell; round a pole there is none.
func (p *Plane) bounds() (south, north, west, east float64) {
	if p.kept != nil {
		return p.kept.South, p.kept.North, p.kept.West, p.kept.East
	}
	const bins = 720
	var low, high [bins]float64
	var used [bins]bool
	south, north = 90, -90
	for i, lon := range p.Lon {
		south, north = min(south, p.Lat[i]), max(north, p.Lat[i])
		lon = Wrap(lon)
		b := min(int((lon+180)/360*bins), bins-1)
		if !used[b] {
			low[b], high[b], used[b] = lon, lon, true
		}
		low[b], high[b] = min(low[b], lon), max(high[b], lon)
	}
	first, widest := -1, 1 // bin behind the widest run of empty ones, and its length
	for b := range bins {
		run := 0
		for run < bins && !used[(b-1-run+bins)%bins] {
			run++
		}
		if used[b] && run > widest {
			first, widest = b, run
		}
	}
	switch pole := p.pole(); {
	case pole > 0:
		return south, 90, -180, 180
	case pole < 0:
		return -90, north, -180, 180
	case p.Closes || first < 0:
		return south, north, -180, 180
	}
	west, east = low[first], high[(first-1-widest+2*bins)%bins]
	if east < west {
		east += 360
	}
	return south, north, west, east
}
