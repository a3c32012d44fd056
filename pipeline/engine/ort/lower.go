package ort

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

const (
	// opsetVersion is the first in which all reductions take their axes alike.
	opsetVersion = 18
	// irVersion is the file format that came with that operator set.
	irVersion = 8
)

// live returns the nodes that the outputs depend on, in order.
func (p *program) live(outputs []*value) []*node {
	needed := map[*node]bool{}
	stack := slices.Clone(outputs)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v == nil || v.from == nil || needed[v.from] {
			continue
		}
		needed[v.from] = true
		stack = append(stack, v.from.in...)
	}
	return slices.DeleteFunc(slices.Clone(p.nodes), func(n *node) bool { return !needed[n] })
}

// An encoder writes a program as an ONNX graph. It names values in order and
// writes equal constants once.
type encoder struct {
	graph     onnx.Graph
	names     map[*value]string
	constants map[string]string // names of constants by type, shape and content
	domains   map[string]bool
}

func newEncoder(name string) *encoder {
	return &encoder{
		graph: onnx.Graph{Name: name}, names: map[*value]string{},
		constants: map[string]string{}, domains: map[string]bool{"": true},
	}
}

// transcribe returns the graph of a program. Parameters and outputs of rank 0
// become vectors of one element, because onnxruntime_go binds no scalars.
func transcribe(name string, p *program, outputs []*value) (*onnx.Model, error) {
	s := newEncoder(name)
	boundary := &program{nodes: p.nodes, params: p.params}
	outs := make([]*value, len(outputs))
	for i, v := range outputs {
		outs[i] = boundary.output(v, outs[:i])
	}
	for i, v := range p.params {
		if err := s.input(i, v); err != nil {
			return nil, err
		}
	}
	if len(p.params) == 0 {
		s.graph.Inputs = append(s.graph.Inputs, onnx.ValueInfo{Name: dummyInput, Type: onnx.Float32, Shape: []onnx.Dim{{Size: 1}}})
	}
	for _, n := range boundary.live(outs) {
		if err := s.node(n); err != nil {
			return nil, fmt.Errorf("node %s: %w", n.op, err)
		}
	}
	for _, v := range outs {
		info, err := valueInfo(s.names[v], v.shape)
		if err != nil {
			return nil, err
		}
		s.graph.Outputs = append(s.graph.Outputs, info)
	}
	return &onnx.Model{IRVersion: irVersion, ProducerName: "lacuna", Graph: s.graph, Opsets: s.opsets()}, nil
}

// dummyInput is the input of a graph that has none: onnxruntime_go cannot run
// a session without inputs.
const dummyInput = "unused"

// output returns the value to write as an output: one that a node computes,
// that is not an output already, and that has a rank.
func (p *program) output(v *value, before []*value) *value {
	if v.shape.Rank() == 0 {
		return p.emit("Reshape", shapes.Make(v.shape.DType, 1), []*value{v, p.ints(1)})
	}
	if v.from == nil || slices.Contains(before, v) {
		return p.emit("Identity", v.shape, []*value{v})
	}
	return v
}

// input declares a parameter. A scalar is fed as a vector and reshaped.
func (s *encoder) input(i int, v *value) error {
	name := fmt.Sprintf("p%d", i)
	info, err := valueInfo(name, v.shape)
	if err != nil {
		return err
	}
	s.graph.Inputs = append(s.graph.Inputs, info)
	if v.shape.Rank() > 0 {
		s.names[v] = name
		return nil
	}
	s.names[v] = name + "_scalar"
	p := v.owner
	s.graph.Nodes = append(s.graph.Nodes, onnx.Node{
		Op: "Reshape", Inputs: []string{name, s.constant(p.ints())}, Outputs: []string{s.names[v]},
	})
	return nil
}

func (s *encoder) node(n *node) error {
	written := onnx.Node{Op: n.op, Domain: n.domain, Attributes: n.attrs}
	for _, v := range n.in {
		if v == nil {
			written.Inputs = append(written.Inputs, "")
			continue
		}
		name, known := s.names[v]
		if !known && v.isConstant() {
			if _, err := elementType(v.shape.DType); err != nil {
				return err
			}
			written.Inputs = append(written.Inputs, s.constant(v))
			continue
		}
		if !known {
			return fmt.Errorf("input %s is not computed before", v.shape)
		}
		written.Inputs = append(written.Inputs, name)
	}
	for _, v := range n.out {
		s.names[v] = fmt.Sprintf("v%d", len(s.names))
		written.Outputs = append(written.Outputs, s.names[v])
	}
	s.domains[n.domain] = true
	s.graph.Nodes = append(s.graph.Nodes, written)
	return nil
}

// constant returns the name of an initializer with v's content.
func (s *encoder) constant(v *value) string {
	kind := elementTypes[v.shape.DType]
	key := fmt.Sprint(kind, v.dims(), len(v.constant)) + string(v.constant)
	if name, ok := s.constants[key]; ok {
		return name
	}
	name := fmt.Sprintf("c%d", len(s.constants))
	s.constants[key] = name
	dims := make([]int64, v.shape.Rank())
	for i, d := range v.dims() {
		dims[i] = int64(d)
	}
	s.graph.Initializers = append(s.graph.Initializers, onnx.Tensor{Name: name, Type: kind, Dims: dims, Raw: v.constant})
	return name
}

// opsets lists the operator sets that the nodes come from.
func (s *encoder) opsets() []onnx.Opset {
	sets := []onnx.Opset{{Version: opsetVersion}}
	for _, domain := range []string{"com.microsoft", "com.microsoft.nchwc"} {
		if s.domains[domain] {
			sets = append(sets, onnx.Opset{Domain: domain, Version: 1})
		}
	}
	return sets
}

func valueInfo(name string, shape shapes.Shape) (onnx.ValueInfo, error) {
	kind, err := elementType(shape.DType)
	if err != nil {
		return onnx.ValueInfo{}, err
	}
	info := onnx.ValueInfo{Name: name, Type: kind}
	if shape.Rank() == 0 {
		info.Shape = []onnx.Dim{{Size: 1}}
	}
	for _, d := range shape.Dimensions {
		info.Shape = append(info.Shape, onnx.Dim{Size: int64(d)})
	}
	return info, nil
}

// dummyShape is the shape of dummyInput.
func dummyShape() shapes.Shape { return shapes.Make(dtypes.Float32, 1) }
