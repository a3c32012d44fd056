package prior

import (
	"context"
	"fmt"
	"math"
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
//	x' = data·K·(ê + ahead·(ê - ê⁻)) + keep·x - pull·∇L
//
// with ê and ∇L at look·x and the level, and ê⁻ the prediction of the move
// before.
type move struct {
	level            Level // level of the prediction
	look, data, keep float64
	ahead            float64 // 0: the prediction is taken to hold for the whole step
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

// walk takes latents, at first noise of the standard deviation startDeviation,
// along the probability-flow ODE to masks.
func walk(ctx context.Context, w walker, levels []Level, o Order, p pull) error {
	moves := movesOf(levels, o, p)
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
// its step takes all of x as noise, so that the mean of the next latents is right.
// At a level without noise the predictor sees zero, whatever noise the walk
// will take from there.
//
// Between the first step and the last, a walk of second order takes x̂₀ to go on
// changing as it did: in ln(α/σ) the step is then exact for a straight line.
func movesOf(levels []Level, o Order, p pull) []move {
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
		if o == SecondOrder && i > 0 {
			m.ahead = ahead(levels[i-1], from, to)
		}
		if p.steps == 0 || i < p.steps {
			m.pull = p.weight
		}
		moves[i] = m
	}
	return moves
}

// ahead returns by how much of its last change a prediction is carried on to
// stand for the mean over a step: half of it where steps are even in ln(α/σ).
// Where a level is all noise or all mask there is no step to measure by.
func ahead(before, from, to Level) float64 {
	const most = 0.5 // longer steps than the last are not trusted with more
	share := (to.LogSNR() - from.LogSNR()) / (2 * (from.LogSNR() - before.LogSNR()))
	if math.IsNaN(share) || math.IsInf(to.LogSNR(), 0) {
		return 0
	}
	return min(share, most)
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
	cells := len(x) / (Classes * items)
	out := make([][]bool, items)
	for item := range out {
		gap := x[item*Classes*cells:][:cells]
		seen := x[item*Classes*cells+cells:][:cells]
		mask := make([]bool, cells)
		for i := range mask {
			mask[i] = seen[i] > gap[i]
		}
		out[item] = mask
	}
	return out
}
