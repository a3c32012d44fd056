package train

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
)

// problem is a network with a batch to learn.
type problem struct {
	engine  *engine.Engine
	network nn.Network
	batch   []*tensors.Tensor // a tensor belongs to one engine once it was used there
}

// newProblem returns the tiny network of a backbone and a batch of images whose
// targets are smooth functions of the inputs.
func newProblem(t testing.TB, backbone string) problem {
	t.Helper()
	n, err := nn.New(nn.Config{Backbone: backbone, Size: nn.Tiny, In: 2, Out: 1})
	if err != nil {
		t.Fatal(err)
	}
	const items, side = 2, 16
	x, y := make([]float32, items*2*side*side), make([]float32, items*side*side)
	noise.New(1, "x").Normals(x, 0)
	for i := range y {
		item, pixel := i/(side*side), i%(side*side)
		y[i] = float32(math.Sin(float64(pixel%side)/3+float64(item))) + 0.3*x[item*2*side*side+pixel]
	}
	return problem{engine: enginetest.OpenThreads(t, 1), network: n, batch: []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(x, items, 2, side, side),
		tensors.FromFlatDataAndDimensions([]float32{0.1, 0.7}, items),
		tensors.FromFlatDataAndDimensions(y, items, 1, side, side),
	}}
}

func (l problem) loss(w nn.Weights, batch []*Node) *Node {
	return ReduceAllMean(Square(Sub(l.network.Apply(w, batch[0], batch[1]), batch[2])))
}

func (l problem) start(t testing.TB, cfg Config) *Step {
	t.Helper()
	s, err := NewStep(l.engine, l.network.Layout(), cfg, l.loss)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Start(l.network.Layout().Init(1)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (l problem) run(t testing.TB, s *Step, steps int) Metrics {
	t.Helper()
	var m Metrics
	for range steps {
		var err error
		if m, err = s.Run(l.batch...); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func state(t testing.TB, s *Step) *State {
	t.Helper()
	st, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestOneBatchIsLearnedByHeart(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	for _, backbone := range []string{nn.BackboneUNet, nn.BackboneViT} {
		t.Run(backbone, func(t *testing.T) {
			l := newProblem(t, backbone)
			cfg := DefaultConfig()
			cfg.LearningRate, cfg.WarmupSteps, cfg.Steps = 3e-3, 10, 300
			s := l.start(t, cfg)
			var m Metrics
			for m.Step < cfg.Steps && (m.Step == 0 || m.Loss >= 1e-3) {
				m = l.run(t, s, 1)
			}
			if m.Loss >= 1e-3 {
				t.Errorf("loss is %g after %d steps, want less than 0.001", m.Loss, m.Step)
			}
			t.Logf("loss %g after %d steps", m.Loss, m.Step)
		})
	}
}

func TestSameSeedGivesTheSameBytes(t *testing.T) {
	l := newProblem(t, nn.BackboneUNet)
	l.engine = enginetest.OpenThreads(t, 2) // threads must not race for the order of a sum
	var first *State
	for range 2 {
		s := l.start(t, DefaultConfig())
		l.run(t, s, 20)
		st := state(t, s)
		if first == nil {
			first = st
			continue
		}
		if !equal(first, st) {
			t.Error("two runs of 20 steps differ")
		}
	}
}

func TestInterruptedRunGoesOnAsIfItHadNotBeen(t *testing.T) {
	l := newProblem(t, nn.BackboneViT)
	whole := l.start(t, DefaultConfig())
	l.run(t, whole, 12)

	half := l.start(t, DefaultConfig())
	l.run(t, half, 7)
	var file bytes.Buffer
	if err := state(t, half).encode(&file, l.network.Layout()); err != nil {
		t.Fatal(err)
	}
	saved, err := decodeState(&file, l.network.Layout())
	if err != nil {
		t.Fatal(err)
	}
	rest := l.start(t, DefaultConfig())
	if err := rest.Restore(saved); err != nil {
		t.Fatal(err)
	}
	l.run(t, rest, 5)
	if !equal(state(t, whole), state(t, rest)) {
		t.Error("a run that was saved and restored differs from one that was not")
	}
}

func TestSplitStateLearnsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	l := newProblem(t, nn.BackboneUNet)
	cfg := DefaultConfig()
	flat := l.start(t, cfg)
	cfg.Split = true
	split := l.start(t, cfg)
	l.run(t, flat, 5)
	l.run(t, split, 5)
	a, b := state(t, flat), state(t, split)
	for i := range a.Weights {
		// The norm of the gradient is summed in another order.
		if d := math.Abs(float64(a.Weights[i] - b.Weights[i])); d > 2e-5 {
			t.Fatalf("weight %d is %g in one vector and %g in its own", i, a.Weights[i], b.Weights[i])
		}
	}
}

func TestStateSurvivesALossThatIsNotFinite(t *testing.T) {
	l := newProblem(t, nn.BackboneUNet)
	s := l.start(t, DefaultConfig())
	l.run(t, s, 2)
	before := state(t, s)
	bad := slices.Clone(l.batch)
	y, err := tensors.CopyFlatData[float32](l.batch[2])
	if err != nil {
		t.Fatal(err)
	}
	y[17] = float32(math.NaN())
	bad[2] = tensors.FromFlatDataAndDimensions(y, l.batch[2].Shape().Dimensions...)
	if _, err := s.Run(bad...); !errors.Is(err, ErrNotFinite) {
		t.Fatalf("a NaN in the batch gives %v, want %v", err, ErrNotFinite)
	}
	if !equal(before, state(t, s)) {
		t.Error("a step that was refused changed the state")
	}
	if m := l.run(t, s, 1); m.Step != 3 || math.IsNaN(m.Loss) {
		t.Errorf("the step after a refused one is %+v, want step 3", m)
	}
}

func TestPanicOfGraphCodeIsAnError(t *testing.T) {
	l := newProblem(t, nn.BackboneUNet)
	s, err := NewStep(l.engine, l.network.Layout(), DefaultConfig(), func(w nn.Weights, batch []*Node) *Node {
		return l.network.Apply(w, batch[2], batch[1]) // one channel, not two
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(l.network.Layout().Init(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(l.batch...); err == nil || !strings.Contains(err.Error(), "compile training step") {
		t.Errorf("a network applied to the wrong image gives %v", err)
	}
}

func TestStateOfAnotherNetworkIsRefused(t *testing.T) {
	l := newProblem(t, nn.BackboneUNet)
	s := l.start(t, DefaultConfig())
	st := state(t, s)
	st.Mean = st.Mean[1:]
	if err := s.Restore(st); err == nil {
		t.Error("a state that is one number short was accepted")
	}
	if err := s.Start(make([]float32, 3)); err == nil {
		t.Error("three weights were accepted")
	}
}

func equal(a, b *State) bool {
	same := a.Step == b.Step
	va, vb := a.vectors(), b.vectors()
	for k := range va {
		same = same && slices.Equal(*va[k], *vb[k])
	}
	return same
}
