package classical

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"lacuna/pipeline/field"
)

const (
	// widenCells is how many hidden cells of an overlay are estimated: errors of
	// neighbouring cells are alike, so more overlays tell more than more cells.
	widenCells = 80
	// widenTries bounds the search for overlays in a series that has hardly any.
	widenTries = 64
	// widenClasses is the number of classes of the expected error that have a
	// factor on sigma of their own.
	widenClasses = 4
	// shyClusters is the weight of the factor 1, in clusters of errors.
	shyClusters = 4
)

// A widening is a factor on sigma, by the error variance that the covariance
// expects in units of the spread. The constants of a covariance are never those of
// the sea at hand: its noise shows close to observations, its length and its
// spread far from them, and each needs a factor of its own. Factors are
// interpolated, so that a map of sigma has no steps. The zero value is 1
// everywhere.
type widening struct {
	variance, factor []float64 // the former ascends
}

// of returns the factor for an error variance.
func (w widening) of(variance float64) float64 {
	n := len(w.variance)
	switch {
	case n == 0:
		return 1
	case variance <= w.variance[0]:
		return w.factor[0]
	case variance >= w.variance[n-1]:
		return w.factor[n-1]
	}
	i, _ := slices.BinarySearch(w.variance, variance)
	share := (variance - w.variance[i-1]) / (w.variance[i] - w.variance[i-1])
	return w.factor[i-1] + share*(w.factor[i]-w.factor[i-1])
}

// widen measures the widening on the frames of the analysis themselves: one after
// the other is hidden in part under the gaps of another, or under mirrored gaps
// where there are no others, and estimated from the rest. A sea that is new has
// that much to calibrate by on its first day.
func (a *analysis) widen(ctx context.Context, trees []boxTree) widening {
	var covers []cover
	for _, c := range a.covers() {
		if len(covers) == a.oi.Overlays {
			break
		}
		if a.under(c) != nil { // found again by the check: all of them are as large as a field
			covers = append(covers, c)
		}
	}
	all := make([][]checked, len(covers))
	o := a.oi
	if a.series.Grid.Len() > 1<<20 {
		o.Workers = 1 // a check has maps of its own, and large ones take much memory
	}
	o.each(len(covers), func(i int) {
		if ctx.Err() == nil {
			all[i] = a.check(covers[i], trees)
		}
	})
	return fitWidening(slices.Concat(all...))
}

// calibrated returns an estimate with its sigma times the widening.
func (a *analysis) calibrated(e Estimate, w widening) Estimate {
	e.Expected, e.Sigma = e.Sigma, slices.Clone(e.Sigma)
	for c, sigma := range e.Expected {
		if sd := float64(a.bg.sd[c]) * a.oi.SigmaScale; sd > 0 && sigma == sigma { // not NaN
			ratio := float64(sigma) / sd
			e.Sigma[c] = float32(float64(sigma) * w.of(ratio*ratio))
		}
	}
	return e
}

// A cover is a frame with a part hidden under the gaps of a frame.
type cover struct {
	frame, gaps    int
	columns, lines bool // which of them are mirrored in the gaps
}

// covers returns covers in the order in which they are tried: frames near the
// target first, and all of them before one comes again.
func (a *analysis) covers() []cover {
	order := make([]int, len(a.series.Frames))
	for f := range order {
		order[f] = f
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(math.Abs(a.series.days(x, a.target)), math.Abs(a.series.days(y, a.target)))
	})
	var all []cover
	for mirror := range 4 {
		for step := range order {
			if mirror == 0 && step == 0 {
				continue // its own gaps hide nothing
			}
			for i, f := range order {
				if len(all) == widenTries {
					return all
				}
				all = append(all, cover{frame: f, gaps: order[(i+step)%len(order)], columns: mirror&1 != 0, lines: mirror&2 != 0})
			}
		}
	}
	return all
}

// under returns the cells that a cover hides; nil where it hides or leaves too
// few. Columns are mirrored by their longitude, so that nothing depends on where
// the grid begins.
func (a *analysis) under(k cover) []int32 {
	w, h := a.series.Grid.Width(), a.series.Grid.Height()
	byRank := make([]int, w)
	for j := range w {
		byRank[a.sphere.rank(j)] = j
	}
	lender := make([]int, w)
	for j := range w {
		lender[j] = j
		if k.columns {
			lender[j] = byRank[w-1-a.sphere.rank(j)]
		}
	}
	visible := 0
	var hidden []int32
	for c := range a.series.Grid.Len() {
		if !a.series.observed(k.frame, c) {
			continue
		}
		row := c / w
		if k.lines {
			row = h - 1 - row
		}
		if a.series.observed(k.gaps, row*w+lender[c%w]) {
			visible++
		} else {
			hidden = append(hidden, int32(c))
		}
	}
	if visible < leastCells || len(hidden) < leastCells {
		return nil
	}
	return hidden
}

