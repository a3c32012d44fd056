package prior

import (
	"context"
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
	hooks  train.Hooks
	source source
	model  *Model // for evaluations; gets the weights at the end

	sample  []Mask  // held out, at whose places masks are drawn; nil: no evaluations
	closest float64 // distance of the masks in the report
	report  Report
}

func newTraining(b backends.Backend, data samples.Train, held samples.HeldOut, cfg TrainConfig, hooks train.Hooks) (*training, error) {
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
	if hooks.From == nil {
		hooks.From = network.Layout().Init(cfg.Seed)
	}
	model, err := NewModel(b, cfg.Model, hooks.From)
	if err != nil {
		return nil, err
	}
	if cfg.Model.Frequency {
		model.places = FrequencyOf(data)
	}
	t := &training{
		cfg: cfg, hooks: hooks, model: model, source: newSource(data, refs, cfg, model),
		report: Report{Masks: len(refs), Weights: network.Layout().Size}, closest: math.Inf(1),
	}
	if cfg.EvaluateEvery > 0 {
		var all []Mask
		if all, t.sample, err = heldOutMasks(held, cfg); err != nil {
			return nil, err
		}
		t.report.HeldOut = Describe(all)
	}
	return t, nil
}

func (t *training) run(ctx context.Context) error {
	began := time.Now()
	defer func() { t.report.Seconds = time.Since(began).Seconds() }()
	task := t.task()
	step, err := task.NewStep(t.model.backend)
	if err != nil {
		return err
	}
	defer step.Close()
	weights, told, err := train.Run(ctx, step, task, t.trainHooks())
	t.report.Steps, t.report.KeptStep, t.report.Loss, t.report.WaitSeconds = told.Steps, told.Steps, told.Loss, told.Waited.Seconds()
	if err != nil {
		return err
	}
	t.report.Stopped = "all steps done"
	if told.Stopped {
		t.report.Stopped = fmt.Sprintf("no better in %d evaluations", t.cfg.Patience)
	}
	t.model.renew(weights)
	if told.Score != nil {
		t.report.KeptStep, t.report.Distance = told.ScoreStep, *told.Score
		if told.ScoreStep <= told.Resumed { // the masks were drawn before an interruption
			if t.report.Drawn, err = t.evaluate(ctx); err != nil {
				return err
			}
		}
	}
	return t.calibrate(ctx)
}

// task is what is trained.
func (t *training) task() train.Task {
	settings := t.cfg
	settings.Workers, settings.CheckpointEvery = 0, 0 // the weights do not depend on them
	net := t.model.net
	return train.Task{
		Kind: "prior", Settings: settings, Layout: net.network.Layout(), Optimizer: t.cfg.Step, Seed: t.cfg.Seed,
		Loss: func(w nn.Weights, in []*Node) *Node {
			return net.loss(w, in[deltaTensor], in[placeTensor], in[levelTensor], in[truthTensor])
		},
		Dims: t.source.dims(), Fill: t.source.fill, Workers: t.cfg.Workers,
	}
}

func (t *training) trainHooks() train.Hooks {
	h := t.hooks
	h.Score, h.ScoreEvery, h.KeepBest, h.Patience, h.CheckpointEvery = nil, t.cfg.EvaluateEvery, true, t.cfg.Patience, t.cfg.CheckpointEvery
	if t.sample != nil {
		h.Score = t.score
	}
	return h
}

// score returns how far masks drawn with weights are from held-out ones, and
// reports those that came closest.
func (t *training) score(ctx context.Context, weights []float32) (float64, error) {
	t.model.renew(weights)
	drawn, err := t.evaluate(ctx)
	if err != nil {
		return 0, err
	}
	distance := drawn.Distance(t.report.HeldOut)
	if distance < t.closest {
		t.closest, t.report.Drawn = distance, drawn
	}
	return distance, nil
}

// evaluate describes masks that the model draws for the places of held-out ones.
func (t *training) evaluate(ctx context.Context) (Statistics, error) {
	began := time.Now()
	defer func() { t.report.EvaluateSeconds += time.Since(began).Seconds() }()
	places := make([]Place, len(t.sample))
	for i, m := range t.sample {
		places[i] = m.Place
	}
	masks, err := t.model.Draw(ctx, places, t.cfg.Sampling, noise.New(t.cfg.Seed, "prior", "evaluation"))
	if err != nil {
		return Statistics{}, err
	}
	return Describe(masksAt(places, masks)), nil
}

// calibrate gives the model its reference, of training masks spread over all
// days. A series with fewer masks than that takes goes without.
func (t *training) calibrate(ctx context.Context) error {
	n := min(t.cfg.CalibrateMasks, len(t.source.refs))
	if n < referenceBin {
		return nil
	}
	patches := make([]samples.Patch, n)
	for i := range patches {
		patches[i] = t.source.data.Cut(t.source.refs[i*len(t.source.refs)/n])
	}
	return t.model.Calibrate(ctx, patches, t.cfg.Sampling.Batch)
}
