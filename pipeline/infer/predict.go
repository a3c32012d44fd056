package infer

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// A layout is a tiling with the windows of it that have something to fill.
type layout struct {
	tiling
	size   size
	tiles  []tile
	weight []float32
}

func newLayout(sub *subject, s size, overlap int) layout {
	if overlap == 0 {
		overlap = s.window / 4
	}
	l := layout{tiling: newTiling(sub.grid, s.window, overlap), size: s}
	if s.cells > 0 {
		l.size.batch = max(min(s.batch, s.cells/(l.height*l.width)), 1)
	}
	l.tiles = l.tiling.tiles(sub.hidden)
	l.weight = l.weights(l.tiles)
	return l
}

// windows returns how many windows the grid has, up to a power of two. Batches
// are no larger, and they do not change with the clouds: another batch is
// another program, which takes a GPU half a minute to compile.
func (l layout) windows() int {
	n := 1
	for n < len(l.rows)*len(l.cols) {
		n *= 2
	}
	return n
}

func (l layout) blend() blend {
	return blend{t: l.tiling, sum: make([]float32, len(l.weight)), weight: l.weight}
}

// cut returns what the networks see of a window.
func (sub *subject) cut(l layout, at tile) impute.Inputs {
	in := sub.inputs
	composite := func(c samples.Composite) samples.Composite {
		return samples.Composite{Value: cut(l.tiling, at, c.Value), Freshness: cut(l.tiling, at, c.Freshness)}
	}
	return impute.Inputs{
		Height: l.height, Width: l.width, DayOfYear: in.DayOfYear,
		Values: cut(l.tiling, at, in.Values), Visible: cut(l.tiling, at, in.Visible), Sea: cut(l.tiling, at, in.Sea),
		Last: composite(in.Last), Next: composite(in.Next),
		Background: cut(l.tiling, at, in.Background), BackgroundSigma: cut(l.tiling, at, in.BackgroundSigma),
		Analysis: cut(l.tiling, at, in.Analysis), AnalysisSigma: cut(l.tiling, at, in.AnalysisSigma),
	}
}

// look asks the imputer about every window and blends its answers.
func (m *Model) look(ctx context.Context, sub *subject, l layout, progress func(done, total int)) (impute.Prediction, error) {
	mean, sigma := l.blend(), l.blend()
	batch := min(l.size.batch, l.windows())
	batches := (len(l.tiles) + batch - 1) / batch
	said := make([][]impute.Prediction, batches)
	of := func(i int) []tile { return l.tiles[i*batch : min((i+1)*batch, len(l.tiles))] }
	err := inOrder(ctx, batches, func(ctx context.Context, i int) (err error) {
		windows := make([]impute.Inputs, 0, batch)
		for _, at := range of(i) {
			windows = append(windows, sub.cut(l, at))
		}
		m.busy.begin()
		defer m.busy.end()
		said[i], err = m.networks.look(ctx, batch, windows)
		return err
	}, func(i int) {
		for k, at := range of(i) {
			mean.add(at, said[i][k].Mean)
			sigma.add(at, said[i][k].Sigma)
		}
		said[i] = nil
		progress(i+1, batches)
	})
	if err != nil {
		return impute.Prediction{}, fmt.Errorf("look at %d windows of %d x %d: %w", len(l.tiles), l.height, l.width, err)
	}
	return impute.Prediction{Mean: mean.sum, Sigma: sigma.sum}, nil
}

// ahead is how many pieces of work are under way at a time: while one is on
// the device, the next is cut out and the last one blended.
const ahead = 2

// inOrder does n pieces of work, some at a time, and merges them one by one in
// their order, so that sums do not depend on who was faster.
func inOrder(ctx context.Context, n int, work func(ctx context.Context, i int) error, merge func(i int)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ahead)
	before := make(chan struct{})
	close(before)
	for i := range n {
		mine, turn := make(chan struct{}), before
		before = mine
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := work(ctx, i); err != nil {
				return err
			}
			select {
			case <-turn:
			case <-ctx.Done():
				return ctx.Err()
			}
			merge(i)
			close(mine)
			return nil
		})
	}
	return group.Wait()
}