// checked is an error of an estimate in units of the spread, the variance that was
// expected of it, and the cluster within which errors are alike.
type checked struct {
	miss
	cluster [4]int32
}

// check estimates hidden cells of a cover from what it leaves.
func (a *analysis) check(k cover, trees []boxTree) []checked {
	s := a.series
	s.Frames = slices.Clone(s.Frames)
	truth := s.Frames[k.frame].Values
	left, hidden := slices.Clone(truth), a.under(k)
	for _, c := range hidden {
		left[c] = field.NaN()
	}
	asked := a.draw(hidden, widenCells)
	s.Frames[k.frame].Values = left
	trees = slices.Clone(trees)
	trees[k.frame] = newBoxTree(a.sphere, s.Grid, func(c int) bool { return s.observed(k.frame, c) })
	b := &analysis{oi: a.oi, series: s, target: k.frame, bg: backgroundOf(s, a.oi.SmoothKM), sphere: a.sphere}
	b.search(trees)
	solver := newSolver(b)
	var out []checked
	for _, c := range asked {
		value, sigma := solver.estimate(c)
		if sd := b.bg.deviation(int(c)) * a.oi.SigmaScale; sd > 0 {
			p, length := a.sphere.of(c), float32(a.oi.LengthKM)
			out = append(out, checked{
				miss:    miss{by: float64(value-truth[c]) / sd, sigma: float64(sigma) / sd, over: max(b.excess(s.Frames[k.frame].Errors, int(c)), 0)},
				cluster: [4]int32{int32(k.frame), int32(p.x / length), int32(p.y / length), int32(p.z / length)},
			})
		}
	}
	return out
}

// draw returns n of the cells by chance that depends on their place only, not on
// the order of rows and columns.
func (a *analysis) draw(cells []int32, n int) []int32 {
	chance := func(c int32) uint64 {
		p := a.sphere.of(c)
		v := uint64(math.Float32bits(p.x))<<32 ^ uint64(math.Float32bits(p.y))<<16 ^ uint64(math.Float32bits(p.z))
		for range 2 { // the mixing of splitmix64
			v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
			v = (v ^ v>>27) * 0x94d049bb133111eb
			v ^= v >> 31
		}
		return v
	}
	drawn := cells
	if len(cells) > 8*n { // most need no place in the order
		drawn = nil
		for _, c := range cells {
			if chance(c) < math.MaxUint64/uint64(len(cells))*uint64(4*n) {
				drawn = append(drawn, c)
			}
		}
	}
	slices.SortFunc(drawn, func(x, y int32) int { return cmp.Compare(chance(x), chance(y)) })
	return drawn[:min(n, len(drawn))]
}

// fitWidening returns the factors with which 90 % of the errors lie within 1.645
// sigma, in classes of as many errors each.
func fitWidening(all []checked) widening {
	slices.SortFunc(all, func(x, y checked) int { return cmp.Compare(x.sigma, y.sigma) })
	var w widening
	for k := range widenClasses {
		class := all[k*len(all)/widenClasses : (k+1)*len(all)/widenClasses]
		if len(class) < leastCells {
			continue
		}
		misses, clusters := make([]miss, len(class)), map[[4]int32]bool{}
		variance := 0.0
		for i, c := range class {
			misses[i], clusters[c.cluster] = c.miss, true
			variance += c.sigma * c.sigma / float64(len(class))
		}
		if n := len(w.variance); n > 0 && variance <= w.variance[n-1] {
			continue // all errors are expected to be alike
		}
		n := float64(len(clusters)) // those that touch are alike to a degree, and two count as one
		w.variance = append(w.variance, variance)
		w.factor = append(w.factor, math.Pow(calibration(misses), n/(n+shyClusters))*student(n/2))
	}
	return w
}

// student returns by how much an interval must be wider when the spread behind it
// was estimated with so many degrees of freedom; with fewer than three as with
// three, because the covariance is worth as many.
func student(degrees float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: max(degrees, 3)}.Quantile(0.95) / ninety
}
