package classical

import (
	"context"
	"slices"
	"time"
)

// Detrended returns the series less the drift of its frames: what is left for the
// mean map and the covariance to explain. A series without any is returned as it is.
// Where a drift is NaN it counts as zero.
func (s Series) Detrended() Series {
	if !slices.ContainsFunc(s.Frames, func(f Frame) bool { return f.Drift != nil }) {
		return s
	}
	s.Frames = slices.Clone(s.Frames)
	workers(s.Grid.Len()).each(len(s.Frames), func(f int) {
		frame := s.Frames[f]
		if frame.Drift == nil {
			return
		}
		if len(frame.Drift) != s.Grid.Len() {
			panic(badLength)
		}
		values := make([]float32, len(frame.Values))
		for i, v := range frame.Values {
			values[i] = v - finiteOr0(frame.Drift[i])
		}
		s.Frames[f] = Frame{Time: frame.Time, Values: values, Errors: frame.Errors}
	})
	return s
}

// withDrift adds the drift of the target back to an estimate of the detrended
// series. Observed cells keep the exact value of the series.
func (s Series) withDrift(e Estimate, target int) {
	frame := s.Frames[target]
	for i, d := range frame.Drift {
		switch {
		case s.observed(target, i):
			e.Mean[i] = frame.Values[i]
		default:
			e.Mean[i] += finiteOr0(d)
		}
	}
}

func finiteOr0(v float32) float32 {
	if v-v != 0 {
		return 0
	}
	return v
}

// Missed are the errors of estimates on the hidden cells of one overlay.
type Missed struct {
	Time time.Time
	By   [][]float64 // of the series, and of each of the others, on the same cells
}

// Misses returns the errors of o on overlays of the target days: of a series, and of
// other variables that are known wherever it was observed, seen in the same cells and
// with the same weights. What is linear in the variables is so in their errors: those of
// the series less a drift b·x are its own less b times those of x. Without an overlay it
// returns ErrNoOverlays.
func (o OI) Misses(ctx context.Context, s Series, others [][][]float32, targets []int, t Tuning) ([]Missed, error) {
	s.check(0)
	trial := &trial{series: s, tuning: t, overlays: layOver(s, t, targets), sphere: newSphere(s.Grid)}
	if len(trial.overlays) == 0 {
		return nil, ErrNoOverlays
	}
	trial.trees = o.buildTrees(s, trial.sphere)
	out := make([]Missed, len(trial.overlays))
	o.each(len(out), func(i int) {
		if ctx.Err() == nil {
			out[i] = trial.missesOfAll(trial.overlays[i], others, o)
		}
	})
	return out, ctx.Err()
}

// missesOfAll estimates the hidden cells of an overlay for the series and for others.
func (t *trial) missesOfAll(l overlay, others [][][]float32, o OI) Missed {
	s, target := t.covered(l)
	first := l.target - target
	trees := slices.Clone(t.trees[first : first+len(s.Frames)])
	trees[target] = newBoxTree(t.sphere, s.Grid, func(c int) bool { return s.observed(target, c) })
	out := Missed{Time: s.Frames[target].Time}
	spread := newBackground(s, o.SmoothKM).sd
	miss := func(s Series, truth []float32) {
		bg := backgroundOf(s, o.SmoothKM)
		bg.sd = spread
		a := &analysis{oi: o, series: s, target: target, bg: bg, sphere: t.sphere}
		a.search(trees)
		solver := newSolver(a)
		by := make([]float64, len(l.hidden))
		for k, c := range l.hidden {
			value, _ := solver.estimate(c)
			by[k] = float64(value) - float64(truth[c])
		}
		out.By = append(out.By, by)
	}
	miss(s, t.series.Frames[l.target].Values)
	for _, maps := range others {
		seen := s
		seen.Frames = slices.Clone(s.Frames)
		for f := range seen.Frames {
			values := slices.Clone(maps[first+f])
			for c, v := range s.Frames[f].Values {
				if v-v != 0 {
					values[c] = v
				}
			}
			seen.Frames[f].Values = values
		}
		miss(seen, maps[l.target])
	}
	return out
}
