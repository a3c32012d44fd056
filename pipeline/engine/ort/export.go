package ort

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/notimplemented"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// Network is a graph function with its weights, to be written as a file.
type Network struct {
	Name    string
	Inputs  []Input
	Outputs []string // names of the results of Build

	// Build adds the network to a graph. Parameters that it makes itself are
	// weights. It is called several times, at different sizes.
	Build func(g *graph.Graph, inputs []*graph.Node) []*graph.Node

	Weights  map[string][]float32 // values of those parameters by name
	Metadata map[string]string
}

// Input is a named input of a network.
type Input struct {
	Name  string
	DType dtypes.DType // float32 if not set
	Dims  []InputDim
}

// InputDim is a dimension of an input. With a symbol, such as "batch", it may
// have any size when the file is run, and Size is one that the network
// accepts, as are its multiples; sizes of different symbols must differ.
type InputDim struct {
	Size   int
	Symbol string
}

// Export returns the network as an ONNX model in standard operators, weights
// as initializers under their names. Dimensions with a symbol stay free: the
// graph is built at several sizes, and constants that differ between them are
// computed in the file from the shapes of its inputs. A network whose structure or
// constants depend on a free size in a way that is not a product of powers of
// sizes cannot be written so, and the error names the node.
//
// Export needs no ONNX Runtime.
func Export(net Network) (*onnx.Model, error) {
	m, err := export(net)
	if err != nil {
		return nil, fmt.Errorf("export network %q: %w", net.Name, err)
	}
	return m, nil
}

func export(net Network) (*onnx.Model, error) {
	if err := net.validate(); err != nil {
		return nil, err
	}
	sizes := net.sizes()
	base, err := net.trace(sizes)
	if err != nil {
		return nil, err
	}
	s := &study{base: base, sizes: sizes}
	for _, symbol := range slices.Sorted(maps.Keys(sizes)) {
		doubled := maps.Clone(sizes)
		doubled[symbol] *= 2
		t, err := net.trace(doubled)
		if err != nil {
			return nil, fmt.Errorf("with %s %d: %w", symbol, doubled[symbol], err)
		}
		s.symbols = append(s.symbols, symbol)
		s.doubled = append(s.doubled, t)
	}
	if err := s.aligned(); err != nil {
		return nil, err
	}
	return net.write(s)
}

func (net Network) validate() error {
	if net.Name == "" || net.Build == nil || len(net.Inputs) == 0 || len(net.Outputs) == 0 {
		return errors.New("a network needs a name, inputs, outputs and a Build function")
	}
	taken := map[int]string{}
	for symbol, size := range net.sizes() {
		if size < 2 {
			return fmt.Errorf("%s has size %d, give one above 1: a size of 1 means broadcasting", symbol, size)
		}
		if other, ok := taken[size]; ok {
			return fmt.Errorf("%s and %s both have size %d, give them different ones", symbol, other, size)
		}
		taken[size] = symbol
	}
	return nil
}

// sizes returns the size of each symbol.
func (net Network) sizes() map[string]int {
	sizes := map[string]int{}
	for _, in := range net.Inputs {
		for _, d := range in.Dims {
			if d.Symbol != "" {
				sizes[d.Symbol] = d.Size
			}
		}
	}
	return sizes
}

// traced is a network lowered at given sizes.
type traced struct {
	program *program
	nodes   []*node // nodes that outputs depend on
	outputs []*value
}

// trace lowers the network with its symbols at the given sizes. This is where
// a panic of graph code becomes an error.
func (net Network) trace(sizes map[string]int) (t *traced, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("build the graph: %v", r)
		}
	}()
	tracer := &tracer{}
	g := graph.NewGraph(tracer, net.Name)
	inputs := make([]*graph.Node, len(net.Inputs))
	for i, in := range net.Inputs {
		inputs[i] = graph.Parameter(g, in.Name, in.shape(sizes))
	}
	outputs := net.Build(g, inputs)
	if len(outputs) != len(net.Outputs) {
		return nil, fmt.Errorf("the network has %d outputs, %d are named", len(outputs), len(net.Outputs))
	}
	g.Compile(outputs...)
	return tracer.traced, nil
}

func (in Input) shape(sizes map[string]int) shapes.Shape {
	dims := make([]int, len(in.Dims))
	for i, d := range in.Dims {
		dims[i] = d.Size
		if d.Symbol != "" {
			dims[i] = sizes[d.Symbol]
		}
	}
	dtype := in.DType
	if dtype == dtypes.InvalidDType {
		dtype = dtypes.Float32
	}
	return shapes.Make(dtype, dims...)
}

// tracer is a backend that keeps the program instead of compiling it. It uses
// standard operators only.
type tracer struct {
	notimplemented.Backend
	traced *traced
}

// Capabilities are those of the real backend.
func (t *tracer) Capabilities() backends.Capabilities { return (&Backend{}).Capabilities() }

// Builder returns a builder that hands its program to t.
func (t *tracer) Builder(name string) backends.Builder {
	g := newBuilder(&Backend{}, name)
	g.compiler = t
	return g
}

func (t *tracer) compile(_ string, p *program, outputs []*value) (backends.Executable, error) {
	boundary := &program{nodes: p.nodes, params: p.params}
	outs := make([]*value, len(outputs))
	for i, v := range outputs {
		outs[i] = v
		if v.from == nil || slices.Contains(outs[:i], v) {
			outs[i] = boundary.emit("Identity", v.shape, []*value{v})
		}
	}
	t.traced = &traced{program: p, nodes: boundary.live(outs), outputs: outs}
	return tracedExecutable{}, nil
}

// tracedExecutable stands for a graph that is not run.
type tracedExecutable struct{}

func (tracedExecutable) Finalize()                          {}
func (tracedExecutable) Inputs() ([]string, []shapes.Shape) { return nil, nil }
func (tracedExecutable) Outputs() []shapes.Shape            { return nil }

func (tracedExecutable) Execute([]backends.Buffer, []bool, backends.DeviceNum) ([]backends.Buffer, error) {
	return nil, errors.New("a traced graph cannot run")
}
