package impute

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/nn"
)

// RunnerConfig holds the settings of a Runner.
type RunnerConfig struct {
	// Batch is how many windows go through a network at a time. A smaller
	// batch is padded: one compiled program then serves all, and an answer
	// does not depend on the other windows of its batch.
	Batch int `json:"batch" yaml:"batch"`
	// BFloat16 predicts in bfloat16. Training is not affected.
	BFloat16 bool `json:"bfloat16" yaml:"bfloat16"`
	// Shared gives weights to programs as an input, so that all networks of a
	// design share one program. Without it they are constants, which ONNX Runtime
	// can rearrange once and run faster.
	Shared bool `json:"shared" yaml:"shared"`
}

// DefaultRunner returns the settings for a processor: windows one after the
// other keep all its cores busy.
func DefaultRunner() RunnerConfig { return RunnerConfig{Batch: 1} }

// A Runner compiles the programs of networks on one backend and keeps them,
// because compiling takes longer than most runs. It is safe for concurrent use; one
// program runs at a time.
type Runner struct {
	backend backends.Backend
	cfg     RunnerConfig

	mu       sync.Mutex // held while anything compiles or runs a prediction
	programs map[string]*engine.Program
}

// NewRunner returns a runner that has compiled nothing yet.
func NewRunner(b backends.Backend, cfg RunnerConfig) (*Runner, error) {
	if cfg.Batch < 1 {
		return nil, fmt.Errorf("network runner: batch is %d, must be positive", cfg.Batch)
	}
	return &Runner{backend: b, cfg: cfg, programs: map[string]*engine.Program{}}, nil
}

// Backend returns the backend of the runner.
func (r *Runner) Backend() backends.Backend { return r.backend }

// Batch returns how many windows go through a network at a time.
func (r *Runner) Batch() int { return r.cfg.Batch }

// Close frees everything that was compiled.
func (r *Runner) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.programs {
		p.Close()
	}
	clear(r.programs)
}

// A loadedNetwork is a network with its weights, ready for a Runner.
type loadedNetwork struct {
	network     nn.Network
	config      nn.Config
	weights     []float32
	fingerprint string

	vector *tensors.Tensor // the weights as an input, made on first use
}

func newLoadedNetwork(cfg nn.Config, weights []float32) (*loadedNetwork, error) {
	network, err := nn.New(cfg)
	if err != nil {
		return nil, err
	}
	if len(weights) != network.Layout().Size {
		return nil, fmt.Errorf("the network has %d weights, a %s %s needs %d", len(weights), cfg.Size, cfg.Backbone, network.Layout().Size)
	}
	return &loadedNetwork{network: network, config: cfg, weights: weights, fingerprint: fingerprint(weights)}, nil
}

// fingerprint returns the sha256 of weights in hexadecimal.
func fingerprint(weights []float32) string {
	h := sha256.New()
	buffer := make([]byte, 0, 1<<16)
	for i, w := range weights {
		buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(w))
		if len(buffer) == cap(buffer) || i == len(weights)-1 {
			h.Write(buffer)
			buffer = buffer[:0]
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// tensor returns the weights as a vector that stays in the memory of the
// device for as long as the network does.
func (n *loadedNetwork) tensor() *tensors.Tensor {
	if n.vector == nil {
		n.vector = tensors.FromFlatDataAndDimensions(n.weights, len(n.weights))
	}
	return n.vector
}

// A body adds the computation of a network to a graph.
type body func(w nn.Weights, in []*graph.Node) []*graph.Node

// run applies a body to inputs and returns its only output. The name identifies
// the body; the inputs stay the caller's.
func (r *Runner) run(ctx context.Context, name string, o *loadedNetwork, b body, inputs ...*tensors.Tensor) ([]float32, error) {
	out, err := r.apply(ctx, name, o, b, inputs...)
	if err != nil {
		return nil, err
	}
	defer release(out...)
	return tensors.CopyFlatData[float32](out[0])
}

// apply is run for outputs that stay on the device until the caller releases them.
func (r *Runner) apply(ctx context.Context, name string, o *loadedNetwork, b body, inputs ...*tensors.Tensor) ([]*tensors.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.program(name, o, b, inputs)
	if err != nil {
		return nil, err
	}
	if r.cfg.Shared {
		inputs = append([]*tensors.Tensor{o.tensor()}, inputs...)
	}
	return p.Run(inputs...)
}

func (r *Runner) program(name string, o *loadedNetwork, b body, inputs []*tensors.Tensor) (*engine.Program, error) {
	key := fmt.Sprint(name, o.config)
	if !r.cfg.Shared {
		key += o.fingerprint
	}
	shape := make([]shapes.Shape, len(inputs))
	for i, t := range inputs {
		shape[i] = t.Shape()
		key += shape[i].String()
	}
	if p, ok := r.programs[key]; ok {
		return p, nil
	}
	backend := r.backend
	if !r.cfg.Shared {
		backend = engine.For(backend, cells(shape))
	}
	p, err := engine.Compile(backend, name, func(g *graph.Graph) []*graph.Node {
		var w nn.Weights
		if r.cfg.Shared {
			w = nn.Slices(graph.Parameter(g, "weights", shapes.Make(dtypes.Float32, len(o.weights))))
		} else {
			w = nn.Constants(g, o.weights)
		}
		in := make([]*graph.Node, len(shape))
		for i := range in {
			in[i] = graph.Parameter(g, fmt.Sprintf("input_%d", i), shape[i])
		}
		return b(computeIn(w, r.cfg.BFloat16), in)
	})
	if err != nil {
		return nil, err
	}
	r.programs[key] = p
	return p, nil
}

// cells returns the number of cells of the windows among the inputs of a program.
func cells(shape []shapes.Shape) int {
	for _, s := range shape {
		if s.Rank() == 4 { // batch, channels, height, width
			return s.Dimensions[2] * s.Dimensions[3]
		}
	}
	return 0
}

func release(ts ...*tensors.Tensor) {
	for _, t := range ts {
		if t != nil {
			t.FinalizeAll()
		}
	}
}
