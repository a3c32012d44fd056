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
}

func newSmoother(g field.Grid, sigmaKM float64) smoother {
	factor := max(1, int(sigmaKM/stepKM(g)/coarseCells))
	around := factor
	for g.Periodic() && g.Width()%around != 0 {
		around-- // a closed circle has whole coarse cells only
	}
	return smoother{
		rows:     newAxis(g.Lat, factor, false),
		cols:     newAxis(g.Lon, around, g.Periodic()),
		width:    g.Width(),
		sigmaKM:  sigmaKM,
		coarseKM: float64(factor) * stepKM(g),
		periodic: g.Periodic(),
	}
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
	for i, lat := range m.rows.centre {
		perDegree := kilometresPerDegree * math.Abs(math.Cos(lat*math.Pi/180)) // a line beyond the pole comes down on the other side
		in, out := src[i*w:(i+1)*w], dst[i*w:(i+1)*w]
		for j, v := range in {
			if v != 0 {
				m.spread(out, j, v, perDegree)
			}
		}
	}
	return dst
}

// spread adds v to the cells of one row around column j, outwards in both
// directions until the Gaussian has died away.
func (m smoother) spread(row []float64, j int, v, perDegree float64) {
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
			u := math.Abs(field.Wrap(lon[k]-lon[j])) * perDegree / m.sigmaKM
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
	for i, from := range m.rows.centre {
		for k, to := range m.rows.centre {
			u := math.Abs(from-to) * kilometresPerDegree / m.sigmaKM
			if u > reach {
				continue
			}
			weight := math.Exp(-u * u / 2)
			in, out := src[i*w:(i+1)*w], dst[k*w:(k+1)*w]
			for j, v := range in {
				out[j] += weight * v
			}
		}
	}
	return dst
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
	a := axis{centre: make([]float64, n+2*beyond), of: make([]int, len(fine)), between: make([]between, len(fine))}
	for k := range a.centre {
		a.centre[k] = along(fine, (float64(k-beyond)+0.5)*width-0.5)
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
