package classical

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"lacuna/pipeline/field"
)

const (
	// leastCells is how many cells an overlay must leave visible, and how
	// many it must hide, to be scored: with fewer a score is chance.
	leastCells = 20
	// triesPerOverlay bounds the search for pairs of days on records that
	// have hardly any.
	triesPerOverlay = 30
)

// An overlay is a day with a part hidden under the gaps of another day.
type overlay struct {
	target, gaps int     // frames of the series
	hidden       []int32 // cells to score
}

// layOver draws overlays: the target, any frame or one of those given, and the frame
// whose gaps hide it are chosen at random, at least t.Apart away from each other.
func layOver(s Series, t Tuning, targets []int) []overlay {
	rng := rand.New(rand.NewPCG(t.Seed, 0))
	var drawn []overlay
	taken := map[[2]int]bool{}
	for try := 0; try < triesPerOverlay*t.Overlays && len(drawn) < t.Overlays; try++ {
		pair := [2]int{rng.IntN(len(s.Frames)), rng.IntN(len(s.Frames))}
		if targets != nil {
			pair[0] = targets[pair[0]%len(targets)]
		}
		apart := s.Frames[pair[0]].Time.Sub(s.Frames[pair[1]].Time).Abs()
		if taken[pair] || apart < t.Apart || pair[0] == pair[1] {
			continue
		}
		taken[pair] = true
		visible, hidden := s.split(pair[0], pair[1])
		if visible < leastCells || len(hidden) < leastCells {
			continue
		}
		rng.Shuffle(len(hidden), func(i, j int) { hidden[i], hidden[j] = hidden[j], hidden[i] })
		hidden = slices.Clone(hidden[:min(len(hidden), t.Pixels)])
		drawn = append(drawn, overlay{target: pair[0], gaps: pair[1], hidden: hidden})
	}
	return drawn
}

// split returns how many of the target's observations stay visible under the
// gaps of another frame, and the cells of the rest.
func (s Series) split(target, gaps int) (visible int, hidden []int32) {
	for c := range s.Grid.Len() {
		switch {
		case !s.observed(target, c):
		case s.observed(gaps, c):
			visible++
		default:
			hidden = append(hidden, int32(c))
		}
	}
	return visible, hidden
}

// A trial scores settings on the same overlays.
type trial struct {
	series   Series
	tuning   Tuning
	overlays []overlay
	sphere   *sphere
	trees    []boxTree // trees of the complete frames
	served   bool      // estimates are blended from nodes, as in products
}

func newTrial(s Series, t Tuning, o OI) *trial {
	sphere := newSphere(s.Grid)
	return &trial{series: s, tuning: t, overlays: layOver(s, t, nil), sphere: sphere, trees: o.buildTrees(s, sphere)}
}

// A miss is the error of one estimate and its sigma.
type miss struct {
	by, sigma float64
	// over is the variance by which the observation that tells of the error is noisier
	// than the nugget, which sigma knows of: an estimate is not to blame for it.
	over float64
}

// ratio returns the error in units of what is expected of it.
func (m miss) ratio() float64 { return math.Abs(m.by) / math.Sqrt(m.sigma*m.sigma+m.over) }

// misses returns, for each candidate, the errors on all overlays, in their
// order. Candidates must agree in SmoothKM and Workers.
func (t *trial) misses(ctx context.Context, candidates []OI) ([][]miss, error) {
	return missesOf(ctx, len(t.overlays), func(i int) [][]miss { return t.missesOn(t.overlays[i], candidates) }, candidates)
}

// missesOf gathers, for each candidate, the errors on n days, in their order.
func missesOf(ctx context.Context, n int, on func(i int) [][]miss, candidates []OI) ([][]miss, error) {
	perDay := make([][][]miss, n)
	candidates[0].each(n, func(i int) {
		if ctx.Err() == nil {
			perDay[i] = on(i)
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := make([][]miss, len(candidates))
	for _, byCandidate := range perDay {
		for k := range all {
			all[k] = append(all[k], byCandidate[k]...)
		}
	}
	return all, nil
}

// missesOn runs all candidates on one overlay.
func (t *trial) missesOn(l overlay, candidates []OI) [][]miss {
	s, target := t.covered(l)
	first := l.target - target
	trees := slices.Clone(t.trees[first : first+len(s.Frames)])
	trees[target] = newBoxTree(t.sphere, s.Grid, func(c int) bool { return s.observed(target, c) })
	h := Hidden{Series: s, Target: target, Cells: l.hidden, Truth: t.series.Frames[l.target].Values}
	return h.misses(candidates, t.sphere, trees, t.served)
}

// A Hidden is a day of which a part is hidden, to be estimated from the rest.
type Hidden struct {
	Series Series // hidden cells of the target are gaps
	Target int
	Cells  []int32   // hidden cells to score
	Truth  []float32 // values of the target, hidden ones included
}

// detrended returns the day less its drift.
func (h Hidden) detrended() Hidden {
	drift := h.Series.Frames[h.Target].Drift
	if h.Series = h.Series.Detrended(); drift == nil {
		return h
	}
	truth := make([]float32, len(h.Truth))
	for i, v := range h.Truth {
		truth[i] = v - finiteOr0(drift[i])
	}
	h.Truth = truth
	return h
}

// misses runs all candidates on the day, with a search tree for each of its frames.
func (h Hidden) misses(candidates []OI, sphere *sphere, trees []boxTree, served bool) [][]miss {
	bg := newBackground(h.Series, candidates[0].SmoothKM)
	e := gaps(h.Series.Grid.Len())
	all := make([][]miss, len(candidates))
	for k, o := range candidates {
		a := &analysis{oi: o, series: h.Series, target: h.Target, bg: bg, sphere: sphere}
		a.search(trees)
		a.estimate(h.Cells, e, served)
		for _, c := range h.Cells {
			sd := float64(bg.sd[c])
			over := max(a.excess(h.Series.Frames[h.Target].Errors, int(c)), 0) * sd * sd
			all[k] = append(all[k], miss{by: float64(e.Mean[c]) - float64(h.Truth[c]), sigma: float64(e.Sigma[c]), over: over})
		}
	}
	return all
}

// estimate stores the estimates of some cells: each from its own neighbours, which
// ranks settings as well as the blend of nine nodes in a ninth of the time, or as
// they would be served.
func (a *analysis) estimate(cells []int32, e Estimate, served bool) {
	if !served {
		solver := newSolver(a)
		for _, c := range cells {
			e.Mean[c], e.Sigma[c] = solver.estimate(c)
		}
		return
	}
	wanted := make([]bool, len(e.Mean))
	for _, c := range cells {
		wanted[c] = true
	}
	a.oi.Workers = 1 // days are distributed among the workers already
	a.fill(context.Background(), func(c int) bool { return wanted[c] }, e, nil)
}

// covered returns the window around the overlay's target, with the hidden cells
// as gaps, and the target's index.
func (t *trial) covered(l overlay) (Series, int) {
	s, target := t.series.Window(l.target, t.tuning.Past, t.tuning.Future)
	s.Frames = slices.Clone(s.Frames)
	visible := slices.Clone(s.Frames[target].Values)
	for c := range visible {
		if !t.series.observed(l.gaps, c) {
			visible[c] = field.NaN()
		}
	}
	s.Frames[target].Values = visible
	return s, target
}
