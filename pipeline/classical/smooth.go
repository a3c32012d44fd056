package classical

import (
	"math"

	"lacuna/pipeline/field"
)

const (
	// kilometresPerDegree is the length of a degree of a great circle on the
	// sphere that field.Grid uses.
	kilometresPerDegree = 6371.0088 * math.Pi / 180
	// reach is the cut-off of a Gaussian in standard deviations: the tails
	// beyond have 0.3 % of the weight.
	reach = 3
	// coarseCells is how many coarse cells a standard deviation spans at
	// least: linear interpolation of a Gaussian sampled four times per
	// standard deviation is off by less than 1 %.
	coarseCells = 4
)

// stepKM returns the step of the grid, and an arbitrary length for a grid of a
// single cell.
func stepKM(g field.Grid) float64 {
	if step := g.StepKM(); step > 0 {
		return step
	}
	return 1
}

// A smoother replaces sums over cells by Gaussian-weighted sums over their
// surroundings. It gathers cells into coarse ones of a quarter of a
// standard deviation, sums there along both axes at true distances, across the date
// line where the grid closes, and interpolates back: the cost does not depend
// on the width. Because counts are smoothed in the same way as sums, their
// ratio is a mean that no gap dilutes.
type smoother struct {
	rows, cols axis
	width      int
	sigmaKM    float64
	coarseKM   float64 // step of the coarse grid
	periodic   bool
	perDegree  []float64    // length of a degree of longitude along each coarse row
	places     [][3]float64 // of the coarse cells, as field.Grid.Cartesian gives them; nil: they follow from the axes
}

func newSmoother(g field.Grid, sigmaKM float64) smoother {
	factor := max(1, int(sigmaKM/stepKM(g)/coarseCells))
	around := factor
	for g.Periodic() && g.Width()%around != 0 {
		around-- // a closed circle has whole coarse cells only
	}
	m := smoother{
		rows:     newAxis(g.Lat, factor, false),
		cols:     newAxis(g.Lon, around, g.Periodic()),
		width:    g.Width(),
		sigmaKM:  sigmaKM,
		coarseKM: float64(factor) * stepKM(g),
		periodic: g.Periodic(),
	}
	if g.Plane != nil {
		m.places = g.At(m.rows.lines, m.cols.lines)
	}
	for _, lat := range m.rows.centre {
		m.perDegree = append(m.perDegree, kilometresPerDegree*math.Abs(math.Cos(lat*math.Pi/180))) // a line beyond the pole comes down on the other side
	}
	return m
}

// apart returns the distance between two coarse cells of one row or one column.
func (m smoother) apart(i, j, k, l int) float64 {
	switch {
	case m.places != nil:
		a, b := m.places[i*len(m.cols.centre)+j], m.places[k*len(m.cols.centre)+l]
		x, y, z := a[0]-b[0], a[1]-b[1], a[2]-b[2]
		return math.Sqrt(x*x + y*y + z*z)
	case i == k:
		return math.Abs(field.Wrap(m.cols.centre[l]-m.cols.centre[j])) * m.perDegree[i]
	}
	return math.Abs(m.rows.centre[i]-m.rows.centre[k]) * kilometresPerDegree
}

// gather returns a coarse map of zeros, to be added to at the index that
// coarse gives for a cell of the grid.
func (m smoother) gather() []float64 { return make([]float64, len(m.rows.centre)*len(m.cols.centre)) }

func (m smoother) coarse(i int) int {
	row, col := i/m.width, i%m.width
	return m.rows.of[row]*len(m.cols.centre) + m.cols.of[col]
}

// smooth returns the weighted sums of the coarse map src.
func (m smoother) smooth(src []float64) []float64 {
	return m.alongColumns(m.alongRows(src))
}

func (m smoother) alongRows(src []float64) []float64 {
	dst := make([]float64, len(src))
	w := len(m.cols.centre)
	for i := range m.rows.centre {
		in, out := src[i*w:(i+1)*w], dst[i*w:(i+1)*w]
		for j, v := range in {
			if v != 0 {
				m.spread(out, i, j, v)
			}
		}
	}
	return dst
}

