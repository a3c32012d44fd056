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

// A layout is a tiling with those of its windows that have a gap.
type layout struct {
	tiling
	size   size
	tiles  []tile
	weight []float32
}

func newLayout(sub *preparedField, s size, overlap int) layout {
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

// windows returns the number of windows of the grid, rounded up to a power of
// two. It bounds the batch independently of the clouds: another batch is another
// program, which takes a GPU half a minute to compile.
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

// cut returns the networks' inputs for a window.
func (sub *preparedField) cut(l layout, at tile) impute.Inputs {
	in := sub.inputs
	composite := func(c samples.Composite) samples.Composite {
		return samples.Composite{Value: cut(l.tiling, at, c.Value), Freshness: cut(l.tiling, at, c.Freshness)}
	}
	var covariates [][]float32
	for _, m := range in.Covariates {
		covariates = append(covariates, cut(l.tiling, at, m))
	}
	return impute.Inputs{
		Height: l.height, Width: l.width, DayOfYear: in.DayOfYear,
		Values: cut(l.tiling, at, in.Values), Visible: cut(l.tiling, at, in.Visible), Sea: cut(l.tiling, at, in.Sea),
		Last: composite(in.Last), Next: composite(in.Next),
		Background: cut(l.tiling, at, in.Background), BackgroundSigma: cut(l.tiling, at, in.BackgroundSigma),
		Analysis: cut(l.tiling, at, in.Analysis), AnalysisSigma: cut(l.tiling, at, in.AnalysisSigma),
		Covariates: covariates,
	}
}

// predict runs the imputer on every window and blends its answers.
func (m *Model) predict(ctx context.Context, sub *preparedField, l layout, progress func(done, total int)) (impute.Prediction, error) {
	mean, sigma := l.blend(), l.blend()
	batch := min(l.size.batch, l.windows())
	batches := (len(l.tiles) + batch - 1) / batch
	predicted := make([][]impute.Prediction, batches)
	of := func(i int) []tile { return l.tiles[i*batch : min((i+1)*batch, len(l.tiles))] }
	err := inOrder(ctx, batches, func(ctx context.Context, i int) (err error) {
		windows := make([]impute.Inputs, 0, batch)
		for _, at := range of(i) {
			windows = append(windows, sub.cut(l, at))
		}
		m.busy.begin()
		defer m.busy.end()
		predicted[i], err = m.networks.predict(ctx, batch, windows)
		return err
	}, func(i int) {
		for k, at := range of(i) {
			mean.add(at, predicted[i][k].Mean)
			sigma.add(at, predicted[i][k].Sigma)
		}
		predicted[i] = nil
		progress(i+1, batches)
	})
	if err != nil {
		return impute.Prediction{}, fmt.Errorf("predict %d windows of %d x %d: %w", len(l.tiles), l.height, l.width, err)
	}
	return impute.Prediction{Mean: mean.sum, Sigma: sigma.sum}, nil
}

// inFlight is how many batches are in work at a time: while one is on
// the device, the next is cut out and the last one blended.
const inFlight = 2

// inOrder does n pieces of work concurrently and merges them one by one in
// their order, so that sums do not depend on timing.
func inOrder(ctx context.Context, n int, work func(ctx context.Context, i int) error, merge func(i int)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
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

// draw draws members of the whole field: samples of the standardised residual,
// times sigma, about the mean. Between two steps the windows of a member are
// blended, so that all begin the next step from the same field. The noise of a
// cell depends on its place in the grid, not on its window.
func (m *Model) draw(ctx context.Context, sub *preparedField, l layout, how drawOptions) ([][]float32, error) {
	d := &drawer{model: m, sub: sub, layout: l, predicted: how.predicted, conditionings: make([]*conditioning, len(l.tiles))}
	d.batch = min(l.size.batch, how.recipe.Members)
	d.keep = len(l.tiles)*l.height*l.width <= keptCells
	defer d.release()
	members := make([][]float32, how.recipe.Members)
	const together = membersTogether
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
		if err := d.follow(ctx, how.recipe.ODE, group, streams, func() { done++; tell(done) }); err != nil {
			return nil, fmt.Errorf("draw members in %d windows of %d x %d: %w", len(l.tiles), l.height, l.width, err)
		}
	}
	each(len(members), func(k int) {
		x := members[k]
		for i := range x {
			x[i] = how.predicted.Mean[i] + how.predicted.Sigma[i]*x[i]
		}
	})
	return members, nil
}

// membersTogether is how many members are drawn at a time, in all windows: each
// takes only a few maps of memory.
const membersTogether = 8

func clearSeen(x []float32, hidden []bool) {
	for i := range x {
		if !hidden[i] {
			x[i] = 0
		}
	}
}

// drawOptions are the settings of one draw of members.
type drawOptions struct {
	recipe    Recipe
	predicted impute.Prediction
	noise     noise.Stream
	progress  func(done, total int)
}

// A drawer holds the members of a field while they are drawn.
type drawer struct {
	model         *Model
	sub           *preparedField
	layout        layout
	predicted     impute.Prediction
	conditionings []*conditioning // one for each window, made on first use
	keep          bool            // keep conditionings from step to step
	batch         int             // number of members at a time
}

// keptCells is the largest field whose conditionings are kept between steps: at
// some fifteen planes a quarter of a gigabyte. Those of larger fields are made
// anew at every step.
const keptCells = 4 << 20

func (d *drawer) release() {
	for _, s := range d.conditionings {
		if s != nil {
			s.Close()
		}
	}
}

// follow turns noise into residuals of the whole field.
func (d *drawer) follow(ctx context.Context, o impute.ODE, x [][]float32, streams []noise.Stream, told func()) error {
	if d.layout.whole() && len(d.layout.tiles) > 0 { // nothing to blend between two steps
		if err := d.condition(0); err != nil {
			return err
		}
		if f, ok := d.model.networks.flow(d.batch, *d.conditionings[0], told); ok {
			d.model.busy.begin()
			defer d.model.busy.end()
			return f.Run(ctx, o, x, streams)
		}
	}
	step := func(ctx context.Context, t float32, x [][]float32) ([][]float32, error) {
		defer told()
		return d.clean(ctx, t, x)
	}
	return o.Run(ctx, step, x, streams)
}

// condition makes the conditioning of a window, where it is not there.
func (d *drawer) condition(i int) error {
	if d.conditionings[i] != nil {
		return nil
	}
	l, at := d.layout, d.layout.tiles[i]
	p := impute.Prediction{Mean: cut(l.tiling, at, d.predicted.Mean), Sigma: cut(l.tiling, at, d.predicted.Sigma)}
	s, err := d.model.networks.scene(d.sub.cut(l, at), p)
	if err == nil {
		d.conditionings[i] = &s
	}
	return err
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
	predicted := make([][][]float32, len(l.tiles))
	err := inOrder(ctx, len(l.tiles), func(ctx context.Context, i int) (err error) {
		predicted[i], err = d.window(ctx, i, t, x)
		return err
	}, func(i int) {
		each(len(blends), func(k int) { blends[k].add(l.tiles[i], predicted[i][k]) })
		predicted[i] = nil
	})
	return out, err
}

// window returns the expected clean residuals of members in one window.
func (d *drawer) window(ctx context.Context, i int, t float32, x [][]float32) ([][]float32, error) {
	l, at := d.layout, d.layout.tiles[i]
	if err := d.condition(i); err != nil {
		return nil, err
	}
	chunks := slices.Collect(slices.Chunk(x, d.batch))
	predicted := make([][]float32, 0, len(x))
	answers := make([][][]float32, len(chunks))
	err := inOrder(ctx, len(chunks), func(ctx context.Context, k int) (err error) {
		some := make([][]float32, 0, len(chunks[k]))
		for _, member := range chunks[k] {
			some = append(some, cut(l.tiling, at, member))
		}
		d.model.busy.begin()
		defer d.model.busy.end()
		answers[k], err = d.model.networks.clean(ctx, d.batch, *d.conditionings[i], t, some)
		return err
	}, func(k int) { predicted = append(predicted, answers[k]...) })
	if err != nil {
		return nil, err
	}
	if !d.keep {
		d.conditionings[i].Close()
		d.conditionings[i] = nil
	}
	return predicted, nil
}
