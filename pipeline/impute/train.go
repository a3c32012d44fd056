package impute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

// Hooks are what a training run tells and asks on its way. All may be zero.
type Hooks[N any] struct {
	// Progress hears of every step.
	Progress func(Progress)
	// Score returns how well a network does on held-out days, less is better.
	// It is asked every ScoreEvery steps and at the end.
	Score      func(ctx context.Context, network N) (float64, error)
	ScoreEvery int
	// Patience ends the run after so many scores without a better one, and
	// makes the result the network of the best score; 0: never, and the last.
	Patience int
	// Checkpoint is a file that the run goes on from where it exists, and that
	// is written every CheckpointEvery steps, when the run is cancelled and
	// when it fails.
	Checkpoint      string
	CheckpointEvery int
	// From holds weights of a network of the same design to begin with.
	From []float32
}

// Progress is what one step tells.
type Progress struct {
	Step, Steps  int
	Loss         float64
	GradientNorm float64
	Score        *float64 // nil: not asked at this step
}

// Report is what a training run did.
type Report struct {
	Steps     int      `json:"steps"`      // that the weights have seen
	Resumed   int      `json:"resumed"`    // of them, before this run
	Loss      float64  `json:"loss"`       // mean over the last tenth of the steps
	Score     *float64 `json:"score"`      // of the result; nil: never asked
	ScoreStep int      `json:"score_step"` // the step that the result is of
	Stopped   bool     `json:"stopped"`    // before its time, by patience
}

// Train trains an imputer. It returns ctx.Err() when cancelled and an error
// that is train.ErrNotFinite when the loss blew up, with the last good state
// in the checkpoint in both cases.
func Train(ctx context.Context, shop *Workshop, m Material, source Source, cfg TrainConfig, hooks Hooks[*Model]) (*Model, Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, Report{}, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(cfg.Design.network())
	if err != nil {
		return nil, Report{}, err
	}
	if cfg.SpreadOnly && hooks.From != nil {
		hooks.From = withoutMean(network.Layout(), hooks.From)
	}
	weights, report, err := run(ctx, shop, imputerCourse(network, m, source, cfg), hooks, func(w []float32) (*Model, error) { return newModel(shop, cfg, w) })
	if err != nil {
		return nil, report, fmt.Errorf("train imputer: %w", err)
	}
	model, err := newModel(shop, cfg, weights)
	return model, report, err
}

func imputerCourse(network nn.Network, m Material, source Source, cfg TrainConfig) course {
	c := course{
		kind: kindImputer, network: network, loss: imputerLoss(network, cfg.Beta, pointLoss),
		cfg: cfg, dims: cfg.batchDims(), fill: newLessons(m, source, cfg).fill,
	}
	if cfg.SpreadOnly {
		c.kind, c.loss = kindImputer+" of spread", imputerLoss(network, cfg.Beta, spreadLoss)
	}
	return c
}

// withoutMean returns weights of a UNet whose mean is zero everywhere. Without a
// gradient it stays so.
func withoutMean(layout *nn.Layout, weights []float32) []float32 {
	out := slices.Clone(weights)
	for _, p := range layout.Params {
		if p.Name == "last.kernel" || p.Name == "last.bias" {
			channels := p.Dims[0]
			clear(out[p.Offset : p.Offset+p.Size()/channels]) // the first
		}
	}
	return out
}

// A course is what a run of training repeats: how a batch is made and what its
// loss is.
type course struct {
	kind    string // of network, and of loss
	network nn.Network
	loss    train.Loss
	cfg     TrainConfig
	dims    [][]int // of the tensors of a batch
	fill    filler
	fixed   []*tensors.Tensor // further inputs of the loss, the same at every step
}

// key tells compiled steps apart: everything that is built into the graph.
func (c course) key() string {
	d := c.cfg.Design
	return fmt.Sprint(c.kind, d.network(), c.cfg.optimizer(), c.cfg.Beta, c.dims)
}

func (c course) loader(shop *Workshop) *loader {
	return &loader{backend: shop.backend, dims: c.dims, cells: c.cfg.Side * c.cfg.Side, fill: c.fill}
}