// spread adds v to the cells of row i around column j, outwards in both
// directions until the Gaussian has died away.
func (m smoother) spread(row []float64, i, j int, v float64) {
	lon := m.cols.centre
	row[j] += v
	// Round a closed circle each direction goes half way.
	steps, east := len(lon)-1, len(lon)-1
	if m.periodic {
		steps, east = (len(lon)-1)/2, len(lon)/2
	}
	for _, side := range [2]struct{ by, most int }{{-1, steps}, {1, east}} {
		for n, k := 0, j+side.by; n < side.most; n, k = n+1, k+side.by {
			if m.periodic {
				k = (k + len(lon)) % len(lon)
			} else if k < 0 || k >= len(lon) {
				break
			}
			u := m.apart(i, j, i, k) / m.sigmaKM
			if u > reach {
				break
			}
			row[k] += v * math.Exp(-u*u/2)
		}
	}
}

func (m smoother) alongColumns(src []float64) []float64 {
	dst := make([]float64, len(src))
	w := len(m.cols.centre)
	for i := range m.rows.centre {
		for k := range m.rows.centre {
			in, out := src[i*w:(i+1)*w], dst[k*w:(k+1)*w]
			if m.places != nil {
				m.down(in, out, i, k)
				continue
			}
			u := m.apart(i, 0, k, 0) / m.sigmaKM // the same in all columns
			if u > reach {
				continue
			}
			weight := math.Exp(-u * u / 2)
			for j, v := range in {
				out[j] += weight * v
			}
		}
	}
	return dst
}

// down adds row i to row k where their distance is another in every column.
func (m smoother) down(in, out []float64, i, k int) {
	for j, v := range in {
		if u := m.apart(i, j, k, j) / m.sigmaKM; u <= reach {
			out[j] += math.Exp(-u*u/2) * v
		}
	}
}

// at returns the value of the coarse map src at the given row and column of
// the grid, between the four nearest coarse centres.
func (m smoother) at(src []float64, row, col int) float64 {
	w := len(m.cols.centre)
	r, c := m.rows.between[row], m.cols.between[col]
	north := src[r.low*w+c.low]*(1-c.share) + src[r.low*w+c.high]*c.share
	south := src[r.high*w+c.low]*(1-c.share) + src[r.high*w+c.high]*c.share
	return north*(1-r.share) + south*r.share
}

// An axis is one axis of the coarse grid, with the interpolation back to the fine
// one. Unless it is closed, it has a coarse line more on either side, beyond the
// edges of the grid: the outermost cells lie between two lines as well, and maps
// have no rim.
type axis struct {
	centre  []float64 // degrees
	lines   []float64 // the same in lines of the fine axis
	of      []int     // coarse line of every line of the fine axis
	between []between // position of every line of the fine axis
}

// between is a place between two coarse cells: share of the way from low to high.
type between struct {
	low, high int
	share     float64
}

func newAxis(fine []float64, factor int, periodic bool) axis {
	n := (len(fine) + factor - 1) / factor
	width := float64(len(fine)) / float64(n) // all alike, so that no edge has a narrow one
	beyond := 1
	if periodic {
		beyond = 0
	}
	a := axis{centre: make([]float64, n+2*beyond), lines: make([]float64, n+2*beyond), of: make([]int, len(fine)), between: make([]between, len(fine))}
	for k := range a.centre {
		a.lines[k] = (float64(k-beyond)+0.5)*width - 0.5
		a.centre[k] = along(fine, a.lines[k])
	}
	for i := range fine {
		at := (float64(i) + 0.5) / width
		a.of[i] = min(int(at), n-1) + beyond
		pos := at - 0.5 + float64(beyond)
		low := int(math.Floor(pos))
		b := between{low: low, high: low + 1, share: pos - float64(low)}
		if periodic {
			b.low, b.high = (b.low+n)%n, b.high%n
		}
		a.between[i] = b
	}
	return a
}

// along returns the degrees at a place between the lines of an axis, or beyond its
// ends.
func along(fine []float64, pos float64) float64 {
	if len(fine) == 1 {
		return fine[0]
	}
	i := min(max(int(math.Floor(pos)), 0), len(fine)-2)
	return fine[i] + (pos-float64(i))*(fine[i+1]-fine[i])
}
