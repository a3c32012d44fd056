package impute

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/train"
)

// lossGradient returns the gradient of the loss with respect to an answer of
// the network, [items, planes, side, side].
func lossGradient(t *testing.T, shop *Workshop, beta float64, answer, target, weight []float32, dims ...int) []float32 {
	t.Helper()
	one := slices.Clone(dims)
	one[1] = 1
	in := []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(answer, dims...),
		tensors.FromFlatDataAndDimensions(target, one...),
		tensors.FromFlatDataAndDimensions(weight, one...),
	}
	defer release(in...)
	p, err := engine.Compile(shop.backend, "gradient of the loss", func(g *graph.Graph) []*graph.Node {
		a, y, w := graph.Parameter(g, "a", in[0].Shape()), graph.Parameter(g, "y", in[1].Shape()), graph.Parameter(g, "w", in[2].Shape())
		return graph.Gradient(pointLoss(a, y, w, graph.OnesLike(w), beta), a)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(in...)
	if err != nil {
		t.Fatal(err)
	}
	defer release(out...)
	return tensors.MustCopyFlatData[float32](out[0])
}

func TestTheLossPullsOnTheQueryOnly(t *testing.T) {
	shop := newShop(t, 1)
	const items, side = 2, 8
	for _, planes := range []int{1, 2} {
		r := rand.New(rand.NewPCG(1, 2))
		answer := make([]float32, items*planes*side*side)
		for i := range answer {
			answer[i] = float32(r.NormFloat64())
		}
		target, weight := make([]float32, items*side*side), make([]float32, items*side*side)
		for i := range target {
			target[i] = float32(r.NormFloat64())
			if r.IntN(3) == 0 {
				weight[i] = 1
			}
		}
		got := lossGradient(t, shop, 0.5, answer, target, weight, items, planes, side, side)
		for i, g := range got {
			item, cell := i/(planes*side*side), i%(side*side)
			if on := weight[item*side*side+cell] == 1; on != (g != 0) {
				t.Fatalf("%d planes: gradient %v at a cell that is on the query: %v", planes, g, on)
			}
		}
	}
}

// The expectation of the squared gradient of a summed squared error at a cell
// is four times the probability that the cell is asked times its squared error.
func TestTheSquaredGradientIsFourTimesTheQueryProbability(t *testing.T) {
	shop := newShop(t, 1)
	const items, side = 4000, 4
	r := rand.New(rand.NewPCG(3, 4))
	answer := make([]float32, items*side*side)
	target, weight := make([]float32, len(answer)), make([]float32, len(answer))
	probability := func(cell int) float64 { return 0.05 + 0.9*float64(cell)/(side*side-1) }
	asked, squared := 0.0, make([]float64, side*side)
	for i := range answer {
		target[i] = float32(r.NormFloat64())
		if r.Float64() < probability(i%(side*side)) {
			weight[i] = 1
			asked++
		}
	}
	for i, g := range lossGradient(t, shop, 0, answer, target, weight, items, 1, side, side) {
		sum := float64(g) * asked // of a sum, not of a mean
		squared[i%(side*side)] += sum * sum / items
	}
	var xy, xx float64
	for cell, g := range squared {
		xy += probability(cell) * g
		xx += probability(cell) * probability(cell)
	}
	if slope := xy / xx; math.Abs(slope-4) > 0.05*4 {
		t.Errorf("slope is %.3f, want 4 within 5 %%", slope)
	}
}

func weightsOf(t *testing.T, shop *Workshop, s gaussianSea, cfg TrainConfig, hooks Hooks[*Model]) []float32 {
	t.Helper()
	m, src := s.lessonsOf(t, 1)
	model, _, err := Train(context.Background(), shop, m, src, cfg, hooks)
	if err != nil {
		t.Fatal(err)
	}
	return model.operand.weights
}

func TestTheNumberOfGoroutinesDoesNotMatter(t *testing.T) {
	shop := newShop(t, 1)
	s := newGaussianSea(t, seaConfig{side: 16, days: 12, length: 3, memory: 0.8, seed: 1})
	cfg := tinyConfig(16)
	cfg.Flip = true
	cfg.Workers = 1
	want := weightsOf(t, shop, s, cfg, Hooks[*Model]{})
	cfg.Workers, cfg.CacheMB = 5, 0
	if !slices.Equal(weightsOf(t, shop, s, cfg, Hooks[*Model]{}), want) {
		t.Error("five goroutines give other weights than one")
	}
	cfg.Seed = 2
	if slices.Equal(weightsOf(t, shop, s, cfg, Hooks[*Model]{}), want) {
		t.Error("another seed gives the same weights")
	}
}

func TestACancelledRunGoesOnAsIfItHadNotStopped(t *testing.T) {
	shop := newShop(t, 1)
	s := newGaussianSea(t, seaConfig{side: 16, days: 12, length: 3, memory: 0.8, seed: 1})
	cfg := tinyConfig(16)
	want := weightsOf(t, shop, s, cfg, Hooks[*Model]{})

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hooks := Hooks[*Model]{Checkpoint: filepath.Join(t.TempDir(), "run"), Progress: func(p Progress) {
		if p.Step == 3 {
			cancel()
		}
	}}
	m, src := s.lessonsOf(t, 1)
	if _, _, err := Train(ctx, shop, m, src, cfg, hooks); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled training returns %v", err)
	}
	hooks.Progress = nil
	model, report, err := Train(context.Background(), shop, m, src, cfg, hooks)
	if err != nil {
		t.Fatal(err)
	}
	if report.Resumed < 3 || report.Steps != cfg.Steps {
		t.Errorf("report is %+v, want a run that went on after step 3", report)
	}
	if !slices.Equal(model.operand.weights, want) {
		t.Error("the interrupted run ends with other weights")
	}

	cfg.Beta = 0
	if _, _, err := Train(context.Background(), shop, m, src, cfg, hooks); err == nil {
		t.Error("a checkpoint of other settings was accepted")
	}
}

