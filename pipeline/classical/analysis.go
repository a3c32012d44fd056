package classical

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"lacuna/pipeline/field"
)

// An analysis is the data that all solves for one target share. It does not
// change while they run.
type analysis struct {
	oi     OI
	series Series
	target int
	bg     background
	sphere []point
	frames []searchFrame // nearest in time first; those without observations are left out
}

// A searchFrame is a frame seen from the target.
type searchFrame struct {
	tree   *boxTree
	values []float32
	days   float64 // days after the target; negative: before
}

// newSphere returns the position of every cell. Longitudes are wrapped first:
// one place has the same position to the last bit on a grid that counts from
// 0 and on one that counts from -180.
func newSphere(g field.Grid) []point {
	w := g.Width()
	wrapped, order := make([]float64, w), make([]int, w)
	for j, lon := range g.Lon {
		wrapped[j], order[j] = field.Wrap(lon), j
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(wrapped[a], wrapped[b]) })
	rank := make([]int, w)
	for k, j := range order {
		rank[j] = k
	}
	sphere := make([]point, g.Len())
	meridian := field.Grid{Lat: g.Lat, Lon: []float64{0}}
	sin, cos := make([]float64, w), make([]float64, w)
	for j, lon := range wrapped {
		sin[j], cos[j] = math.Sincos(lon * math.Pi / 180)
	}
	for i := range g.Lat {
		radius, _, z := meridian.Cartesian(i, 0) // radius of the circle of latitude
		for j := range w {
			sphere[i*w+j] = point{
				x: float32(radius * cos[j]), y: float32(radius * sin[j]), z: float32(z),
				cell: int32(i*w + j), rank: int32(i*w + rank[j]),
			}
		}
	}
	return sphere
}

// search prepares the frames of the series, one tree each, for the search of
// neighbours.
func (a *analysis) search(trees []boxTree) {
	for f := range trees {
		if len(trees[f].cells) > 0 {
			a.frames = append(a.frames, searchFrame{
				tree:   &trees[f],
				values: a.series.Frames[f].Values,
				days:   a.series.days(f, a.target),
			})
		}
	}
	slices.SortStableFunc(a.frames, func(x, y searchFrame) int {
		return cmp.Compare(math.Abs(x.days), math.Abs(y.days))
	})
}

// keepObserved stores the target's own observations.
func (a *analysis) keepObserved(e Estimate) {
	noise := a.oi.SigmaScale * math.Sqrt(a.oi.Nugget)
	for c, v := range a.series.Frames[a.target].Values {
		if a.series.observed(a.target, c) {
			e.Mean[c], e.Sigma[c] = v, float32(noise*float64(a.bg.sd[c]))
		}
	}
}

// fill estimates all gaps of the target. Rows of blocks are distributed among
// the workers; a block does not depend on its worker or on the order.
func (a *analysis) fill(ctx context.Context, e Estimate, progress func(done, total int)) {
	rows := (a.series.Grid.Height() + a.oi.Block - 1) / a.oi.Block
	solvers := sync.Pool{New: func() any { return newSolver(a) }}
	var mu sync.Mutex
	done := 0
	a.oi.each(rows, func(r int) {
		if ctx.Err() != nil {
			return
		}
		s := solvers.Get().(*solver)
		a.fillRow(r, s, e)
		solvers.Put(s)
		if progress != nil {
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, rows)
		}
	})
}

// fillRow estimates the gaps in one row of blocks.
func (a *analysis) fillRow(r int, s *solver, e Estimate) {
	h, w, side := a.series.Grid.Height(), a.series.Grid.Width(), a.oi.Block
	cells := make([]int32, 0, side*side)
	for left := 0; left < w; left += side {
		cells = cells[:0]
		for i := r * side; i < min((r+1)*side, h); i++ {
			for j := left; j < min(left+side, w); j++ {
				c := i*w + j
				if a.series.sea(c) && !a.series.observed(a.target, c) {
					cells = append(cells, int32(c))
				}
			}
		}
		if len(cells) > 0 {
			s.estimate(cells, e)
		}
	}
}
