package learn

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gomlx/gomlx/backends"

	"lacuna/pipeline/masks"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// priorTraining is a TrainPrior under way.
type priorTraining struct {
	cfg      PriorConfig
	hooks    train.Hooks
	backend  backends.Backend
	layout   *nn.Layout
	examples maskExamples
	model    *prior.Model // for evaluations; gets the weights at the end

	sample  []prior.Mask // held out, at whose places masks are drawn; nil: no evaluations
	closest float64      // distance of the masks in the report
	report  PriorReport
}

func newPriorTraining(b backends.Backend, data samples.Train, held samples.HeldOut, cfg PriorConfig, hooks train.Hooks) (*priorTraining, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	refs, err := maskWindows(data, cfg)
	if err != nil {
		return nil, err
	}
	network, err := nn.New(cfg.Model.Network())
	if err != nil {
		return nil, err
	}
	if hooks.From == nil {
		hooks.From = network.Layout().Init(cfg.Seed)
	}
	model, err := prior.NewModel(b, cfg.Model, hooks.From)
	if err != nil {
		return nil, err
	}
	if cfg.Model.Frequency {
		model.SetFrequency(prior.FrequencyOf(data))
	}
	t := &priorTraining{
		cfg: cfg, hooks: hooks, backend: b, layout: network.Layout(), model: model,
		examples: newMaskExamples(data, refs, cfg, model, network.Multiple()),
		report:   PriorReport{Masks: len(refs), Weights: network.Layout().Size}, closest: math.Inf(1),
	}
	if cfg.EvaluateEvery > 0 {
		var all []prior.Mask
		if all, t.sample, err = heldOutMasks(held, cfg); err != nil {
			return nil, err
		}
		t.report.HeldOut = masks.Describe(all)
	}
	return t, nil
}

func (t *priorTraining) run(ctx context.Context) error {
	began := time.Now()
	defer func() { t.report.Seconds = time.Since(began).Seconds() }()
	task := t.task()
	step, err := task.NewStep(t.backend)
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
	t.model.SetWeights(weights)
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

// task returns the network, its loss and its examples.
func (t *priorTraining) task() train.Task {
	settings := t.cfg
	settings.Workers, settings.CheckpointEvery = 0, 0 // the weights do not depend on them
	return train.Task{
		Kind: "prior", Settings: settings, Layout: t.layout, Optimizer: t.cfg.Step, Seed: t.cfg.Seed,
		Loss: priorLoss(t.model), Dims: t.examples.dims(), Fill: t.examples.fill, Workers: t.cfg.Workers,
	}
}

func (t *priorTraining) trainHooks() train.Hooks {
	h := t.hooks
	h.Score, h.ScoreEvery, h.KeepBest, h.Patience, h.CheckpointEvery = nil, t.cfg.EvaluateEvery, true, t.cfg.Patience, t.cfg.CheckpointEvery
	if t.sample != nil {
		h.Score = t.score
	}
	return h
}

// score returns how far masks drawn with weights are from held-out ones, and
// reports those that came closest.
func (t *priorTraining) score(ctx context.Context, weights []float32) (float64, error) {
	t.model.SetWeights(weights)
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
func (t *priorTraining) evaluate(ctx context.Context) (masks.Statistics, error) {
	began := time.Now()
	defer func() { t.report.EvaluateSeconds += time.Since(began).Seconds() }()
	places := make([]prior.Place, len(t.sample))
	for i, m := range t.sample {
		places[i] = m.Place
	}
	drawn, err := t.model.Draw(ctx, places, t.cfg.Sampling, noise.New(t.cfg.Seed, "prior", "evaluation"))
	if err != nil {
		return masks.Statistics{}, err
	}
	return masks.Describe(prior.MasksAt(places, drawn)), nil
}

// calibrate gives the model its reference, of training masks spread over all
// days. A series with fewer masks than that takes goes without.
func (t *priorTraining) calibrate(ctx context.Context) error {
	n := min(t.cfg.CalibrateMasks, len(t.examples.refs))
	if n < prior.ReferenceMasks {
		return nil
	}
	patches := make([]samples.Patch, n)
	for i := range patches {
		patches[i] = t.examples.data.Cut(t.examples.refs[i*len(t.examples.refs)/n])
	}
	return t.model.Calibrate(ctx, patches, t.cfg.Sampling.Batch)
}
