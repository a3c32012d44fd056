package baselines

import (
	"context"
	"math"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/noise"
)

// toyB is Toy B, a Gaussian field that its exact denoiser completes.
type toyB struct{ imputetest.Toy }

func newToyB(seed uint64) toyB { return toyB{imputetest.NewToy(seed)} }

func (b toyB) denoise(_ context.Context, t float32, x [][]float32, mask [][]bool) ([][]float32, error) {
	out := make([][]float32, len(x))
	for m := range x {
		out[m], _ = b.Given(t, x[m], mask[m])
	}
	return out, nil
}

// Within drops each visible cell with probability 0.2.
func (b toyB) Within(s noise.Stream) []bool {
	out := b.Anywhere(s)
	for i, v := range b.Visible {
		out[i] = v && out[i]
	}
	return out
}

// Anywhere keeps each cell with probability 0.8.
func (b toyB) Anywhere(s noise.Stream) []bool {
	r := s.Rand(0)
	out := make([]bool, imputetest.ToyCells)
	for i := range out {
		out[i] = r.Float64() < 0.8
	}
	return out
}

func (b toyB) problem() Problem {
	sea := make([]bool, imputetest.ToyCells)
	for i := range sea {
		sea[i] = true
	}
	return Problem{Observed: b.Truth, Visible: b.Visible, Sea: sea, Contexts: b}
}

// verdict compares ensembles with the posterior, over fields.
type verdict struct{ off, size, drawn, exact float64 }

// meanError is how far the means of ensembles are from the posterior's, as a
// share of its magnitude.
func (v verdict) meanError() float64 { return math.Sqrt(v.off / v.size) }

// spread is the spread of the members over that of the posterior.
func (v verdict) spread() float64 { return math.Sqrt(v.drawn / v.exact) }

func (v *verdict) add(b toyB, members [][]float32) {
	posterior, left := b.Given(0, b.Truth, b.Visible)
	for i, visible := range b.Visible {
		if visible {
			continue
		}
		var sum, squares float64
		for _, m := range members {
			sum += float64(m[i])
			squares += float64(m[i]) * float64(m[i])
		}
		n := float64(len(members))
		mean := sum / n
		v.off += (mean - float64(posterior[i])) * (mean - float64(posterior[i]))
		v.size += float64(posterior[i]) * float64(posterior[i])
		v.drawn += (squares - n*mean*mean) / (n - 1)
		v.exact += left.At(i, i)
	}
}

// toyVerdict judges a sampler on several fields.
func toyVerdict(t *testing.T, s Sampler, cfg SamplerConfig) (verdict, int) {
	t.Helper()
	var v verdict
	calls := 0
	for seed := range uint64(6) {
		b := newToyB(seed)
		drawn, err := s(context.Background(), b.denoise, b.problem(), cfg, noise.New(seed, "toy b"))
		if err != nil {
			t.Fatal(err)
		}
		v.add(b, drawn.Members)
		calls = drawn.Calls
	}
	return v, calls
}

func TestToyBMembersSpreadLikeThePosterior(t *testing.T) {
	cfg := DefaultSampler()
	cfg.Members, cfg.Draws = 60, 0
	for _, tt := range []struct {
		name    string
		sampler Sampler
	}{{"iterative", IterativeConditioning}, {"resampling", ResamplingInpainting}, {"recursive", RecursiveJump}} {
		v, calls := toyVerdict(t, tt.sampler, cfg)
		t.Logf("%s: mean off by %.3f, spread %.3f of the posterior's, %d calls", tt.name, v.meanError(), v.spread(), calls)
		if s := v.spread(); s < 0.8 || s > 1.25 {
			t.Errorf("%s: spread is %.2f of the posterior's, want 0.8..1.25", tt.name, s)
		}
		if e := v.meanError(); e > 0.1 {
			t.Errorf("%s: the mean is off by %.2f of its magnitude, want 10 %%", tt.name, e)
		}
	}
}

func TestThePrintedBlendHasNoSpread(t *testing.T) {
	cfg := DefaultSampler()
	cfg.Members, cfg.Blend = 20, Printed
	v, _ := toyVerdict(t, RecursiveJump, cfg)
	if v.spread() > 0.1 {
		t.Errorf("spread is %.3f of the posterior's, want next to none", v.spread())
	}
}

