package prior

import (
	"context"
	"fmt"
)

// Latents are walks at one level: for each item the channel of the class gap,
// then that of the class observed, cell by cell.
type Latents struct {
	X            []float32 // items × 2 × cells
	Items, Cells int
	Level        Level
}

// A Predictor estimates the probability that each cell is observed in the mask
// that the latents lead to, items × cells. With anchors, items × cells of 0 or
// 1, it also returns the gradient of each item's guidance loss with respect to
// its latents, shaped as they are; with none, the gradient is nil.
//
// A network is one, and so is the exact posterior of a distribution that has
// one in closed form.
type Predictor func(ctx context.Context, at Latents, anchors []float32) (observed, gradient []float32, err error)

// A pull is guidance towards anchors.
type pull struct {
	anchors []float32
	weight  float64 // w_g, already scaled to the number of cells
	steps   int     // guided steps, from the first; 0: all
}

// walk carries noise, items × 2 × cells of standard normal numbers, along the
// probability-flow ODE to masks, in place:
//
//	x' = α'·x̂₀ + σ'·(x - α·x̂₀)/σ - w·∇L(x),  x̂₀ = K·ê
//
// The levels lead from noise to the mask; the last one is not predicted at. The
// first has a little of the mask in it, which noise has not: its step takes
// all of x as noise, so that the mean of what follows is right.
func walk(ctx context.Context, predict Predictor, levels []Level, x []float32, items int, p *pull) error {
	cells := len(x) / (classes * items)
	start := float32(levels[0].Sigma)
	if levels[0].Sigma > 0 { // else the walk starts at zero, and x is still its noise
		for i := range x {
			x[i] *= start
		}
	}
	at := Latents{X: x, Items: items, Cells: cells}
	for i, to := range levels[1:] {
		at.Level = levels[i]
		var anchors []float32
		if p != nil && p.weight != 0 && (p.steps == 0 || i < p.steps) {
			anchors = p.anchors
		}
		observed, gradient, err := predictFrom(ctx, predict, at, anchors)
		if err != nil {
			return fmt.Errorf("step %d of %d: %w", i+1, len(levels)-1, err)
		}
		if i == 0 {
			at.Level.Alpha = 0
		}
		advance(at, observed, to)
		if anchors != nil {
			w := float32(p.weight)
			for k, g := range gradient {
				x[k] -= w * g
			}
		}
	}
	return nil
}

// predictFrom asks the predictor. At a level without noise the latents that it
// sees are zero, whatever noise the walk will take from there.
func predictFrom(ctx context.Context, predict Predictor, at Latents, anchors []float32) (observed, gradient []float32, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if at.Level.Sigma == 0 {
		at.X = make([]float32, len(at.X))
	}
	return predict(ctx, at, anchors)
}

// advance takes one step of the ODE, in place, given the probability that each
// cell is observed.
func advance(at Latents, observed []float32, to Level) {
	from := at.Level
	// x' = data·x̂₀ + keep·x
	data, keep := to.Alpha, to.Sigma
	if from.Sigma > 0 {
		data -= to.Sigma * from.Alpha / from.Sigma
		keep /= from.Sigma
	}
	scale, k := float32(classes*data), float32(keep)
	for item := range at.Items {
		e := observed[item*at.Cells : (item+1)*at.Cells]
		gap := at.X[item*classes*at.Cells:][:at.Cells]
		seen := at.X[item*classes*at.Cells+at.Cells:][:at.Cells]
		for i, p := range e {
			gap[i] = scale*(1-p) + k*gap[i]
			seen[i] = scale*p + k*seen[i]
		}
	}
}

// decode returns the likelier class of each cell of each item.
func decode(x []float32, items int) [][]bool {
	cells := len(x) / (classes * items)
	out := make([][]bool, items)
	for item := range out {
		gap := x[item*classes*cells:][:cells]
		seen := x[item*classes*cells+cells:][:cells]
		mask := make([]bool, cells)
		for i := range mask {
			mask[i] = seen[i] > gap[i]
		}
		out[item] = mask
	}
	return out
}
