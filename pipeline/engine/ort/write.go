package ort

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// writer writes a studied network as an ONNX graph.
type writer struct {
	net     Network
	study   *study
	encoder *encoder
	known   map[string]string // names of computed numbers by key
}

// write returns the model of a network.
func (net Network) write(s *study) (*onnx.Model, error) {
	w := &writer{net: net, study: s, encoder: newEncoder(net.Name), known: map[string]string{}}
	if err := w.inputs(); err != nil {
		return nil, err
	}
	for i, n := range s.base.nodes {
		if err := w.node(i, n); err != nil {
			return nil, err
		}
	}
	if err := w.outputs(); err != nil {
		return nil, err
	}
	m := &onnx.Model{
		IRVersion: irVersion, ProducerName: "lacuna", Graph: w.encoder.graph,
		Opsets: w.encoder.opsets(), Metadata: net.Metadata,
	}
	return m, m.Validate()
}

// inputs declares the inputs and writes every other parameter as a weight.
func (w *writer) inputs() error {
	params := w.study.base.program.params
	for i, in := range w.net.Inputs {
		info, err := valueInfo(in.Name, params[i].shape)
		if err != nil {
			return err
		}
		info.Shape = nil
		for _, d := range in.Dims {
			dim := onnx.Dim{Size: int64(d.Size)}
			if d.Symbol != "" {
				dim = onnx.Dim{Symbol: d.Symbol}
			}
			info.Shape = append(info.Shape, dim)
		}
		w.encoder.graph.Inputs = append(w.encoder.graph.Inputs, info)
		w.encoder.names[params[i]] = in.Name
	}
	for _, p := range params[len(w.net.Inputs):] {
		if err := w.weight(p); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) weight(p *value) error {
	data, ok := w.net.Weights[p.name]
	if !ok {
		return fmt.Errorf("weight %q is not given", p.name)
	}
	if p.shape.DType != dtypes.Float32 || len(data) != p.shape.Size() {
		return fmt.Errorf("weight %q is %s, %d float32 values are given", p.name, p.shape, len(data))
	}
	dims := make([]int64, p.shape.Rank())
	for i, d := range p.dims() {
		dims[i] = int64(d)
	}
	w.encoder.graph.Initializers = append(w.encoder.graph.Initializers,
		onnx.Tensor{Name: p.name, Type: onnx.Float32, Dims: dims, Raw: slices.Clone(memoryOf(data))})
	w.encoder.names[p] = p.name
	return nil
}

// node writes a node. Its constants that depend on free sizes are computed
// before it.
func (w *writer) node(index int, n *node) error {
	for i, v := range n.in {
		if v == nil || !v.isConstant() {
			continue
		}
		formulas, err := w.study.formulas(index, i)
		if err != nil {
			return err
		}
		if formulas == nil {
			continue
		}
		if v.shape.DType == dtypes.Float32 {
			w.encoder.names[v], err = w.float(v, formulas)
		} else {
			w.encoder.names[v], err = w.vector(formulas)
		}
		if err != nil {
			return fmt.Errorf("node %d (%s): %w", index, n.op, err)
		}
	}
	return w.encoder.node(n)
}

// vector writes the nodes that compute a vector of integers.
func (w *writer) vector(formulas []formula) (string, error) {
	parts := make([]string, len(formulas))
	for i, f := range formulas {
		var err error
		if parts[i], err = w.integer(f); err != nil {
			return "", err
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return w.once(fmt.Sprint("vector", parts), onnx.Node{Op: "Concat", Inputs: parts, Attributes: []onnx.Attribute{onnx.Int("axis", 0)}}), nil
}

// integer writes the nodes that compute one integer, a vector of one element:
// the product of the symbols above the line, divided by those below it.
func (w *writer) integer(f formula) (string, error) {
	above, below, ok := fraction(f.factor)
	if !ok {
		return "", fmt.Errorf("a dimension is %v times a size, which is not a fraction", f.factor)
	}
	top, bottom := w.constant(above), ""
	if below > 1 {
		bottom = w.constant(below)
	}
	for k, power := range f.powers {
		for range power {
			top = w.binary("Mul", top, w.size(k))
		}
		for range -power {
			if bottom == "" {
				bottom = w.size(k)
				continue
			}
			bottom = w.binary("Mul", bottom, w.size(k))
		}
	}
	if bottom == "" {
		return top, nil
	}
	return w.binary("Div", top, bottom), nil
}

// float writes the nodes that compute a single float32, such as one over the
// number of pixels.
func (w *writer) float(v *value, formulas []formula) (string, error) {
	if len(formulas) != 1 {
		return "", fmt.Errorf("a constant %s depends on a free size", v.shape)
	}
	f := formulas[0]
	result := w.encoder.constant(&value{shape: shapes.Make(dtypes.Float32, 1), constant: memoryOf([]float32{float32(f.factor)})})
	for k, power := range f.powers {
		size := w.once("float"+w.study.symbols[k], onnx.Node{
			Op: "Cast", Inputs: []string{w.size(k)},
			Attributes: []onnx.Attribute{onnx.Int("to", int(onnx.Float32))},
		})
		for range power {
			result = w.binary("Mul", result, size)
		}
		for range -power {
			result = w.binary("Div", result, size)
		}
	}
	if v.shape.Rank() == 1 {
		return result, nil
	}
	dims := (&program{}).ints(v.dims()...)
	return w.once(fmt.Sprint("reshape", result, v.dims()), onnx.Node{Op: "Reshape", Inputs: []string{result, w.encoder.constant(dims)}}), nil
}

// size writes the nodes that read a symbol off the shape of an input.
func (w *writer) size(symbol int) string {
	for _, in := range w.net.Inputs {
		for axis, d := range in.Dims {
			if d.Symbol != w.study.symbols[symbol] {
				continue
			}
			shape := w.once("shape"+in.Name, onnx.Node{Op: "Shape", Inputs: []string{in.Name}})
			return w.once("size"+d.Symbol, onnx.Node{Op: "Gather", Inputs: []string{shape, w.constant(axis)}})
		}
	}
	panic("ort: symbol without an input") // symbols come from inputs
}

func (w *writer) binary(op, a, b string) string {
	return w.once(op+" "+a+" "+b, onnx.Node{Op: op, Inputs: []string{a, b}})
}

func (w *writer) constant(v int) string { return w.encoder.constant((&program{}).ints(v)) }

// once writes a node unless one for the same key was written before.
func (w *writer) once(key string, n onnx.Node) string {
	if name, ok := w.known[key]; ok {
		return name
	}
	name := fmt.Sprintf("size%d", len(w.known))
	w.known[key] = name
	n.Outputs = []string{name}
	w.encoder.graph.Nodes = append(w.encoder.graph.Nodes, n)
	return name
}

// outputs gives the outputs their names and declares their shapes.
func (w *writer) outputs() error {
	for i, v := range w.study.base.outputs {
		info, err := valueInfo(w.net.Outputs[i], v.shape)
		if err != nil {
			return err
		}
		formulas, err := w.study.outputDims(i)
		if err != nil {
			return err
		}
		info.Shape = nil
		for axis, f := range formulas {
			dim := onnx.Dim{Size: int64(v.dims()[axis])}
			if !f.constant() {
				dim = onnx.Dim{Symbol: f.symbol(w.study.symbols)}
			}
			info.Shape = append(info.Shape, dim)
		}
		w.encoder.graph.Outputs = append(w.encoder.graph.Outputs, info)
		w.encoder.graph.Nodes = append(w.encoder.graph.Nodes,
			onnx.Node{Op: "Identity", Inputs: []string{w.encoder.names[v]}, Outputs: []string{info.Name}})
	}
	return nil
}

// fraction writes a number as a fraction of integers. Factors of dimensions
// are ratios of channel counts and windows, so small.
func fraction(x float64) (above, below int, ok bool) {
	for below = 1; below <= 1<<16; below++ {
		if scaled := x * float64(below); math.Abs(scaled-math.Round(scaled)) <= 1e-6*math.Abs(scaled) {
			return int(math.Round(scaled)), below, true
		}
	}
	return 0, 0, false
}
