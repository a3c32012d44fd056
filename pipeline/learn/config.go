package learn

import (
	"lacuna/internal/faults"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

// LossOn says which cells of a patch are scored in training.
type LossOn string

// The choices.
const (
	OnQuery    LossOn = "query"    // cells that the context does not show
	OnObserved LossOn = "observed" // context and query
)

// Config sets the training of a network.
type Config struct {
	Design impute.Design `json:"design" yaml:"design"`

	Side         int     `json:"side" yaml:"side"` // side of the patches, in cells
	Steps        int     `json:"steps" yaml:"steps"`
	Batch        int     `json:"batch" yaml:"batch"`
	LearningRate float64 `json:"learning_rate" yaml:"learning_rate"`
	WarmupSteps  int     `json:"warmup_steps" yaml:"warmup_steps"`
	EMADecay     float64 `json:"ema_decay" yaml:"ema_decay"`
	ClipNorm     float64 `json:"clip_norm" yaml:"clip_norm"`
	BFloat16     bool    `json:"bfloat16" yaml:"bfloat16"`
	Seed         uint64  `json:"seed" yaml:"seed"`

	LossOn LossOn  `json:"loss_on" yaml:"loss_on"`
	Beta   float64 `json:"beta" yaml:"beta"`   // exponent of the beta-NLL, for a network with a variance; 0: plain likelihood
	Clean  float64 `json:"clean" yaml:"clean"` // share of examples without noise on the context (p0); the others are at t~U(0,1)

	// Inputs that are withheld, so that one network serves near real time,
	// delayed mode and days without neighbours.
	DropTemporal float64 `json:"drop_temporal" yaml:"drop_temporal"` // share of examples that see the target day alone
	DropFuture   float64 `json:"drop_future" yaml:"drop_future"`     // share of the others that see the past only
	Thin         float64 `json:"thin" yaml:"thin"`                   // share of the others whose composites lose cells at random
	// DropCovariates is the share of examples that lose a covariate, each by itself: the
	// network must fill a day without it, and be asked what it brings.
	DropCovariates float64 `json:"drop_covariates,omitempty" yaml:"drop_covariates"`
	Flip           bool    `json:"flip" yaml:"flip"` // mirror patches at random
	// Negate shows patches with the opposite sign at random, so that anomalies
	// above the mean and below it are learned alike. It keeps a network
	// that learns from few days, or from another quantity, from a bias.
	Negate bool `json:"negate,omitempty" yaml:"negate"`
	// Transpose exchanges north and west at random; with Flip it makes eight
	// seas of one.
	Transpose bool `json:"transpose,omitempty" yaml:"transpose"`
	// Size multiplies the anomalies of each example by exp(Size·n), n a standard
	// normal: a sea with another spread is nothing new.
	Size float64 `json:"size,omitempty" yaml:"size"`

	// SpreadOnly leaves the mean to the analysis: the network learns how far off
	// it is and predicts a departure of zero. For days too few to better an analysis.
	SpreadOnly bool `json:"spread_only,omitempty" yaml:"spread_only"`

	// How batches are made; the result does not depend on it.
	Workers int `json:"-" yaml:"workers"`  // goroutines
	CacheMB int `json:"-" yaml:"cache_mb"` // memory for the surroundings of patches; those that do not fit are cut out again each time
}

// DefaultConfig returns the preset "lacuna". Batches are large because one window
// in twenty holds two fifths of the squared error: in smaller batches they decide
// alone where a step goes. On 608 overlays of days that choose (NE Pacific, 64×64,
// past only, size small, 4000 steps, one seed; OI 0.1820) the MSE is 0.1650 with
// batches of 256, 0.1767 with 64, and 0.1788 with 64 and half as many partitions.
// Departures and a loss in units of the analysis's sigma gave 0.1828 with 64.
func DefaultConfig() Config {
	return Config{
		Design: impute.Design{
			Backbone: nn.BackboneUNet, Size: nn.Base, Variance: true, Departure: true,
			Extras: impute.Extras{Last: true, Next: true, Analysis: true},
		},
		Side: 64, Steps: 5000, Batch: 256, LearningRate: 1e-3, WarmupSteps: 200, EMADecay: 0.999, ClipNorm: 1,
		LossOn: OnQuery, Beta: 0.5,
		Clean:        1, // the analysis shows the clean context, so noise over it would teach nothing
		DropTemporal: 0.1, DropFuture: 0.5, Thin: 0.15,
		Flip: true, Transpose: true, Negate: true, Size: 0.35,
		Workers: 4, CacheMB: 1024, Seed: 1,
	}
}

// AsPaper returns c as the preset "paper", the method of Ma, Zhou and Yu, Observation-Aligned Mask
// Priors for Learning Physical Dynamics from Authentic Occlusions: a single frame
// in, no variance, and nothing but the partition to tell it from its baselines.
func (c Config) AsPaper() Config {
	c.Design = c.Design.Without()
	c.Design.Extras, c.Design.Variance, c.Design.Departure = impute.Extras{}, false, false
	c.Beta, c.DropTemporal, c.DropFuture, c.Thin, c.Clean = 0, 0, 0, 0, 0.5
	c.Flip, c.Transpose, c.Negate, c.Size = false, false, false, 0
	return c
}

// Validate reports everything wrong with c.
func (c Config) Validate() error {
	errs := faults.Of(checkBatches(c.Side, c.Batch, c.Workers, c.Steps))
	errs.Check(c.LossOn == OnQuery || c.LossOn == OnObserved, "loss_on is %q, must be %q or %q", c.LossOn, OnQuery, OnObserved)
	for _, share := range []struct {
		name  string
		value float64
	}{
		{"beta", c.Beta},
		{"clean", c.Clean},
		{"drop_temporal", c.DropTemporal},
		{"drop_future", c.DropFuture},
		{"thin", c.Thin},
		{"drop_covariates", c.DropCovariates},
		{"size", c.Size},
	} {
		errs.Check(share.value >= 0 && share.value <= 1, "%s is %g, must be in 0..1", share.name, share.value)
	}
	errs.Check(!c.Design.Extras.Analysis || c.Clean == 1, "clean is %g, must be 1 for a network that sees an analysis of the clean context", c.Clean)
	errs.Check(!c.SpreadOnly || c.Design.Variance && c.Design.Departure && c.Design.Extras.Analysis && c.Design.Backbone == nn.BackboneUNet,
		"spread_only is for a unet with a variance that departs from an analysis")
	errs.Add(c.optimizer().Validate())
	if network, err := nn.New(c.Design.Network()); err != nil {
		errs.Add(err)
	} else {
		errs.Check(c.Side%network.Multiple() == 0, "side is %d, must be a multiple of %d", c.Side, network.Multiple())
	}
	return errs.Err()
}

// checkBatches reports what is wrong with the settings that every training has.
func checkBatches(side, batch, workers, steps int) error {
	var errs faults.List
	errs.Check(side > 0, "side is %d, must be positive", side)
	errs.Check(batch > 0, "batch is %d, must be positive", batch)
	errs.Check(workers > 0, "workers is %d, must be positive", workers)
	errs.Check(steps > 0, "steps is %d, must be positive", steps)
	return errs.Err()
}

func (c Config) optimizer() train.Config {
	o := train.DefaultConfig()
	o.LearningRate, o.Steps, o.WarmupSteps = c.LearningRate, c.Steps, c.WarmupSteps
	o.ClipNorm, o.EMADecay, o.BFloat16 = c.ClipNorm, c.EMADecay, c.BFloat16
	return o
}
