package learn

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/train"
)

// lossGradient returns the gradient of the loss with respect to an answer of
// the network, [items, planes, side, side].
func lossGradient(t *testing.T, tr *Trainer, beta float64, answer, target, weight []float32, dims ...int) []float32 {
	t.Helper()
	return newLossGradient(t, tr, beta, dims...).at(t, answer, target, weight)
}

// A lossProgram computes gradients of the loss.
type lossProgram struct {
	program *engine.Program
	dims    []int // dimensions of answers; targets and weights have one plane
}

func newLossGradient(t *testing.T, tr *Trainer, beta float64, dims ...int) lossProgram {
	t.Helper()
	l := lossProgram{dims: dims}
	one := []int{dims[0], 1, dims[2], dims[3]}
	p, err := engine.Compile(tr.runner.Backend(), "gradient of the loss", func(g *graph.Graph) []*graph.Node {
		parameter := func(name string, dims []int) *graph.Node {
			return graph.Parameter(g, name, shapes.Make(dtypes.Float32, dims...))
		}
		a, y, w := parameter("a", dims), parameter("y", one), parameter("w", one)
		return graph.Gradient(pointLoss(a, y, w, beta), a)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	l.program = p
	return l
}

func (l lossProgram) at(t *testing.T, answer, target, weight []float32) []float32 {
	t.Helper()
	one := []int{l.dims[0], 1, l.dims[2], l.dims[3]}
	in := []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(answer, l.dims...),
		tensors.FromFlatDataAndDimensions(target, one...),
		tensors.FromFlatDataAndDimensions(weight, one...),
	}
	defer release(in...)
	out, err := l.program.Run(in...)
	if err != nil {
		t.Fatal(err)
	}
	defer release(out...)
	return tensors.MustCopyFlatData[float32](out[0])
}

func release(ts ...*tensors.Tensor) {
	for _, t := range ts {
		t.FinalizeAll()
	}
}

func TestTheLossPullsOnTheQueryOnly(t *testing.T) {
	tr := newTrainer(t, 1)
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
		got := lossGradient(t, tr, 0.5, answer, target, weight, items, planes, side, side)
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
	tr := newTrainer(t, 1)
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
	for i, g := range lossGradient(t, tr, 0, answer, target, weight, items, 1, side, side) {
		sum := float64(g) * asked // gradient of a sum, not of a mean
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

func weightsOf(t *testing.T, tr *Trainer, s gaussianSea, cfg Config, hooks train.Hooks) []float32 {
	t.Helper()
	m, src := s.examplesOf(t, 1)
	model, _, err := tr.Train(context.Background(), m, src, cfg, hooks)
	if err != nil {
		t.Fatal(err)
	}
	return tensors.MustCopyFlatData[float32](model.Vector())
}

func TestTheNumberOfGoroutinesDoesNotMatter(t *testing.T) {
	tr := newTrainer(t, 1)
	s := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 12, Length: 3, Memory: 0.8, Seed: 1})
	cfg := tinyConfig(16)
	cfg.Flip = true
	cfg.Workers = 1
	want := weightsOf(t, tr, s, cfg, train.Hooks{})
	cfg.Workers, cfg.CacheMB = 5, 0
	if !slices.Equal(weightsOf(t, tr, s, cfg, train.Hooks{}), want) {
		t.Error("five goroutines give other weights than one")
	}
	cfg.Seed = 2
	if slices.Equal(weightsOf(t, tr, s, cfg, train.Hooks{}), want) {
		t.Error("another seed gives the same weights")
	}
}

func TestACancelledRunGoesOnAsIfItHadNotStopped(t *testing.T) {
	tr := newTrainer(t, 1)
	s := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 12, Length: 3, Memory: 0.8, Seed: 1})
	cfg := tinyConfig(16)
	want := weightsOf(t, tr, s, cfg, train.Hooks{})

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hooks := train.Hooks{Checkpoint: filepath.Join(t.TempDir(), "run"), Progress: func(p train.Progress) {
		if p.Step == 3 {
			cancel()
		}
	}}
	m, src := s.examplesOf(t, 1)
	if _, _, err := tr.Train(ctx, m, src, cfg, hooks); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled training returns %v", err)
	}
	hooks.Progress = nil
	model, report, err := tr.Train(context.Background(), m, src, cfg, hooks)
	if err != nil {
		t.Fatal(err)
	}
	if report.Resumed < 3 || report.Steps != cfg.Steps {
		t.Errorf("report is %+v, want a run that went on after step 3", report)
	}
	if !slices.Equal(tensors.MustCopyFlatData[float32](model.Vector()), want) {
		t.Error("the interrupted run ends with other weights")
	}

	cfg.Beta = 0
	if _, _, err := tr.Train(context.Background(), m, src, cfg, hooks); err == nil {
		t.Error("a checkpoint of other settings was accepted")
	}
}

func TestALossThatBlowsUpLeavesTheLastGoodState(t *testing.T) {
	tr := newTrainer(t, 1)
	s := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 12, Length: 3, Memory: 0.8, Seed: 1})
	cfg := tinyConfig(16)
	m, src := s.examplesOf(t, 1)
	path := filepath.Join(t.TempDir(), "run")
	_, _, err := tr.Train(context.Background(), m, poisoned{src, uint64(5 * cfg.Batch), s}, cfg, train.Hooks{Checkpoint: path})
	if !errors.Is(err, train.ErrNotFinite) {
		t.Fatalf("training on infinite values returns %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	_, report, err := tr.Train(context.Background(), m, src, cfg, train.Hooks{Checkpoint: path})
	if err != nil || report.Resumed != 5 {
		t.Errorf("going on gives %v after %d steps, want none after 5", err, report.Resumed)
	}
}

// poisoned makes the days infinite from an example on.
type poisoned struct {
	Source
	from uint64
	sea  gaussianSea
}

func (p poisoned) Example(ctx context.Context, n uint64) (Example, error) {
	l, err := p.Source.Example(ctx, n)
	if n >= p.from {
		l.Context = make([]bool, len(l.Context))
		for i := range l.Context {
			l.Context[i] = true // gaps, which are NaN, as if they had been seen
		}
	}
	return l, err
}
