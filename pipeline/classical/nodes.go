package classical

import (
	"context"
	"math"
	"sync"

	"lacuna/pipeline/field"
)

// A cell takes part in the solutions of several nodes. A node is solved once,
// from the observations nearest to it; nodes lie Spacing cells apart. The
// estimate of a cell is the mean of the solutions of the nodes within one and a
// half spacings along either axis, weighted by quadratic B-splines, which are
// smooth and sum to one: the neighbours change from one node to the next, and
// the map does not step. With cubic splines the cell would have sixteen nodes
// for nine, to no gain in error.
//
// A node whose neighbours include the observation next to a cell knows more of it
// than one from which that was one too far: each solution also has the weight
// 1/variance⁴. Without it sigma close to observations is larger between nodes
// than at them, by a tenth of its steps.
//
// The variance of a cell is the mean of those of the solutions with the same
// weights. That of the blend is less, by the spread of the solutions about it: a
// few per cent, which the calibration of sigma makes good. Where nodes are three
// cells apart or more, a trace of them is left in sigma and blurred: there the
// length is thirty cells, and sigma hardly changes over five.

// support is how far a spline reaches, in spacings.
const support = 1.5

// phases is the number of rows of nodes after which a row has no cell in common
// with the first.
const phases = 3

// bandCells is for how many cells, about, there are sums at a time: at 24 bytes each
// those of a field of 4096 lines would take as much as six maps. Fewer rows of nodes
// than leastRows would leave workers idle.
const (
	bandCells = 3 << 20
	leastRows = 96
)

// A blend holds sums over nodes for the cells of some lines, no weight where none was
// wanted.
type blend struct {
	first                  int // cell
	weight, mean, variance []float64
}

func newBlend(cells int) blend {
	return blend{weight: make([]float64, cells), mean: make([]float64, cells), variance: make([]float64, cells)}
}

// advanced returns the blend from a cell on, with the sums that there are.
func (b blend) advanced(first int) blend {
	for _, sums := range [][]float64{b.weight, b.mean, b.variance} {
		kept := copy(sums, sums[min(first-b.first, len(sums)):])
		clear(sums[kept:])
	}
	b.first = first
	return b
}

// fill estimates the wanted cells.
func (a *analysis) fill(ctx context.Context, wanted func(c int) bool, e Estimate, progress func(done, total int)) {
	rows := bandCells / (a.series.Grid.Width() * a.oi.Spacing)
	a.fillBands(ctx, max(rows, leastRows), wanted, e, progress)
}

// fillBands is fill in bands of so many rows of nodes. Rows of a band that share no cell
// are distributed among the workers, so that nothing depends on their number.
func (a *analysis) fillBands(ctx context.Context, band int, wanted func(c int) bool, e Estimate, progress func(done, total int)) {
	g := a.series.Grid
	w, h := g.Width(), g.Height()
	rows, cols := axisNodes(h, a.oi.Spacing), a.columnNodes()
	// The first line of a row of nodes; that of one beyond the last is the end.
	line := func(row int) int {
		if row < len(rows) && len(rows[row].lines) > 0 {
			return int(rows[row].lines[0].index)
		}
		return h
	}
	most := 0 // lines of a band
	for first := 0; first < len(rows); first += band {
		last := rows[min(first+band, len(rows))-1]
		end := h
		if n := len(last.lines); n > 0 {
			end = int(last.lines[n-1].index) + 1
		}
		most = max(most, end-line(first))
	}
	var idle []*solver // no sync.Pool: that would keep the analysis until the collection after the next
	var mu sync.Mutex
	sums, filled := newBlend(most*w), make([]bool, g.Len())
	done := 0
	for first := 0; first < len(rows); first += band {
		end := min(first+band, len(rows))
		for phase := first; phase < min(first+phases, end); phase++ {
			a.oi.each((end-phase+phases-1)/phases, func(i int) {
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				if len(idle) == 0 {
					idle = append(idle, newSolver(a))
				}
				s := idle[len(idle)-1]
				idle = idle[:len(idle)-1]
				mu.Unlock()
				a.fillRow(rows[phase+phases*i], cols, wanted, s, sums)
				mu.Lock()
				defer mu.Unlock()
				idle = append(idle, s)
				if done++; progress != nil {
					progress(done, len(rows))
				}
			})
		}
		a.conclude(sums, line(end)*w, filled, e)
		sums = sums.advanced(line(end) * w)
	}
	if a.oi.Spacing >= blurredSpacing {
		copy(e.Sigma, field.Blur(e.Sigma, filled, g, 1))
	}
}

// gap reports whether a cell is to be filled.
func (a *analysis) gap(c int) bool { return a.series.sea(c) && !a.series.observed(a.target, c) }

// A knot is a node on one axis of the grid: the line nearest to it, how many lines
// it lies beyond that, and the lines within its support.
type knot struct {
	line, beyond int
	lines        []weighted
}

