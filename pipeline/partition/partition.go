package partition

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// Parts say which cells of a patch are context and which are query. Both are
// observed.
type Parts struct {
	Context, Query []bool
}

// A Strategy splits the observed cells of patches.
//
// The same patches and stream give the same partitions. Item i draws from
// stream.Sub(i) only: its parts do not depend on the other patches. The
// patches of one call have one height and width, and each has at least two
// observed cells.
type Strategy interface {
	Name() string
	Partition(ctx context.Context, patches []samples.Patch, stream noise.Stream) ([]Parts, error)
}

// MinObservedCells is how many observed cells a patch needs to be split: with
// fewer, one side is too small to learn from.
const MinObservedCells = 20

// errTooFew is why a patch cannot be split at all.
var errTooFew = errors.New("fewer than two observed cells cannot be split: leave such patches out")

// A rule splits one patch. It must keep the promises of its strategy for every
// draw.
type rule func(p samples.Patch, observed []bool, stream noise.Stream) Parts

// byRule is a strategy that treats each patch on its own.
type byRule struct {
	name  string
	split rule
}

// Name implements Strategy.
func (b byRule) Name() string { return b.name }

// Partition implements Strategy.
func (b byRule) Partition(ctx context.Context, patches []samples.Patch, stream noise.Stream) ([]Parts, error) {
	out := make([]Parts, len(patches))
	for i, p := range patches {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := Splittable(p); err != nil {
			return nil, err
		}
		out[i] = b.split(p, p.Observed(), stream.Sub(uint64(i)))
	}
	return out, nil
}

// Splittable returns an error for a patch with too few cells for two sides.
func Splittable(p samples.Patch) error {
	if field.Mask(p.Observed()).Count() >= 2 {
		return nil
	}
	return fmt.Errorf("split the window at row %d, column %d of %s: %w", p.Window.Row, p.Window.Col, p.Time.Format("2006-01-02"), errTooFew)
}

// Pixel draws each observed cell for the context with probability ctxShare and,
// independently, for the query with probability queryShare. Context and query
// overlap and leave cells out: it is no partition. Only a draw in which one of
// them is empty is drawn again.
func Pixel(ctxShare, queryShare float64) Strategy {
	return byRule{"pixel", func(_ samples.Patch, observed []bool, stream noise.Stream) Parts {
		r := stream.Rand(0)
		return Parts{
			Context: thin(observed, r, ctxShare),
			Query:   thin(observed, r, queryShare),
		}
	}}
}

// thin returns the observed cells that a draw keeps, drawing again where none
// is left; after tries in vain, one cell at random.
func thin(observed []bool, r *rand.Rand, share float64) []bool {
	const tries = 8 // twenty cells at a share of 0.3 come out empty once in a thousand
	out := make([]bool, len(observed))
	for range tries {
		some := false
		for i, o := range observed {
			out[i] = o && r.Float64() < share
			some = some || out[i]
		}
		if some {
			return out
		}
	}
	cells := indices(observed)
	out[cells[r.IntN(len(cells))]] = true
	return out
}

// Block cuts the patch into grid × grid blocks and draws ⌊share·grid²⌋ of them
// (at least one) for the context and, independently, for the query; the
// observed cells of a block go with it. Context and query overlap in some
// blocks and leave others out: it is no partition. Only a draw in which one of
// them has no observed cell is drawn again.
func Block(grid int, ctxShare, queryShare float64) Strategy {
	return byRule{fmt.Sprintf("block%d", grid), func(p samples.Patch, observed []bool, stream noise.Stream) Parts {
		r := stream.Rand(0)
		return Parts{
			Context: drawBlocks(p.Window, observed, r, blocks{grid, ctxShare}),
			Query:   drawBlocks(p.Window, observed, r, blocks{grid, queryShare}),
		}
	}}
}

type blocks struct {
	grid  int // blocks along a side
	share float64
}

// drawBlocks returns the observed cells of the blocks drawn, drawing again
// where there is none; after tries in vain, of a block that has some.
func drawBlocks(w samples.Window, observed []bool, r *rand.Rand, b blocks) []bool {
	const tries = 8
	total := b.grid * b.grid
	wanted := min(max(int(b.share*float64(total)), 1), total)
	blockOf := func(cell int) int {
		return cell/w.Width*b.grid/w.Height*b.grid + cell%w.Width*b.grid/w.Width
	}
	out := make([]bool, len(observed))
	cells := indices(observed)
	chosen := make([]bool, total)
	for try := range tries + 1 {
		order := r.Perm(total)
		if try == tries {
			order[0] = blockOf(cells[r.IntN(len(cells))])
		}
		clear(chosen)
		for _, k := range order[:wanted] {
			chosen[k] = true
		}
		some := false
		for _, cell := range cells {
			out[cell] = chosen[blockOf(cell)]
			some = some || out[cell]
		}
		if some {
			break
		}
	}
	return out
}

// Rest returns the partition of observed whose context is given.
func Rest(observed, ctx []bool) Parts {
	query := make([]bool, len(observed))
	for i, o := range observed {
		query[i] = o && !ctx[i]
	}
	return Parts{Context: ctx, Query: query}
}

// Intersect splits observed by another mask. It reports false where one side
// is empty.
func Intersect(observed, mask []bool) (Parts, bool) {
	ctx := make([]bool, len(observed))
	kept, seen := 0, 0
	for i, o := range observed {
		if !o {
			continue
		}
		seen++
		if mask[i] {
			ctx[i] = true
			kept++
		}
	}
	return Rest(observed, ctx), 0 < kept && kept < seen
}

func indices(mask []bool) []int {
	out := make([]int, 0, len(mask))
	for i, b := range mask {
		if b {
			out = append(out, i)
		}
	}
	return out
}
