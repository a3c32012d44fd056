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

// WorkshopConfig says how networks are run.
type WorkshopConfig struct {
	// Batch is how many windows go through a network at a time. A call with
	// fewer is filled up: one compiled program then serves all, and an answer
	// does not depend on its company.
	Batch int `json:"batch" yaml:"batch"`
	// BFloat16 predicts in bfloat16. It does not concern training.
	BFloat16 bool `json:"bfloat16" yaml:"bfloat16"`
	// Shared gives weights to programs as an input, so that all networks of a
	// design share one. Without it they are constants, which ONNX Runtime
	// can rearrange once and run faster.
	Shared bool `json:"shared" yaml:"shared"`
}

// DefaultWorkshop returns the settings for a processor: windows one after the
// other keep all its cores busy.
func DefaultWorkshop() WorkshopConfig { return WorkshopConfig{Batch: 1} }

// A Workshop compiles what networks need on one backend and keeps it, because
// compiling takes longer than many a use. It is safe for concurrent use; one
// program runs at a time.
type Workshop struct {
	backend backends.Backend
	cfg     WorkshopConfig

	mu       sync.Mutex // held while anything compiles or runs a prediction
	programs map[string]*engine.Program
}

// NewWorkshop returns a workshop without anything compiled.
func NewWorkshop(b backends.Backend, cfg WorkshopConfig) (*Workshop, error) {
	if cfg.Batch < 1 {
		return nil, fmt.Errorf("workshop: batch is %d, must be positive", cfg.Batch)
	}
	return &Workshop{backend: b, cfg: cfg, programs: map[string]*engine.Program{}}, nil
}

// Backend returns what the workshop compiles for.
func (s *Workshop) Backend() backends.Backend { return s.backend }

// Batch returns how many windows go through a network at a time.
func (s *Workshop) Batch() int { return s.cfg.Batch }

// Close frees everything that was compiled.
func (s *Workshop) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.programs {
		p.Close()
	}
	clear(s.programs)
}

// An operand is a network with its weights, ready to run in a workshop.
type operand struct {
	network     nn.Network
	config      nn.Config
	weights     []float32
	fingerprint string

	vector *tensors.Tensor // the weights as an input, once they were used as one
}

func newOperand(cfg nn.Config, weights []float32) (*operand, error) {
	network, err := nn.New(cfg)
	if err != nil {
		return nil, err
	}
	if len(weights) != network.Layout().Size {
		return nil, fmt.Errorf("%d weights, a %s %s has %d", len(weights), cfg.Size, cfg.Backbone, network.Layout().Size)
	}
	return &operand{network: network, config: cfg, weights: weights, fingerprint: fingerprint(weights)}, nil
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
// device. The operand keeps it.
func (o *operand) tensor() *tensors.Tensor {
	if o.vector == nil {
		o.vector = tensors.FromFlatDataAndDimensions(o.weights, len(o.weights))
	}
	return o.vector
}

// A body adds what is computed with a network to a graph.
type body func(w nn.Weights, in []*graph.Node) *graph.Node

// run applies a body to inputs and returns its only output. The name tells
// bodies apart; the inputs stay the caller's.
func (s *Workshop) run(ctx context.Context, name string, o *operand, b body, inputs ...*tensors.Tensor) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.program(name, o, b, inputs)
	if err != nil {
		return nil, err
	}
	if s.cfg.Shared {
		inputs = append([]*tensors.Tensor{o.tensor()}, inputs...)
	}
	out, err := p.Run(inputs...)
	if err != nil {
		return nil, err
	}
	defer out[0].FinalizeAll()
	return tensors.CopyFlatData[float32](out[0])
}

func (s *Workshop) program(name string, o *operand, b body, inputs []*tensors.Tensor) (*engine.Program, error) {
	key := fmt.Sprint(name, o.config)
	if !s.cfg.Shared {
		key += o.fingerprint
	}
	shape := make([]shapes.Shape, len(inputs))
	for i, t := range inputs {
		shape[i] = t.Shape()
		key += shape[i].String()
	}
	if p, ok := s.programs[key]; ok {
		return p, nil
	}
	p, err := engine.Compile(s.backend, name, func(g *graph.Graph) []*graph.Node {
		var w nn.Weights
		if s.cfg.Shared {
			w = nn.Slices(graph.Parameter(g, "weights", shapes.Make(dtypes.Float32, len(o.weights))))
		} else {
			w = nn.Constants(g, o.weights)
		}
		in := make([]*graph.Node, len(shape))
		for i := range in {
			in[i] = graph.Parameter(g, fmt.Sprintf("input_%d", i), shape[i])
		}
		return []*graph.Node{b(computeIn(w, s.cfg.BFloat16), in)}
	})
	if err != nil {
		return nil, err
	}
	s.programs[key] = p
	return p, nil
}

func release(ts ...*tensors.Tensor) {
	for _, t := range ts {
		if t != nil {
			t.FinalizeAll()
		}
	}
}
