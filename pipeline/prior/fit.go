package prior

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// training is a Train under way.
type training struct {
	cfg    TrainConfig
	hooks  Hooks
	source source
	step   *train.Step
	model  *Model // for evaluations; gets the weights at the end

	sample []Mask // held out, at whose places masks are drawn
	best   Best
	losses lossMeter
	report Report
}

func newTraining(b backends.Backend, data samples.Train, held samples.HeldOut, cfg TrainConfig, hooks Hooks) (*training, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	refs, err := trainingRefs(data, cfg)
	if err != nil {
		return nil, err
	}
	network, err := nn.New(cfg.Model.network())
	if err != nil {
		return nil, err
	}
	first := hooks.From
	if first == nil {
		first = network.Layout().Init(cfg.Seed)
	}
	model, err := NewModel(b, cfg.Model, first)
	if err != nil {
		return nil, err
	}
	if cfg.Model.Frequency {
		model.places = FrequencyOf(data)
	}
	net := model.net
	step, err := train.NewStep(b, network.Layout(), cfg.Step, func(w nn.Weights, in []*Node) *Node {
		return net.loss(w, in[0], in[1], in[2], in[3])
	})
	if err != nil {
		return nil, err
	}
	t := &training{
		cfg: cfg, hooks: hooks, step: step, model: model,
		source: newSource(data, refs, cfg, model),
		report: Report{Masks: len(refs), Weights: network.Layout().Size},
		best:   Best{Distance: math.Inf(1)},
	}
	if cfg.EvaluateEvery > 0 {
		var all []Mask
		if all, t.sample, err = heldOutMasks(held, cfg); err != nil {
			return nil, err
		}
		t.report.HeldOut = Describe(all)
	}
	return t, t.start(first)
}

// start sets the state to the beginning or to where a checkpoint left it.
func (t *training) start(first []float32) error {
	if t.hooks.Resume == nil {
		return t.step.Start(first)
	}
	t.best = t.hooks.Resume.Best
	t.report.Steps = t.hooks.Resume.State.Step
	return t.step.Restore(t.hooks.Resume.State)
}