func TestADirectProjectionOfEverythingIsTheConditionalMean(t *testing.T) {
	b := newToyB(5)
	cfg := DefaultSampler()
	cfg.Draws = 0
	want, _ := b.Given(0, b.Truth, b.Visible)
	drawn, err := DirectProjection(context.Background(), b.denoise, b.problem(), cfg, noise.New(1))
	if err != nil {
		t.Fatal(err)
	}
	if drawn.Calls != 1 || len(drawn.Members) != 1 {
		t.Errorf("%d calls for %d members, want one and one", drawn.Calls, len(drawn.Members))
	}
	cfg.Delta = 1e-4
	near, err := ProximalPrediction(context.Background(), b.denoise, b.problem(), cfg, noise.New(1))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range drawn.Members[0] {
		w := want[i]
		if b.Visible[i] {
			w = b.Truth[i]
		}
		if v != w {
			t.Errorf("cell %d is %v, want %v", i, v, w)
		}
		if math.Abs(float64(near.Members[0][i]-w)) > 0.05 {
			t.Errorf("cell %d is %v by a proximal prediction, want about %v", i, near.Members[0][i], w)
		}
	}
}

func TestMoreContextsConverge(t *testing.T) {
	b := newToyB(5)
	apart := func(draws int) float64 {
		cfg := DefaultSampler()
		cfg.Draws = draws
		var sum float64
		for k := range uint64(8) {
			first, err := DirectProjection(context.Background(), b.denoise, b.problem(), cfg, noise.New(k, "first"))
			if err != nil {
				t.Fatal(err)
			}
			second, err := DirectProjection(context.Background(), b.denoise, b.problem(), cfg, noise.New(k, "second"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range first.Members[0] {
				d := float64(first.Members[0][i] - second.Members[0][i])
				sum += d * d
			}
		}
		return sum
	}
	if few, many := apart(2), apart(32); many > few/4 {
		t.Errorf("two projections differ by %.3g with 2 contexts and %.3g with 32, want a sixteenth", few, many)
	}
}

// watched calls look before each call of a denoiser.
func watched(d Denoiser, look func(t float32, x [][]float32)) Denoiser {
	return func(ctx context.Context, t float32, x [][]float32, mask [][]bool) ([][]float32, error) {
		look(t, x)
		return d(ctx, t, x, mask)
	}
}

func TestObservedCellsKeepTheirOwnNoiseOnTheWayDown(t *testing.T) {
	b := newToyB(5)
	cfg := DefaultSampler()
	cfg.Members, cfg.Draws = 3, 0
	var own []float32 // the noise of each visible cell of each member, as it was first seen
	checked := 0
	d := watched(b.denoise, func(at float32, x [][]float32) {
		if at == 0 {
			return // the expectation from the observations
		}
		alpha, sigma := impute.AlphaSigma(at)
		k := 0
		for _, member := range x {
			for i, visible := range b.Visible {
				if !visible {
					continue
				}
				eps := (member[i] - alpha*b.Truth[i]) / sigma
				if len(own) <= k {
					own = append(own, eps)
				}
				if math.Abs(float64(eps-own[k])) > 2e-5*(1+math.Abs(float64(own[k])))/float64(sigma) {
					t.Errorf("noise of an observed cell is %v at t=%v, was %v", eps, at, own[k])
				}
				k++
				checked++
			}
		}
	})
	if _, err := IterativeConditioning(context.Background(), d, b.problem(), cfg, noise.New(1)); err != nil {
		t.Fatal(err)
	}
	if want := cfg.Steps * 3 * 10; checked != want {
		t.Errorf("%d values were checked, want %d", checked, want)
	}
}

func TestCallsAreCounted(t *testing.T) {
	b := newToyB(5)
	cfg := DefaultSampler()
	cfg.Members, cfg.Draws = 1, 0
	for _, tt := range []struct {
		name    string
		sampler Sampler
		steps   int
		want    int // calls, one of them for the expectation
	}{
		{"iterative", IterativeConditioning, 20, 20},
		{"recursive", RecursiveJump, 20, 20 + 13 + 6},
		{"resampling", ResamplingInpainting, 50, 90},
	} {
		cfg.Steps = tt.steps
		drawn, err := tt.sampler(context.Background(), b.denoise, b.problem(), cfg, noise.New(1))
		if err != nil {
			t.Fatal(err)
		}
		if drawn.Calls != tt.want+1 {
			t.Errorf("%s: %d calls, want %d", tt.name, drawn.Calls, tt.want+1)
		}
	}
	cfg.Length = cfg.Every
	if _, err := ResamplingInpainting(context.Background(), b.denoise, b.problem(), cfg, noise.New(1)); err == nil {
		t.Error("a jump as long as the distance between jumps was accepted")
	}
}
