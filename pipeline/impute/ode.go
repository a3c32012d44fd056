package impute

import (
	"context"
	"fmt"
	"math"
	"sync"

	"lacuna/internal/faults"
	"lacuna/pipeline/noise"
)

// ODE holds the settings of a sampler that follows the probability flow of a denoiser.
type ODE struct {
	Steps       int  `json:"steps" yaml:"steps"`
	Jumps       int  `json:"jumps" yaml:"jumps"` // stages of a recursive jump; 1: no jump
	SecondOrder bool `json:"second_order" yaml:"second_order"`
}

// DefaultODE returns the settings that members are drawn with.
func DefaultODE() ODE { return ODE{Steps: 20, Jumps: 3, SecondOrder: true} }

// Validate reports everything wrong with o.
func (o ODE) Validate() error {
	var errs faults.List
	errs.Check(o.Steps > 0, "steps is %d, must be positive", o.Steps)
	errs.Check(o.Jumps > 0 && o.Jumps <= max(o.Steps, 1), "jumps is %d, must be in 1..steps", o.Jumps)
	return errs.Err()
}

// Calls returns how often the denoiser is called.
func (o ODE) Calls() int {
	n := 0
	for k := o.Jumps; k >= 1; k-- {
		n += o.Steps * k / o.Jumps
	}
	return n
}

// A Denoiser returns the expected clean fields of x at time t. x stays the
// caller's, and the returned fields must not change afterwards.
type Denoiser func(ctx context.Context, t float32, x [][]float32) ([][]float32, error)

// Run turns standard normal x into samples in place. The noise of jumps comes
// from the streams, one a field, from index 1 on. Cells for which the denoiser
// returns zero end as zero.
func (o ODE) Run(ctx context.Context, c Denoiser, x [][]float32, streams []noise.Stream) error {
	return o.run(x, streams, func(from int) error { return o.down(ctx, c, x, from) })
}

// run is Run with a function that follows the flow of x from a step to the field.
func (o ODE) run(x [][]float32, streams []noise.Stream, down func(from int) error) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("ode: %w", err)
	}
	jumps := uint64(0)
	for k := o.Jumps; k >= 1; k-- {
		from := o.Steps * k / o.Jumps
		if k < o.Jumps {
			jumps++
			eachField(x, func(i int) {
				eps := make([]float32, len(x[i]))
				streams[i].Normals(eps, jumps)
				Renoise(x[i], eps, 0, o.time(from))
			})
		}
		if err := down(from); err != nil {
			return err
		}
	}
	return nil
}

// eachField calls f for every field, concurrently.
func eachField(x [][]float32, f func(i int)) {
	var running sync.WaitGroup
	for i := range x {
		running.Go(func() { f(i) })
	}
	running.Wait()
}

func (o ODE) time(step int) float32 { return float32(step) / float32(o.Steps) }

// down follows the flow from a step to the field.
func (o ODE) down(ctx context.Context, c Denoiser, x [][]float32, from int) error {
	var before [][]float32 // the expectation one step ago
	for s := from; s > 0; s-- {
		clean, err := c(ctx, o.time(s), x)
		if err != nil {
			return err
		}
		w := o.weights(s, from)
		eachField(x, func(i int) {
			x := x[i]
			for k, e := range clean[i] {
				if w[weightAhead] > 0 {
					e += w[weightAhead] * (e - before[i][k])
				}
				x[k] = w[weightNoised]*x[k] + w[weightClean]*e
			}
		})
		before = clean
	}
	return nil
}

// The weights of a step: of the last two expectations' difference, of the noised field
// and of the expectation.
const (
	weightAhead = iota
	weightNoised
	weightClean
	stepWeights
)

// weights returns those of the step from s to s-1, where the flow was joined at from.
// The first-order step is that of DDIM, exact for a constant expectation. The second
// order extrapolates it from the last two, after Lu et al., DPM-Solver++ (2022), the
// multistep variant, at no further call.
func (o ODE) weights(s, from int) (w [stepWeights]float32) {
	t, next := o.time(s), o.time(s-1)
	if o.SecondOrder && s < from && s > 1 {
		w[weightAhead] = float32((logSNR(next) - logSNR(t)) / (2 * (logSNR(t) - logSNR(o.time(s+1)))))
	}
	alpha, sigma := AlphaSigma(t)
	alphaNext, sigmaNext := AlphaSigma(next)
	kept := float64(sigmaNext) / float64(sigma)
	w[weightNoised], w[weightClean] = float32(kept), float32(float64(alphaNext)-kept*float64(alpha))
	return w
}

// logSNR is log(α/σ), from -∞ for noise to +∞ for the field.
func logSNR(t float32) float64 {
	alpha, sigma := AlphaSigma(t)
	return math.Log(float64(alpha) / float64(sigma))
}
