package train

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"lacuna/internal/faults"
)

// Schedule is the shape of the learning rate after the warm-up.
type Schedule string

// The schedules.
const (
	Constant Schedule = "constant"
	Cosine   Schedule = "cosine" // half a period, down to FinalRate of the peak at Steps
)

// Config sets the optimizer.
type Config struct {
	LearningRate float64  `yaml:"learning_rate"` // the peak
	Schedule     Schedule `yaml:"schedule"`
	Steps        int      `yaml:"steps"`        // length of a Run and of the cosine, which stays at its end afterwards
	FinalRate    float64  `yaml:"final_rate"`   // end of the cosine, as a share of LearningRate
	WarmupSteps  int      `yaml:"warmup_steps"` // the rate rises from zero in a straight line
	ClipNorm     float64  `yaml:"clip_norm"`    // longest gradient, over all weights together; 0: any
	EMADecay     float64  `yaml:"ema_decay"`    // decay of the moving average of the weights
	BFloat16     bool     `yaml:"bfloat16"`     // compute in bfloat16; weights, moments and sums stay float32
	// Split keeps the state of each weight in a tensor of its own instead of
	// one vector for all. The numbers are the same; which is faster depends
	// on the engine.
	Split bool `yaml:"split"`
	// Devices is how many devices of the engine share each batch, which must
	// divide by it; each keeps a copy of the state, and the mean of their
	// gradients moves all of them alike. 0: one device, without the machinery.
	Devices int `yaml:"devices"`
}

// Adam's constants, at the values its authors recommend.
const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		LearningRate: 1e-3,
		Schedule:     Cosine,
		Steps:        5000,
		FinalRate:    0.01, // small enough to settle, large enough to see an effect of the last steps
		WarmupSteps:  100,
		ClipNorm:     1,
		EMADecay:     0.999,
	}
}

// Validate reports everything wrong with c.
func (c Config) Validate() error {
	var errs faults.List
	errs.Check(c.LearningRate > 0, "learning_rate is %g, must be positive", c.LearningRate)
	errs.Check(c.Schedule == Constant || c.Schedule == Cosine, "schedule is %q, must be %q or %q", c.Schedule, Constant, Cosine)
	errs.Check(c.Schedule != Cosine || c.Steps > 0, "steps is %d, must be positive for a cosine", c.Steps)
	errs.Check(c.FinalRate >= 0 && c.FinalRate <= 1, "final_rate is %g, must be in 0..1", c.FinalRate)
	errs.Check(c.WarmupSteps >= 0, "warmup_steps is %d, must not be negative", c.WarmupSteps)
	errs.Check(c.ClipNorm >= 0, "clip_norm is %g, must not be negative", c.ClipNorm)
	errs.Check(c.EMADecay >= 0 && c.EMADecay < 1, "ema_decay is %g, must be in [0, 1)", c.EMADecay)
	errs.Check(c.Devices >= 0, "devices is %d, must not be negative", c.Devices)
	return errs.Err()
}

func (c Config) dtype() dtypes.DType {
	if c.BFloat16 {
		return dtypes.BFloat16
	}
	return dtypes.Float32
}
