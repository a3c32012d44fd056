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
// that the latents lead to, items × cells.
//
// A network is one, and so is the exact posterior of a distribution that has
// one in closed form.
type Predictor func(ctx context.Context, at Latents) (observed []float32, err error)

// A move is one step of a walk,
//
//	x' = data·K·ê + keep·x - pull·∇L,  ê and ∇L at look·x and the level
type move struct {
	level            Level // that the predictor is told
	look, data, keep float64
	pull             float64 // 0: not guided
}

// A walker holds latents, wherever they are kept, and takes them along.
type walker interface {
	advance(ctx context.Context, m move) error
}

// A pull is guidance towards anchors.
type pull struct {
	weight float64 // w_g, already scaled to the number of cells
	steps  int     // guided steps, from the first; 0: all
}

// walk takes latents, at first noise of the standard deviation that
// startDeviation says, along the probability-flow ODE to masks.
func walk(ctx context.Context, w walker, levels []Level, p pull) error {
	moves := movesOf(levels, p)
	for i, m := range moves {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.advance(ctx, m); err != nil {
			return fmt.Errorf("step %d of %d: %w", i+1, len(moves), err)
		}
	}
	return nil
}

// movesOf returns the steps
//
//	x' = α'·x̂₀ + σ'·(x - α·x̂₀)/σ - w·∇L(x),  x̂₀ = K·ê
//
// between levels that lead from noise to the mask; the last one is not
// predicted at. The first has a little of the mask in it, which noise has not:
// its step takes all of x as noise, so that the mean of what follows is right.
// At a level without noise the predictor sees zero, whatever noise the walk
// will take from there.
func movesOf(levels []Level, p pull) []move {
	moves := make([]move, len(levels)-1)
	for i, to := range levels[1:] {
		from := levels[i]
		m := move{level: from, look: 1, data: to.Alpha, keep: to.Sigma}
		if from.Sigma == 0 {
			m.look = 0
		} else {
			if i > 0 {
				m.data -= to.Sigma * from.Alpha / from.Sigma
			}
			m.keep /= from.Sigma
		}
		if p.steps == 0 || i < p.steps {
			m.pull = p.weight
		}
		moves[i] = m
	}
	return moves
}

// startDeviation returns the standard deviation of the noise that a walk
// starts from. Where its first level has none the walk starts at zero, and the
// latents are still its noise.
func startDeviation(levels []Level) float32 {
	if levels[0].Sigma == 0 {
		return 1
	}
	return float32(levels[0].Sigma)
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