func (t *training) run(ctx context.Context) error {
	began := time.Now()
	defer func() { t.report.Seconds = time.Since(began).Seconds() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	batches := t.source.batches(ctx, t.report.Steps, t.cfg.Step.Steps)
	defer batches.drain(stop)
	t.report.Stopped = "all steps done"
	for t.report.Steps < t.cfg.Step.Steps {
		if err := t.one(ctx, batches); err != nil {
			return err
		}
		if done, err := t.afterStep(ctx); err != nil {
			return err
		} else if done {
			t.report.Stopped = fmt.Sprintf("no better in %d evaluations", t.cfg.Patience)
			break
		}
	}
	if err := t.finish(); err != nil {
		return err
	}
	return t.calibrate(ctx)
}

// one does one step.
func (t *training) one(ctx context.Context, batches *batches) error {
	waiting := time.Now()
	batch, err := batches.next(ctx)
	if err != nil {
		return err
	}
	t.report.WaitSeconds += time.Since(waiting).Seconds()
	inputs := batch.tensors()
	defer release(inputs)
	m, err := t.step.Run(inputs...)
	if errors.Is(err, train.ErrNotFinite) {
		// The state of the step is still the one before.
		return errors.Join(fmt.Errorf("the learning rate %g may be too high: %w", t.cfg.Step.LearningRate, err), t.checkpoint())
	}
	if err != nil {
		return err
	}
	t.report.Steps = m.Step
	t.losses.add(m.Loss, m.Step > t.cfg.Step.Steps*9/10)
	return nil
}

// afterStep reports, evaluates and saves what is due. It reports true where
// training should end.
func (t *training) afterStep(ctx context.Context) (bool, error) {
	const reportEvery = 50 // steps
	n := t.report.Steps
	p := Progress{Step: n, Steps: t.cfg.Step.Steps}
	evaluate := t.cfg.EvaluateEvery > 0 && (n%t.cfg.EvaluateEvery == 0 || n == t.cfg.Step.Steps)
	if evaluate {
		drawn, err := t.evaluate(ctx)
		if err != nil {
			return false, fmt.Errorf("evaluate after step %d: %w", n, err)
		}
		p.Drawn, p.Distance = &drawn, drawn.Distance(t.report.HeldOut)
	}
	if t.hooks.Progress != nil && (evaluate || n%reportEvery == 0) {
		p.Loss = t.losses.sinceLast()
		t.hooks.Progress(p)
	}
	if t.cfg.CheckpointEvery > 0 && n%t.cfg.CheckpointEvery == 0 {
		if err := t.checkpoint(); err != nil {
			return false, err
		}
	}
	return evaluate && t.cfg.Patience > 0 && t.best.Worse >= t.cfg.Patience, nil
}

// evaluate draws masks with the averaged weights for the places of held-out
// ones and remembers the weights where they came closest.
func (t *training) evaluate(ctx context.Context) (Statistics, error) {
	began := time.Now()
	defer func() { t.report.EvaluateSeconds += time.Since(began).Seconds() }()
	state, err := t.step.State()
	if err != nil {
		return Statistics{}, err
	}
	t.model.renew(state.EMA)
	places := make([]Place, len(t.sample))
	for i, m := range t.sample {
		places[i] = m.Place
	}
	masks, err := t.model.Draw(ctx, places, t.cfg.Sampling, noise.New(t.cfg.Seed, "prior", "evaluation"))
	if err != nil {
		return Statistics{}, err
	}
	drawn := Describe(masksAt(places, masks))
	t.best.Worse++
	if d := drawn.Distance(t.report.HeldOut); d < t.best.Distance {
		t.best = Best{Weights: state.EMA, Step: state.Step, Distance: d}
		t.report.Drawn, t.report.Distance = drawn, d
	}
	return drawn, nil
}

func (t *training) checkpoint() error {
	if t.hooks.Checkpoint == nil {
		return nil
	}
	state, err := t.step.State()
	if err != nil {
		return err
	}
	if err := t.hooks.Checkpoint(Checkpoint{State: state, Best: t.best}); err != nil {
		return fmt.Errorf("keep the checkpoint of step %d: %w", state.Step, err)
	}
	return nil
}

// finish gives the model the weights to keep.
func (t *training) finish() error {
	t.report.Loss = t.losses.end()
	t.report.KeptStep = t.best.Step
	if t.best.Weights != nil {
		t.model.renew(t.best.Weights)
		return nil
	}
	state, err := t.step.State()
	if err != nil {
		return err
	}
	t.report.KeptStep = state.Step
	t.model.renew(state.EMA)
	return nil
}

// calibrate gives the model its yardstick, of training masks spread over all
// days. A series with fewer masks than that takes goes without.
func (t *training) calibrate(ctx context.Context) error {
	n := min(t.cfg.CalibrateMasks, len(t.source.refs))
	if n < yardstickBin {
		return nil
	}
	patches := make([]samples.Patch, n)
	for i := range patches {
		patches[i] = t.source.data.Cut(t.source.refs[i*len(t.source.refs)/n])
	}
	return t.model.Calibrate(ctx, patches, t.cfg.Sampling.Batch)
}

// lossMeter averages losses since the last report and over the last steps.
type lossMeter struct {
	sum, last   float64
	n, lastSeen int
}

func (l *lossMeter) add(loss float64, atTheEnd bool) {
	l.sum += loss
	l.n++
	if atTheEnd {
		l.last += loss
		l.lastSeen++
	}
}

func (l *lossMeter) sinceLast() float64 {
	mean := l.sum / float64(max(l.n, 1))
	l.sum, l.n = 0, 0
	return mean
}

func (l *lossMeter) end() float64 { return l.last / float64(max(l.lastSeen, 1)) }