// draw draws members of the whole field: standardised residuals that could be,
// times sigma, about the mean. Between two steps the windows of a member are
// blended, so that each begins the next step from what all agree on. The noise
// of a cell depends on its place in the grid, not on the window it is in.
func (m *Model) draw(ctx context.Context, sub *subject, l layout, how drawing) ([][]float32, error) {
	d := &drawer{model: m, sub: sub, layout: l, said: how.said, sceneries: make([]*scenery, len(l.tiles))}
	d.batch = min(l.size.batch, how.recipe.Members)
	d.keep = len(l.tiles)*l.height*l.width <= keptCells
	defer d.release()
	members := make([][]float32, how.recipe.Members)
	// All windows of some members at a time: what is kept is a few maps each.
	const together = 8
	steps := (len(members) + together - 1) / together * how.recipe.ODE.Calls()
	tell := func(done int) { how.progress(done, steps) }
	for first := 0; first < len(members); first += together {
		group := members[first:min(first+together, len(members))]
		streams := make([]noise.Stream, len(group))
		each(len(group), func(i int) {
			streams[i] = how.noise.Sub(uint64(first + i))
			group[i] = make([]float32, len(sub.hidden))
			streams[i].Normals(group[i], 0)
			clearSeen(group[i], sub.hidden)
		})
		done := first / together * how.recipe.ODE.Calls()
		step := func(ctx context.Context, t float32, x [][]float32) ([][]float32, error) {
			defer func() { done++; tell(done) }()
			return d.clean(ctx, t, x)
		}
		if err := how.recipe.ODE.Run(ctx, step, group, streams); err != nil {
			return nil, fmt.Errorf("draw members in %d windows of %d x %d: %w", len(l.tiles), l.height, l.width, err)
		}
	}
	each(len(members), func(k int) {
		x := members[k]
		for i := range x {
			x[i] = how.said.Mean[i] + how.said.Sigma[i]*x[i]
		}
	})
	return members, nil
}

func clearSeen(x []float32, hidden []bool) {
	for i := range x {
		if !hidden[i] {
			x[i] = 0
		}
	}
}

// drawing says how members are drawn.
type drawing struct {
	recipe   Recipe
	said     impute.Prediction
	noise    noise.Stream
	progress func(done, total int)
}

// A drawer is members under way.
type drawer struct {
	model     *Model
	sub       *subject
	layout    layout
	said      impute.Prediction
	sceneries []*scenery // of each window, made when it is first asked for
	keep      bool       // sceneries from step to step
	batch     int        // members at a time
}

// keptCells is how many cells of sceneries are kept between steps: at some
// fifteen planes a quarter of a gigabyte. Of larger fields they are drawn anew.
const keptCells = 4 << 20

func (d *drawer) release() {
	for _, s := range d.sceneries {
		if s != nil {
			s.Close()
		}
	}
}

// clean returns the expected clean residuals of members of the whole field.
func (d *drawer) clean(ctx context.Context, t float32, x [][]float32) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := d.layout
	if l.whole() && len(l.tiles) > 0 {
		return d.window(ctx, 0, t, x) // nothing to blend
	}
	blends, out := make([]blend, len(x)), make([][]float32, len(x))
	for i := range blends {
		blends[i] = l.blend()
		out[i] = blends[i].sum
	}
	said := make([][][]float32, len(l.tiles))
	err := inOrder(ctx, len(l.tiles), func(ctx context.Context, i int) (err error) {
		said[i], err = d.window(ctx, i, t, x)
		return err
	}, func(i int) {
		each(len(blends), func(k int) { blends[k].add(l.tiles[i], said[i][k]) })
		said[i] = nil
	})
	return out, err
}

// window returns the expected clean residuals of members in one window.
func (d *drawer) window(ctx context.Context, i int, t float32, x [][]float32) ([][]float32, error) {
	l, at := d.layout, d.layout.tiles[i]
	if d.sceneries[i] == nil {
		p := impute.Prediction{Mean: cut(l.tiling, at, d.said.Mean), Sigma: cut(l.tiling, at, d.said.Sigma)}
		s, err := d.model.networks.scene(d.sub.cut(l, at), p)
		if err != nil {
			return nil, err
		}
		d.sceneries[i] = &s
	}
	chunks := slices.Collect(slices.Chunk(x, d.batch))
	said := make([][]float32, 0, len(x))
	answers := make([][][]float32, len(chunks))
	err := inOrder(ctx, len(chunks), func(ctx context.Context, k int) (err error) {
		some := make([][]float32, 0, len(chunks[k]))
		for _, member := range chunks[k] {
			some = append(some, cut(l.tiling, at, member))
		}
		d.model.busy.begin()
		defer d.model.busy.end()
		answers[k], err = d.model.networks.clean(ctx, d.batch, *d.sceneries[i], t, some)
		return err
	}, func(k int) { said = append(said, answers[k]...) })
	if err != nil {
		return nil, err
	}
	if !d.keep {
		d.sceneries[i].Close()
		d.sceneries[i] = nil
	}
	return said, nil
}
