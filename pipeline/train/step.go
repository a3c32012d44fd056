package train

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/nn"
)

// ErrNotFinite marks a step whose loss or gradient was NaN or infinite. The
// state is that of the step before.
var ErrNotFinite = errors.New("not finite")

// errNoWeights is the answer of a Step that was not given a state.
var errNoWeights = errors.New("training has no weights; call Start or Restore first")

// A Loss adds the loss of one batch to a graph and returns it as a float32
// scalar. It applies its network with the weights it is given.
type Loss func(w nn.Weights, batch []*Node) *Node

// Metrics are the figures of one step.
type Metrics struct {
	Step         int     // how many steps the weights have now seen
	Loss         float64 // before the update
	GradientNorm float64 // before clipping
}

// A Step trains the weights of a layout. It is not safe for concurrent use, except
// that it may be compiled ahead of its first Run, which waits for that.
type Step struct {
	cfg     Config
	backend backends.Backend
	layout  *nn.Layout
	loss    Loss

	compiling sync.Mutex                 // guards programs
	programs  map[string]*engine.Program // key: shapes of the batch
	done      int
	state     []*tensors.Tensor // weights, ema, mean, variance: a list of parts each; once a device
}

// NewStep returns a Step without weights: Start or Restore gives it some.
// Nothing is compiled before the first Run or Compile.
func NewStep(b backends.Backend, layout *nn.Layout, cfg Config, loss Loss) (*Step, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("train config: %w", err)
	}
	return &Step{cfg: cfg, backend: b, layout: layout, loss: loss, programs: map[string]*engine.Program{}}, nil
}

// Start sets the state to step 0 with the given weights.
func (s *Step) Start(weights []float32) error {
	if len(weights) != s.layout.Size {
		return fmt.Errorf("start training: %d weights, the network has %d", len(weights), s.layout.Size)
	}
	zero := make([]float32, len(weights))
	return s.Restore(&State{Weights: weights, EMA: weights, Mean: zero, Variance: zero})
}

// Run does one step on a batch. A batch of new shapes compiles a new program,
// which takes seconds; the state is shared by all of them.
func (s *Step) Run(batch ...*tensors.Tensor) (Metrics, error) {
	if s.state == nil {
		return Metrics{}, errNoWeights
	}
	program, err := s.program(batch)
	if err != nil {
		return Metrics{}, err
	}
	inputs, temporary, err := s.inputs(batch)
	if err != nil {
		return Metrics{}, fmt.Errorf("step %d: %w", s.done, err)
	}
	defer release(temporary)
	out, err := program.Run(inputs...)
	if err != nil {
		return Metrics{}, fmt.Errorf("step %d: %w", s.done, err)
	}
	metrics, state := s.outputs(out)
	defer release(metrics)
	told, err := tensors.CopyFlatData[float32](metrics[0])
	if err != nil {
		release(state)
		return Metrics{}, fmt.Errorf("step %d: read the loss: %w", s.done, err)
	}
	m := Metrics{Step: s.done, Loss: float64(told[0]), GradientNorm: float64(told[1])}
	// A NaN anywhere in the gradient makes its norm NaN, so two checks are enough.
	if !finite(m.Loss) || !finite(m.GradientNorm) {
		release(state)
		return m, fmt.Errorf("step %d: loss %v, gradient norm %v: %w", s.done, m.Loss, m.GradientNorm, ErrNotFinite)
	}
	release(s.state)
	s.state = state
	s.done++
	m.Step = s.done
	return m, nil
}

// Compile makes Run ready for batches of these shapes.
func (s *Step) Compile(batch ...*tensors.Tensor) error {
	_, err := s.program(batch)
	return err
}

// Compiled returns how many programs there are, one for batches of the same shapes.
func (s *Step) Compiled() int {
	s.compiling.Lock()
	defer s.compiling.Unlock()
	return len(s.programs)
}

// Close frees the memory that the step holds in its engine.
func (s *Step) Close() {
	release(s.state)
	s.state = nil
	for _, p := range s.programs {
		p.Close()
	}
	clear(s.programs)
}

func (s *Step) program(batch []*tensors.Tensor) (*engine.Program, error) {
	shape, err := s.share(batch)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(shape)
	s.compiling.Lock()
	defer s.compiling.Unlock()
	if p, ok := s.programs[key]; ok {
		return p, nil
	}
	p, err := s.compile(func(g *Graph) []*Node { return s.build(g, shape) })
	if err != nil {
		return nil, err
	}
	s.programs[key] = p
	return p, nil
}

// build adds one training step to g. The inputs are the step's rates [3], the
// state and the batch; the outputs are loss and gradient norm [2] and the new
// state.
func (s *Step) build(g *Graph, batch []shapes.Shape) []*Node {
	r := ratesOf(g)
	parts := s.parts()
	kinds := make([][]*Node, stateKinds)
	for k := range kinds {
		for i, p := range parts {
			name := fmt.Sprintf("state_%d_%d", k, i)
			kinds[k] = append(kinds[k], Parameter(g, name, shapes.Make(dtypes.Float32, p.size())))
		}
	}
	inputs := make([]*Node, len(batch))
	for i, shape := range batch {
		inputs[i] = Parameter(g, fmt.Sprintf("batch_%d", i), shape)
	}

	pieces := cut(parts, kinds[0])
	loss := s.loss(nn.WithDType(pieces, s.cfg.dtype()), inputs)
	loss.AssertScalar()
	gradients := pieces.join(parts, Gradient(loss, pieces.nodes...))
	loss, gradients = s.agree(loss, gradients)
	norm, factor := clip(gradients, s.cfg.ClipNorm)

	out := make([][]*Node, stateKinds)
	for i, gradient := range gradients {
		m := moments{kinds[0][i], kinds[1][i], kinds[2][i], kinds[3][i]}.update(gradient, factor, r)
		for k, node := range []*Node{m.weights, m.ema, m.mean, m.variance} {
			out[k] = append(out[k], node)
		}
	}
	all := []*Node{Concatenate([]*Node{Reshape(loss, 1), Reshape(norm, 1)}, 0)}
	for _, nodes := range out {
		all = append(all, nodes...)
	}
	return all
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func release(ts []*tensors.Tensor) {
	for _, t := range ts {
		t.FinalizeAll()
	}
}
