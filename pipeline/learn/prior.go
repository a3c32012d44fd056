package learn

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/backends"

	"lacuna/internal/faults"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// PriorConfig sets the training of a mask prior.
type PriorConfig struct {
	Model prior.Config `json:"model" yaml:"model"`
	Step  train.Config `json:"step" yaml:"step"` // Step.Steps is the length of the training

	Side        int    `json:"side" yaml:"side"`     // side of the square windows, in cells
	Stride      int    `json:"stride" yaml:"stride"` // cells between windows
	MinObserved int    `json:"min_observed" yaml:"min_observed"`
	Batch       int    `json:"batch" yaml:"batch"`
	Workers     int    `json:"workers" yaml:"workers"` // goroutines that prepare batches
	Seed        uint64 `json:"seed" yaml:"seed"`

	// Every so many steps, masks are drawn and compared with held-out ones;
	// the weights that came closest are kept, and training ends when Patience
	// comparisons in a row were no better. 0: never, the last weights are kept.
	EvaluateEvery int                `json:"evaluate_every" yaml:"evaluate_every"`
	EvaluateMasks int                `json:"evaluate_masks" yaml:"evaluate_masks"`
	Patience      int                `json:"patience" yaml:"patience"`
	Sampling      prior.SampleConfig `json:"sampling" yaml:"sampling"`

	// CalibrateMasks is how many training masks the reference is made of; 0:
	// none is made.
	CalibrateMasks int `json:"calibrate_masks" yaml:"calibrate_masks"`

	CheckpointEvery int `json:"checkpoint_every" yaml:"checkpoint_every"` // steps; 0: never
}

// DefaultPrior returns the settings that hold where a file is silent.
func DefaultPrior() PriorConfig {
	step := train.DefaultConfig()
	step.Steps = 1000 // 1000 batches of 32: enough for a small network, and 40 minutes on two processors
	step.LearningRate = 2e-3
	step.EMADecay = 0.995 // forgets the first steps within a training as short as that
	model := prior.DefaultConfig()
	model.Frequency = true // the map of cloudiness is then matched as well as other days match it
	return PriorConfig{
		Model: model, Step: step,
		Side: 64, Stride: 32, MinObserved: partition.MinObservedCells, Batch: 32, Workers: 2, Seed: 1,
		EvaluateEvery: 250, EvaluateMasks: 192, Patience: 4, Sampling: prior.DefaultSampling(),
		CalibrateMasks: 128, CheckpointEvery: 500,
	}
}

// Validate reports everything wrong with c.
func (c PriorConfig) Validate() error {
	errs := faults.Of(c.Model.Validate(), c.Step.Validate(), c.Sampling.Validate(), checkBatches(c.Side, c.Batch, c.Workers, c.Step.Steps))
	errs.Check(c.Stride > 0, "stride is %d cells, must be positive", c.Stride)
	errs.Check(c.MinObserved >= 0, "min_observed is %d cells, must not be negative", c.MinObserved)
	errs.Check(c.EvaluateEvery >= 0 && c.CheckpointEvery >= 0, "evaluate_every and checkpoint_every must not be negative")
	errs.Check(c.CalibrateMasks >= 0, "calibrate_masks is %d, must not be negative", c.CalibrateMasks)
	errs.Check(c.EvaluateEvery == 0 || c.EvaluateMasks > 1, "evaluate_masks is %d, must be at least 2", c.EvaluateMasks)
	if c.Side > 0 {
		errs.Add(prior.CheckBatch(max(c.Batch, c.Sampling.Batch), c.Side*c.Side))
	}
	return errs.Err()
}

// PriorReport describes the training of a prior.
type PriorReport struct {
	Masks           int              `json:"masks"` // windows it learned from
	Weights         int              `json:"weights"`
	Steps           int              `json:"steps"`
	KeptStep        int              `json:"kept_step"`
	Stopped         string           `json:"stopped"`      // why
	Loss            float64          `json:"loss"`         // mean of the last tenth of the steps
	Seconds         float64          `json:"seconds"`      // all of it, compilation and evaluations included
	WaitSeconds     float64          `json:"wait_seconds"` // time that the engine waited for batches
	HeldOut         masks.Statistics `json:"held_out"`
	Drawn           masks.Statistics `json:"drawn"`    // masks of the weights kept, at their evaluation
	Distance        float64          `json:"distance"` // distance of Drawn from HeldOut
	EvaluateSeconds float64          `json:"evaluate_seconds"`
}

// TrainPrior fits a prior to the masks of data. Held-out masks only say when to
// stop. The same data, config and engine give the same weights.
//
// The config says when drawn masks are scored, by their distance from held-out
// ones, how patient the training is and after how many steps it keeps its state;
// those fields of hooks are ignored. It ends as train.Run does.
func TrainPrior(ctx context.Context, b backends.Backend, data samples.Train, held samples.HeldOut, cfg PriorConfig, hooks train.Hooks) (*prior.Model, PriorReport, error) {
	t, err := newPriorTraining(b, data, held, cfg, hooks)
	if err != nil {
		return nil, PriorReport{}, fmt.Errorf("train prior: %w", err)
	}
	if err := t.run(ctx); err != nil {
		t.model.Close()
		return nil, t.report, fmt.Errorf("train prior: %w", err)
	}
	return t.model, t.report, nil
}
