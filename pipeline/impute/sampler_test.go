package impute

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/noise"
)

// Toy B: a Gaussian field of 24 cells on a line with ten of them observed, for
// which the exact denoiser is a formula.
type toyB struct {
	covariance *mat.SymDense
	truth      []float32
	visible    []bool
}

const toyCells = 24

func newToyB(seed uint64) toyB {
	b := toyB{covariance: mat.NewSymDense(toyCells, nil), truth: make([]float32, toyCells), visible: make([]bool, toyCells)}
	for i := range toyCells {
		for j := i; j < toyCells; j++ {
			h := float64(i-j) / 4
			c := math.Exp(-h * h / 2)
			if i == j {
				c += 1e-4
			}
			b.covariance.SetSym(i, j, c)
		}
	}
	for _, i := range []int{0, 1, 2, 3, 4, 15, 16, 17, 18, 23} {
		b.visible[i] = true
	}
	var root mat.Cholesky
	root.Factorize(b.covariance)
	var lower mat.TriDense
	root.LTo(&lower)
	white := make([]float32, toyCells)
	noise.New(seed, "toy").Normals(white, 0)
	for i := range b.truth {
		for j := range i + 1 {
			b.truth[i] += float32(lower.At(i, j)) * white[j]
		}
	}
	return b
}

// given returns the mean and the covariance of the field given the cells of
// mask at noise level t.
func (b toyB) given(t float32, x []float32, mask []bool) ([]float32, *mat.Dense) {
	alpha32, sigma32 := alphaSigma(t)
	alpha, sigma := float64(alpha32), float64(sigma32)
	var at []int
	for i, m := range mask {
		if m {
			at = append(at, i)
		}
	}
	mean, left := make([]float32, toyCells), mat.DenseCopyOf(b.covariance)
	if len(at) == 0 {
		return mean, left
	}
	c, k, y := mat.NewSymDense(len(at), nil), mat.NewDense(len(at), toyCells, nil), mat.NewVecDense(len(at), nil)
	for p, i := range at {
		y.SetVec(p, float64(x[i]))
		for q := p; q < len(at); q++ {
			c.SetSym(p, q, alpha*alpha*b.covariance.At(i, at[q]))
		}
		c.SetSym(p, p, c.At(p, p)+sigma*sigma)
		for j := range toyCells {
			k.Set(p, j, alpha*b.covariance.At(i, j))
		}
	}
	var root mat.Cholesky
	if !root.Factorize(c) {
		panic("toy covariance is singular")
	}
	var w mat.VecDense
	if err := root.SolveVecTo(&w, y); err != nil {
		panic(err)
	}
	var gain, explained mat.Dense
	if err := root.SolveTo(&gain, k); err != nil {
		panic(err)
	}
	explained.Mul(k.T(), &gain)
	left.Sub(left, &explained)
	for j := range mean {
		for p := range at {
			mean[j] += float32(k.At(p, j) * w.AtVec(p))
		}
	}
	return mean, left
}

func (b toyB) denoise(_ context.Context, t float32, x [][]float32, mask [][]bool) ([][]float32, error) {
	out := make([][]float32, len(x))
	for m := range x {
		out[m], _ = b.given(t, x[m], mask[m])
	}
	return out, nil
}

// Within drops each visible cell with probability 0.2.
func (b toyB) Within(s noise.Stream) []bool {
	out := b.Anywhere(s)
	for i, v := range b.visible {
		out[i] = v && out[i]
	}
	return out
}

// Anywhere keeps each cell with probability 0.8.
func (b toyB) Anywhere(s noise.Stream) []bool {
	r := s.Rand(0)
	out := make([]bool, toyCells)
	for i := range out {
		out[i] = r.Float64() < 0.8
	}
	return out
}

func (b toyB) problem() Problem {
	sea := make([]bool, toyCells)
	for i := range sea {
		sea[i] = true
	}
	return Problem{Observed: b.truth, Visible: b.visible, Sea: sea, Contexts: b}
}

// verdict compares ensembles with the posterior, over fields.
type verdict struct{ off, size, drawn, exact float64 }

// meanError is how far the means of ensembles are from the posterior's, as a
// share of its magnitude.
func (v verdict) meanError() float64 { return math.Sqrt(v.off / v.size) }

// spread is that of the members over the posterior's.
func (v verdict) spread() float64 { return math.Sqrt(v.drawn / v.exact) }

func (v *verdict) add(b toyB, members [][]float32) {
	posterior, left := b.given(0, b.truth, b.visible)
	for i, visible := range b.visible {
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
	want, _ := b.given(0, b.truth, b.visible)
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
		if b.visible[i] {
			w = b.truth[i]
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
		alpha, sigma := alphaSigma(at)
		k := 0
		for _, member := range x {
			for i, visible := range b.visible {
				if !visible {
					continue
				}
				eps := (member[i] - alpha*b.truth[i]) / sigma
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
		want    int // and one for the expectation
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
		t.Error("a jump as long as the way between jumps was accepted")
	}
}

func TestAJumpHasTheVarianceOfItsTime(t *testing.T) {
	const n = 200_000
	for _, jump := range []struct{ from, to float32 }{{0, 0.3}, {0.2, 0.7}, {0.5, 1}} {
		x, eps := make([]float32, n), make([]float32, n)
		noise.New(1, "x").Normals(x, 0)
		noise.New(1, "eps").Normals(eps, 0)
		const clean = 1.5
		alpha, sigma := alphaSigma(jump.from)
		for i := range x {
			x[i] = alpha*clean + sigma*x[i]
		}
		renoise(x, eps, jump.from, jump.to)
		var sum, squares float64
		for _, v := range x {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		alpha, sigma = alphaSigma(jump.to)
		mean, variance := sum/n, squares/n-sum/n*sum/n
		if math.Abs(mean-clean*float64(alpha)) > 0.01 || math.Abs(variance-float64(sigma*sigma)) > 0.01 {
			t.Errorf("from %v to %v: mean %.3f and variance %.3f, want %.3f and %.3f", jump.from, jump.to, mean, variance, clean*alpha, sigma*sigma)
		}
	}
}
