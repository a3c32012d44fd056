package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// QueryMap counts how often cells were query among the draws in which they
// were observed. A cell that is never query is never learned: it is a dead
// zone of the strategy.
type QueryMap struct {
	Height, Width int
	Queried       []int // draws in which the cell was query
	Drawn         []int // draws in which the cell was observed
}

// NewQueryMap returns an empty map of height × width cells.
func NewQueryMap(height, width int) *QueryMap {
	n := height * width
	return &QueryMap{Height: height, Width: width, Queried: make([]int, n), Drawn: make([]int, n)}
}

// Add counts one draw of a window whose first cell is at row, col of the map.
// Rows beyond the map do not count. An observation beyond its columns is one of a grid
// that closes, on the other side.
func (q *QueryMap) Add(p samples.Patch, part Parts) {
	for c, o := range p.Observed() {
		row, col := p.Window.Row+c/p.Window.Width, p.Window.Col+c%p.Window.Width
		if !o || row < 0 || row >= q.Height {
			continue
		}
		at := row*q.Width + (col%q.Width+q.Width)%q.Width
		q.Drawn[at]++
		if part.Query[c] {
			q.Queried[at]++
		}
	}
}

// Probability returns the share of draws in which each cell was query, NaN
// where it was never observed.
func (q *QueryMap) Probability() []float64 {
	out := make([]float64, len(q.Drawn))
	for i, n := range q.Drawn {
		out[i] = float64(q.Queried[i]) / float64(n) // 0/0 is NaN
	}
	return out
}

// LowestQuery is the lowest P(query) over the cells of maps.
type LowestQuery struct {
	Estimate float64 `json:"estimate"` // the lowest share over the cells
	// Bound is below the true lowest probability with 95 % confidence: the lowest
	// of the Clopper-Pearson bounds of the cells. The bound of the cell that has
	// the lowest probability, whichever it is, holds with that confidence, and
	// this one is no higher, however many cells there are.
	Bound float64 `json:"bound"`
	Cells int     `json:"cells"` // number of cells that were observed often enough to count
	Never int     `json:"never"` // number of these cells that were never query
	Draws int     `json:"draws"` // the fewest of a cell that counts
}

// errNoDraws marks a map with too few draws.
var errNoDraws = errors.New("no cell has that many draws: draw more, or ask for fewer")

// Lowest returns the lowest P(query) over cells with at least minDraws draws.
func (q *QueryMap) Lowest(minDraws int) (LowestQuery, error) { return lowest(minDraws, q) }

func lowest(minDraws int, maps ...*QueryMap) (LowestQuery, error) {
	l := LowestQuery{Estimate: math.Inf(1), Bound: math.Inf(1), Draws: math.MaxInt}
	for _, q := range maps {
		for i, n := range q.Drawn {
			if n < max(minDraws, 1) {
				continue
			}
			k := q.Queried[i]
			l.Cells++
			l.Draws = min(l.Draws, n)
			l.Estimate = min(l.Estimate, float64(k)/float64(n))
			l.Bound = min(l.Bound, LowerBound(k, n, 1-confidence))
			if k == 0 {
				l.Never++
			}
		}
	}
	if l.Cells == 0 {
		return LowestQuery{}, fmt.Errorf("lowest P(query) over cells of %d draws: %w", minDraws, errNoDraws)
	}
	return l, nil
}

// ClaimDraws is the fewest draws of an observation from which it is said whether
// each of its cells is query at times, the claim of Theorem 2 of Ma, Zhou and Yu.
// Their figures have 16, in which a probability of 0.17 may well not show.
const ClaimDraws = 256

// DrawLowest splits each patch draws times and returns the lowest P(query) of
// an observed cell, each patch counted by itself: the theorem is about the masks
// that go with one observation, and a cell that is never query in one is not
// helped by the others. It wants ClaimDraws draws or more.
func DrawLowest(ctx context.Context, by Strategy, patches []samples.Patch, draws int, stream noise.Stream) (LowestQuery, error) {
	if draws < ClaimDraws {
		return LowestQuery{}, fmt.Errorf("lowest P(query) from %d draws: at least %d are needed", draws, ClaimDraws)
	}
	maps := make([]*QueryMap, len(patches))
	for i, p := range patches {
		// All draws of a patch in one call: batches of a network are then full.
		parts, err := by.Partition(ctx, slices.Repeat([]samples.Patch{p}, draws), stream.Sub(uint64(i)))
		if err != nil {
			return LowestQuery{}, fmt.Errorf("draw P(query) of one observation: %w", err)
		}
		maps[i] = NewQueryMap(p.Window.Height, p.Window.Width)
		p.Window.Row, p.Window.Col = 0, 0 // only now: a strategy looks at the place
		for _, part := range parts {
			maps[i].Add(p, part)
		}
	}
	return lowest(draws, maps...)
}

// confidence of the bounds of this package.
const confidence = 0.95

// LowerBound returns the Clopper-Pearson lower bound of a probability of which
// k of n draws were a success: the true one lies below it with probability at
// most level. It is positive exactly if k is.
func LowerBound(k, n int, level float64) float64 {
	if k == 0 {
		return 0
	}
	return mathext.InvRegIncBeta(float64(k), float64(n-k+1), level)
}

// DrawsFor returns how many draws it takes for a cell with P(query) = p to be
// query at least once with 95 % confidence, all of the cells together.
func DrawsFor(p float64, cells int) int {
	return int(math.Ceil(math.Log((1-confidence)/float64(max(cells, 1))) / math.Log1p(-p)))
}

// DrawQueries splits each patch draws times and returns the counts on a grid
// of height × width cells, that of the archive the patches are windows of.
func DrawQueries(ctx context.Context, by Strategy, patches []samples.Patch, draws int, on *QueryMap, stream noise.Stream) error {
	for n := range draws {
		parts, err := by.Partition(ctx, patches, stream.Sub(uint64(n)))
		if err != nil {
			return fmt.Errorf("draw P(query): %w", err)
		}
		for i, part := range parts {
			on.Add(patches[i], part)
		}
	}
	return nil
}