// weighted is a line or a cell with the weight of a node there.
type weighted struct {
	index  int32
	weight float64
}

// axisNodes returns the nodes along an axis with an end. There is one before the
// first line and there are up to two behind the last, so that the weights sum to one everywhere.
func axisNodes(lines, spacing int) []knot {
	nodes := make([]knot, (lines-1+spacing-1)/spacing+3)
	for k := range nodes {
		at := (k - 1) * spacing
		nodes[k].line = min(max(at, 0), lines-1)
		nodes[k].beyond = at - nodes[k].line
		for i := max(at-2*spacing, 0); i < min(at+2*spacing, lines); i++ {
			if w := bspline(float64(i-at) / float64(spacing)); w > 0 {
				nodes[k].lines = append(nodes[k].lines, weighted{int32(i), w})
			}
		}
	}
	return nodes
}

// columnNodes returns the nodes along the circles of latitude. Where they close
// around the Earth, so do the nodes, and they lie at the same longitudes wherever
// the grid begins.
func (a *analysis) columnNodes() []knot {
	g := a.series.Grid
	w := g.Width()
	if !g.Periodic() || w < 4*a.oi.Spacing {
		return axisNodes(w, a.oi.Spacing)
	}
	column := make([]int32, w) // by rank from the west
	for j := range w {
		column[a.sphere.rank(j)] = int32(j)
	}
	nodes := make([]knot, w/a.oi.Spacing)
	spacing := float64(w) / float64(len(nodes))
	for k := range nodes {
		at := float64(k) * spacing
		nodes[k].line = int(column[int(math.Round(at))%w])
		for i := int(math.Floor(at - support*spacing)); float64(i) < at+support*spacing; i++ {
			if weight := bspline((float64(i) - at) / spacing); weight > 0 {
				nodes[k].lines = append(nodes[k].lines, weighted{column[(i+w)%w], weight})
			}
		}
	}
	return nodes
}

// fillRow adds the solutions of one row of nodes.
func (a *analysis) fillRow(row knot, cols []knot, wanted func(c int) bool, s *solver, sums blend) {
	w := a.series.Grid.Width()
	var cells []weighted
	for _, col := range cols {
		cells = cells[:0]
		for _, i := range row.lines {
			for _, j := range col.lines {
				if c := int(i.index)*w + int(j.index); wanted(c) {
					cells = append(cells, weighted{int32(c), i.weight * j.weight})
				}
			}
		}
		if len(cells) > 0 {
			s.add(a.node(row, col), cells, sums)
		}
	}
}

// node returns the place of a node. One beyond the edge of the grid has a place
// of its own there: the nodes along an edge would share their neighbours if it
// were put on the edge, and the map would be smoother there than inside.
func (a *analysis) node(row, col knot) point {
	g := a.series.Grid
	w := g.Width()
	edge := a.sphere.at(row.line, col.line)
	at := edge
	leave := func(beyond, stride, lines int) {
		if beyond == 0 || lines == 1 {
			return
		}
		inward, steps := stride, float32(-beyond)
		if beyond > 0 {
			inward, steps = -stride, float32(beyond)
		}
		inner := a.sphere.of(int32(row.line*w + col.line + inward))
		at.x += steps * (edge.x - inner.x)
		at.y += steps * (edge.y - inner.y)
		at.z += steps * (edge.z - inner.z)
	}
	leave(row.beyond, w, g.Height())
	leave(col.beyond, 1, w)
	return at
}

// bspline is the quadratic B-spline of unit spacing, centred at zero.
//
// See de Boor, A Practical Guide to Splines (2001), chapter IX.
func bspline(x float64) float64 {
	x = math.Abs(x)
	switch {
	case x < 0.5:
		return 0.75 - x*x
	case x < support:
		return (support - x) * (support - x) / 2
	}
	return 0
}

// conclude turns the sums of all cells before one into estimates.
func (a *analysis) conclude(sums blend, end int, filled []bool, e Estimate) {
	for i, weight := range sums.weight[:end-sums.first] {
		if c := sums.first + i; weight > 0 {
			filled[c] = true
			e.Mean[c], e.Sigma[c] = a.unscaled(int32(c), sums.mean[i]/weight, sums.variance[i]/weight)
		}
	}
}

// blurredSpacing is the least distance of nodes that shows in sigma.
const blurredSpacing = 3

// unscaled returns the estimate of a cell, of which mean and variance are in units of
// the background's spread.
func (a *analysis) unscaled(c int32, mean, variance float64) (value, sigma float32) {
	sd := a.bg.deviation(int(c))
	return float32(float64(a.bg.mean[c]) + mean*sd), float32(a.oi.SigmaScale * math.Sqrt(variance+float64(a.bg.far(int(c)))) * sd)
}
