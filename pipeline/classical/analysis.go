package classical

import (
	"cmp"
	"math"
	"slices"
)

// An analysis is the data that all solves for one target share. It does not
// change while they run.
type analysis struct {
	oi     OI
	series Series
	target int
	bg     background
	sphere *sphere
	frames []searchFrame // nearest in time first; those without observations are left out
	lags   []float64     // correlations in time of every two of the frames, row by row
	erring float64       // square of the error of the better observations; 0: none comes with one
}

// A searchFrame is a frame seen from the target.
type searchFrame struct {
	tree   *boxTree
	values []float32
	errors []float32 // nil: none is known
	days   float64   // days after the target; negative: before
	decay  float64   // correlation in time with the target
}

// alongRow returns the unit vector from a cell to the next of its row.
func (a *analysis) alongRow(cell int32) [3]float64 {
	w := int32(a.series.Grid.Width())
	if w == 1 {
		return [3]float64{}
	}
	from := cell
	if cell%w == w-1 {
		from--
	}
	p, q := a.sphere.of(from), a.sphere.of(from+1)
	x, y, z := float64(q.x-p.x), float64(q.y-p.y), float64(q.z-p.z)
	length := math.Sqrt(x*x + y*y + z*z)
	return [3]float64{x / length, y / length, z / length}
}

// search prepares the frames of the series, one tree each, for the search of
// neighbours.
func (a *analysis) search(trees []boxTree) {
	a.erring = a.series.Erring()
	for f := range trees {
		if !trees[f].empty() {
			a.frames = append(a.frames, searchFrame{
				tree:   &trees[f],
				values: a.series.Frames[f].Values,
				errors: a.series.Frames[f].Errors,
				days:   a.series.days(f, a.target),
			})
		}
	}
	slices.SortStableFunc(a.frames, func(x, y searchFrame) int {
		return cmp.Compare(math.Abs(x.days), math.Abs(y.days))
	})
	a.lags = make([]float64, 0, len(a.frames)*len(a.frames))
	for i, x := range a.frames {
		a.frames[i].decay = math.Exp(-math.Abs(x.days) / a.oi.Days)
		for _, y := range a.frames {
			a.lags = append(a.lags, math.Exp(-math.Abs(x.days-y.days)/a.oi.Days))
		}
	}
}

// keepObserved stores the target's own observations.
func (a *analysis) keepObserved(e Estimate) {
	noise := a.oi.SigmaScale * math.Sqrt(a.oi.Nugget)
	for c, v := range a.series.Frames[a.target].Values {
		if a.series.observed(a.target, c) {
			own := noise
			if more := a.excess(a.series.Frames[a.target].Errors, c); more != 0 {
				own = a.oi.SigmaScale * math.Sqrt(a.oi.Nugget+more)
			}
			e.Mean[c], e.Sigma[c] = v, float32(own*float64(a.bg.sd[c]))
		}
	}
}
