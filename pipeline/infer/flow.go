package infer

import (
	"context"
	"math"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
)

// A flow takes fields from noise to samples along the probability flow of a
// denoiser, as impute.ODE does for one window, but on the whole grid: the
// denoiser is asked for complete fields.
type flow struct {
	impute.ODE
	clean   func(ctx context.Context, t float32, x [][]float32) ([][]float32, error)
	streams []noise.Stream // one a field; the noise of jumps is from index 1 on
	stepped func()
}

// run turns standard normal x into samples in place, where it is hidden. It
// runs down from pure noise and then, jump by jump, up again to a lower level
// and down.
func (f flow) run(ctx context.Context, x [][]float32, hidden []bool) error {
	if err := f.Validate(); err != nil {
		return err
	}
	var eps []float32
	for k := f.Jumps; k >= 1; k-- {
		from := f.Steps * k / f.Jumps
		if k < f.Jumps {
			eps = append(eps[:0], x[0]...) // room of the right size
			alpha, sigma := alphaSigma(f.time(from))
			for i := range x {
				f.streams[i].Normals(eps, uint64(f.Jumps-k))
				for c := range x[i] {
					if hidden[c] {
						x[i][c] = alpha*x[i][c] + sigma*eps[c]
					}
				}
			}
		}
		if err := f.down(ctx, x, from); err != nil {
			return err
		}
	}
	return nil
}

func (f flow) time(step int) float32 { return float32(step) / float32(f.Steps) }

// down follows the flow from a step to the field. The first-order step is that
// of DDIM; the second order extrapolates the expectation from the last two,
// after Lu et al., DPM-Solver++ (2022), the multistep variant.
func (f flow) down(ctx context.Context, x [][]float32, from int) error {
	var before [][]float32 // the expectation one step ago
	for s := from; s > 0; s-- {
		t, next := f.time(s), f.time(s-1)
		clean, err := f.clean(ctx, t, x)
		if err != nil {
			return err
		}
		ahead := float32(0) // how much of the change since is added
		if f.SecondOrder && before != nil && s > 1 {
			ahead = float32((logSNR(next) - logSNR(t)) / (2 * (logSNR(t) - logSNR(f.time(s+1)))))
		}
		alpha, sigma := alphaSigma(t)
		alphaNext, sigmaNext := alphaSigma(next)
		for i := range x {
			for k, e := range clean[i] {
				if ahead > 0 {
					e += ahead * (e - before[i][k])
				}
				x[i][k] = alphaNext*e + sigmaNext*(x[i][k]-alpha*e)/sigma
			}
		}
		before = clean
		f.stepped()
	}
	return nil
}

// alphaSigma returns how much of the field and how much noise there is at time
// t: cos and sin of πt/2, exact at both ends.
func alphaSigma(t float32) (alpha, sigma float32) {
	switch {
	case t <= 0:
		return 1, 0
	case t >= 1:
		return 0, 1
	}
	sin, cos := math.Sincos(math.Pi / 2 * float64(t))
	return float32(cos), float32(sin)
}

// logSNR is log(α/σ), from -∞ for noise to +∞ for the field.
func logSNR(t float32) float64 {
	alpha, sigma := alphaSigma(t)
	return math.Log(float64(alpha) / float64(sigma))
}