func TestALossThatBlowsUpLeavesTheLastGoodState(t *testing.T) {
	shop := newShop(t, 1)
	s := newGaussianSea(t, seaConfig{side: 16, days: 12, length: 3, memory: 0.8, seed: 1})
	cfg := tinyConfig(16)
	m, src := s.lessonsOf(t, 1)
	path := filepath.Join(t.TempDir(), "run")
	_, _, err := Train(context.Background(), shop, m, poisoned{src, uint64(5 * cfg.Batch), s}, cfg, Hooks[*Model]{Checkpoint: path})
	if !errors.Is(err, train.ErrNotFinite) {
		t.Fatalf("training on infinite values returns %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	_, report, err := Train(context.Background(), shop, m, src, cfg, Hooks[*Model]{Checkpoint: path})
	if err != nil || report.Resumed != 5 {
		t.Errorf("going on gives %v after %d steps, want none after 5", err, report.Resumed)
	}
}

// poisoned makes the days infinite from a lesson on.
type poisoned struct {
	Source
	from uint64
	sea  gaussianSea
}

func (p poisoned) Lesson(ctx context.Context, n uint64) (Lesson, error) {
	l, err := p.Source.Lesson(ctx, n)
	if n >= p.from {
		l.Context = make([]bool, len(l.Context))
		for i := range l.Context {
			l.Context[i] = true // gaps, which are NaN, as if they had been seen
		}
	}
	return l, err
}

func TestPatienceKeepsTheBestNetwork(t *testing.T) {
	shop := newShop(t, 1)
	s := newGaussianSea(t, seaConfig{side: 16, days: 12, length: 3, memory: 0.8, seed: 1})
	cfg := tinyConfig(16)
	var best string
	asked := 0
	hooks := Hooks[*Model]{ScoreEvery: 1, Patience: 2, Score: func(_ context.Context, m *Model) (float64, error) {
		asked++
		if asked == 3 {
			best = m.Fingerprint()
			return 1, nil
		}
		return 2, nil
	}}
	m, src := s.lessonsOf(t, 1)
	model, report, err := Train(context.Background(), shop, m, src, cfg, hooks)
	if err != nil {
		t.Fatal(err)
	}
	if model.Fingerprint() != best || report.ScoreStep != 3 || report.Steps != 5 || !report.Stopped {
		t.Errorf("report is %+v, want the network of step 3 after a stop at step 5", report)
	}
}

// kriging returns the conditional mean of a Gaussian sea given its visible
// cells: no method can be better.
func (s gaussianSea) kriging(truth []float32, visible []bool) []float64 {
	var seen []int
	for i, v := range visible {
		if v {
			seen = append(seen, i)
		}
	}
	c, y := mat.NewSymDense(len(seen), nil), mat.NewVecDense(len(seen), nil)
	for a, i := range seen {
		y.SetVec(a, float64(truth[i]))
		for b := a; b < len(seen); b++ {
			c.SetSym(a, b, s.covariance.At(i, seen[b]))
		}
	}
	var root mat.Cholesky
	root.Factorize(c)
	var w mat.VecDense
	if err := root.SolveVecTo(&w, y); err != nil {
		panic(err)
	}
	out := make([]float64, len(truth))
	for i := range out {
		for a, j := range seen {
			out[i] += s.covariance.At(i, j) * w.AtVec(a)
		}
	}
	return out
}

// The claim of 10 % needs a longer training than a test may take; imputebench
// makes it. Here the network must have understood what interpolation is.
func TestGapsOfAGaussianSeaAreFilledNearlyAsByKriging(t *testing.T) {
	shop := newShop(t, 8)
	s := newGaussianSea(t, seaConfig{side: 16, days: 400, length: 3, memory: 0, seed: 1})
	cfg := tinyConfig(16)
	cfg.Design.Extras, cfg.Clean, cfg.Steps, cfg.Batch, cfg.LearningRate = Extras{}, 1, 220, 8, 5e-3
	m, src := s.lessonsOf(t, 1)
	model := trained(t, shop, m, src, cfg)

	test := newGaussianSea(t, seaConfig{side: 16, days: 24, length: 3, memory: 0, seed: 2})
	scaling := m.Train.Scaling()
	var ours, exact, variance, count, inside float64
	for day, truth := range test.truth {
		in := Inputs{Height: 16, Width: 16, Values: scaling.Normalised(truth), Sea: test.series.Sea, Visible: make([]bool, len(truth))}
		for i, v := range test.series.Days[day].Values {
			in.Visible[i] = v == v // not NaN
		}
		p := predictOne(t, model, in)
		best := test.kriging(truth, in.Visible)
		for i, visible := range in.Visible {
			if visible {
				continue
			}
			miss := float64(scaling.Inverse(p.Mean[i], i) - truth[i])
			ours += miss * miss
			exact += (best[i] - float64(truth[i])) * (best[i] - float64(truth[i]))
			variance += float64(truth[i]) * float64(truth[i])
			if math.Abs(miss) < 1.645*float64(p.Sigma[i])*scaling.Std {
				inside++
			}
			count++
		}
	}
	t.Logf("mean squared error %.3f, kriging %.3f, variance %.3f; 90 %% intervals cover %.2f", ours/count, exact/count, variance/count, inside/count)
	if ours > exact+0.3*(variance-exact) {
		t.Errorf("mean squared error is %.3f, of which kriging leaves %.3f and doing nothing %.3f", ours/count, exact/count, variance/count)
	}
	if c := inside / count; c < 0.75 || c > 0.99 {
		t.Errorf("90 %% intervals cover %.2f", c)
	}
}