// run trains until the end of the course and returns the weights to use.
func run[N any](ctx context.Context, shop *Workshop, c course, hooks Hooks[N], build func([]float32) (N, error)) ([]float32, Report, error) {
	step, err := shop.step(c.key(), c.network.Layout(), c.cfg.optimizer(), c.loss)
	if err != nil {
		return nil, Report{}, err
	}
	p := &passage[N]{course: c, hooks: hooks, build: build, step: step}
	if err := p.begin(); err != nil {
		return nil, Report{}, err
	}
	p.report.Resumed = p.done
	l := c.loader(shop)
	l.start(ctx, p.done, c.cfg.Steps, c.cfg.Workers)
	defer l.stop()
	for p.done < c.cfg.Steps && !p.report.Stopped {
		if err := p.advance(ctx, l); err != nil {
			// The state is that of the last good step; keep it for a later run.
			return nil, p.report, errors.Join(err, p.save())
		}
	}
	weights, err := p.result()
	return weights, p.report, err
}

// A passage is one run of a course.
type passage[N any] struct {
	course
	hooks  Hooks[N]
	build  func([]float32) (N, error)
	step   *train.Step
	done   int
	report Report
	best   []float32 // weights of the best score, where patience asks for them
	bad    int       // scores since the best
	tail   mean      // of the loss, at the end
}

type mean struct {
	sum float64
	n   int
}

// advance does one step and what the hooks ask after it.
func (p *passage[N]) advance(ctx context.Context, l *loader) error {
	b, err := l.next(ctx)
	if b != nil {
		defer l.done(b)
	}
	if err != nil {
		return err
	}
	told, err := p.step.Run(append(b.tensors[:len(b.tensors):len(b.tensors)], p.fixed...)...)
	if err != nil {
		return err
	}
	p.done = told.Step
	if p.done > p.cfg.Steps-p.cfg.Steps/10 {
		p.tail.sum += told.Loss
		p.tail.n++
	}
	report := Progress{Step: p.done, Steps: p.cfg.Steps, Loss: told.Loss, GradientNorm: told.GradientNorm}
	if p.due(p.hooks.ScoreEvery) && p.hooks.Score != nil {
		if report.Score, err = p.judge(ctx); err != nil {
			return err
		}
	}
	if p.hooks.Progress != nil {
		p.hooks.Progress(report)
	}
	if p.hooks.CheckpointEvery > 0 && p.done%p.hooks.CheckpointEvery == 0 {
		return p.save()
	}
	return nil
}

func (p *passage[N]) due(every int) bool {
	return p.done == p.cfg.Steps || every > 0 && p.done%every == 0
}

// judge scores the averaged weights.
func (p *passage[N]) judge(ctx context.Context) (*float64, error) {
	state, err := p.step.State()
	if err != nil {
		return nil, err
	}
	network, err := p.build(state.EMA)
	if err != nil {
		return nil, err
	}
	score, err := p.hooks.Score(ctx, network)
	if closer, ok := any(network).(interface{ Close() }); ok {
		closer.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("score step %d: %w", p.done, err)
	}
	better := p.report.Score == nil || score < *p.report.Score
	if p.hooks.Patience == 0 || better {
		p.report.Score, p.report.ScoreStep, p.bad = &score, p.done, 0
		if p.hooks.Patience > 0 {
			p.best = state.EMA
		}
		return &score, nil
	}
	p.bad++
	p.report.Stopped = p.bad >= p.hooks.Patience && p.done < p.cfg.Steps
	return &score, nil
}

// result returns the weights to use: the averaged ones, of the best score
// where patience asks for it.
func (p *passage[N]) result() ([]float32, error) {
	p.report.Steps = p.done
	if p.tail.n > 0 {
		p.report.Loss = p.tail.sum / float64(p.tail.n)
	}
	if err := p.save(); err != nil {
		return nil, err
	}
	if p.best != nil {
		return p.best, nil
	}
	state, err := p.step.State()
	if err != nil {
		return nil, err
	}
	return state.EMA, nil
}
