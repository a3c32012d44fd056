package train

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/nn"
)

// reference is the optimizer in plain arithmetic of doubles, as the papers
// write it.
type reference struct {
	cfg                Config
	w, ema, mean, vari []float64
	step               int
}

func (r *reference) rate() float64 {
	rate := r.cfg.LearningRate
	if r.cfg.WarmupSteps > 0 {
		rate *= math.Min(1, float64(r.step+1)/float64(r.cfg.WarmupSteps))
	}
	if r.cfg.Schedule == Cosine {
		done := math.Min(1, float64(r.step)/float64(r.cfg.Steps))
		rate *= r.cfg.FinalRate + (1-r.cfg.FinalRate)*0.5*(1+math.Cos(math.Pi*done))
	}
	return rate
}

func (r *reference) update(gradient []float64) {
	norm := 0.0
	for _, g := range gradient {
		norm += g * g
	}
	norm = math.Sqrt(norm)
	n := float64(r.step + 1)
	decay := math.Min(r.cfg.EMADecay, n/(n+9))
	for i, g := range gradient {
		if r.cfg.ClipNorm > 0 && norm > r.cfg.ClipNorm {
			g *= r.cfg.ClipNorm / norm
		}
		r.mean[i] = 0.9*r.mean[i] + 0.1*g
		r.vari[i] = 0.999*r.vari[i] + 0.001*g*g
		mean := r.mean[i] / (1 - math.Pow(0.9, n))
		vari := r.vari[i] / (1 - math.Pow(0.999, n))
		r.w[i] -= r.rate() * mean / (math.Sqrt(vari) + 1e-8)
		r.ema[i] = decay*r.ema[i] + (1-decay)*r.w[i]
	}
	r.step++
}

// parabola has two weights tensors and the loss sum c (w-target)^2, whose
// gradient is known.
var parabola = nn.Layout{Size: 5, Params: []nn.Param{
	{Name: "a", Dims: []int{3}}, {Name: "b", Dims: []int{1, 2}, Offset: 3},
}}

func TestOptimizerAgreesWithPlainArithmetic(t *testing.T) {
	base := Config{LearningRate: 0.02, Schedule: Constant, EMADecay: 0.9}
	tests := map[string]func(*Config){
		"constant rate":   func(*Config) {},
		"warm-up":         func(c *Config) { c.WarmupSteps = 8 },
		"cosine":          func(c *Config) { c.Schedule, c.Steps, c.FinalRate = Cosine, 20, 0.1 },
		"clipping":        func(c *Config) { c.ClipNorm = 0.5 },
		"slow average":    func(c *Config) { c.EMADecay = 0.9999 },
		"all in one":      func(c *Config) { *c = DefaultConfig(); c.Steps, c.WarmupSteps = 25, 5 },
		"all, each apart": func(c *Config) { *c = DefaultConfig(); c.Steps, c.WarmupSteps, c.Split = 25, 5, true },
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := base
			edit(&cfg)
			compareWithReference(t, cfg)
		})
	}
}

func compareWithReference(t *testing.T, cfg Config) {
	curve := []float64{1, 0.1, 3, 10, 0.5}
	target := []float64{1, -2, 0.5, 0, 3}
	start := []float32{0, 1, -1, 2, 0}
	s, err := NewStep(enginetest.OpenThreads(t, 1), &parabola, cfg, func(w nn.Weights, batch []*Node) *Node {
		flat := Concatenate([]*Node{w.Weight(parabola.Params[0]), Reshape(w.Weight(parabola.Params[1]), 2)}, 0)
		return ReduceAllSum(Mul(batch[0], Square(Sub(flat, batch[1]))))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(start); err != nil {
		t.Fatal(err)
	}
	want := &reference{cfg: cfg, w: doubles(start), ema: doubles(start), mean: make([]float64, 5), vari: make([]float64, 5)}
	batch := []*tensors.Tensor{singles(curve), singles(target)}
	for range 40 { // past the end of the cosine
		m, err := s.Run(batch...)
		if err != nil {
			t.Fatal(err)
		}
		gradient, norm, loss := make([]float64, 5), 0.0, 0.0
		for i, w := range want.w {
			gradient[i] = 2 * curve[i] * (w - target[i])
			norm += gradient[i] * gradient[i]
			loss += curve[i] * (w - target[i]) * (w - target[i])
		}
		if math.Abs(m.Loss-loss) > 1e-4*(1+loss) || math.Abs(m.GradientNorm-math.Sqrt(norm)) > 1e-4*(1+math.Sqrt(norm)) {
			t.Fatalf("step %d tells loss %g and norm %g, want %g and %g", m.Step, m.Loss, m.GradientNorm, loss, math.Sqrt(norm))
		}
		want.update(gradient)
	}
	st := state(t, s)
	for i := range start {
		for _, v := range []struct {
			name      string
			got       float32
			want, tol float64
		}{
			// Single precision drifts over 40 steps; a wrong formula is off by far more.
			{"weight", st.Weights[i], want.w[i], 1e-4},
			{"average", st.EMA[i], want.ema[i], 1e-4},
			{"mean", st.Mean[i], want.mean[i], 2e-3},
			{"variance", st.Variance[i], want.vari[i], 2e-3},
		} {
			if math.Abs(float64(v.got)-v.want) > v.tol*(1+math.Abs(v.want)) {
				t.Errorf("%s %d is %g, want %g", v.name, i, v.got, v.want)
			}
		}
	}
}

func TestRatesFollowTheirFormula(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Steps, cfg.WarmupSteps = 1000, 50
	for _, step := range []int{0, 1, 24, 49, 50, 500, 999, 1000, 100_000} {
		r := newRates(cfg, step)
		got := []float64{r.learning, r.epsilon, r.ema}
		n := float64(step + 1)
		root := math.Sqrt(1 - math.Pow(0.999, n))
		want := []float64{
			(&reference{cfg: cfg, step: step}).rate() * root / (1 - math.Pow(0.9, n)),
			1e-8 * root,
			math.Min(cfg.EMADecay, n/(n+9)),
		}
		for i, w := range want {
			if math.Abs(got[i]-w) > 1e-12*w {
				t.Errorf("step %d: rate %d is %g, want %g", step, i, got[i], w)
			}
		}
	}
}

func doubles(x []float32) []float64 {
	d := make([]float64, len(x))
	for i, v := range x {
		d[i] = float64(v)
	}
	return d
}

func singles(x []float64) *tensors.Tensor {
	s := make([]float32, len(x))
	for i, v := range x {
		s[i] = float32(v)
	}
	return tensors.FromFlatDataAndDimensions(s, len(s))
}
