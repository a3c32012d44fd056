package ort

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// value is a tensor of a graph: an output of a node, a parameter or a
// constant. GoMLX holds it as a backends.Op.
type value struct {
	shape    shapes.Shape
	owner    *program
	from     *node  // nil for a parameter or a constant
	constant []byte // the elements of a constant
	name     string // name of a parameter
}

// node applies an ONNX operator. Shapes are static, so arguments that ONNX
// takes as tensors, such as the target of a Reshape, are constants.
type node struct {
	op, domain string
	in         []*value
	attrs      []onnx.Attribute
	out        []*value
}

// program is a graph under construction: nodes in an order in which they can
// run. The lowering of GoMLX operations is written in its methods, which
// simplify as they go, so that a node without effect is never added.
type program struct {
	dialect dialect
	nodes   []*node
	params  []*value
	plain   map[*value]*value // plain selves of blocked values
}

// isConstant reports whether v is known when the graph is compiled.
func (v *value) isConstant() bool { return v.from == nil && v.name == "" }

// producedBy returns the node that computes v if it applies op.
func (v *value) producedBy(op string) (*node, bool) {
	if v.from == nil || v.from.op != op {
		return nil, false
	}
	return v.from, true
}

func (v *value) dims() []int { return v.shape.Dimensions }

// emit adds a node with one output.
func (p *program) emit(op string, shape shapes.Shape, in []*value, attrs ...onnx.Attribute) *value {
	return p.emitIn("", op, []shapes.Shape{shape}, in, attrs...)[0]
}

// emitIn adds a node of an operator domain with any number of outputs.
func (p *program) emitIn(domain, op string, outs []shapes.Shape, in []*value, attrs ...onnx.Attribute) []*value {
	n := &node{op: op, domain: domain, in: in, attrs: attrs}
	for _, shape := range outs {
		n.out = append(n.out, &value{shape: shape, owner: p, from: n})
	}
	p.nodes = append(p.nodes, n)
	return n.out
}

// parameter adds an input of the graph.
func (p *program) parameter(name string, shape shapes.Shape) *value {
	v := &value{shape: shape, owner: p, name: name}
	p.params = append(p.params, v)
	return v
}

// constant returns a constant; raw is kept.
func (p *program) constant(shape shapes.Shape, raw []byte) *value {
	return &value{shape: shape, owner: p, constant: raw}
}

// ints returns a vector of int64, the type of shapes and axes in ONNX.
func (p *program) ints(v ...int) *value {
	raw := make([]byte, 0, 8*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(int64(x)))
	}
	return p.constant(shapes.Make(dtypes.Int64, len(v)), raw)
}

// scalar returns a constant of a floating-point type or integer type.
func (p *program) scalar(d dtypes.DType, x float64) *value {
	var raw []byte
	switch d {
	case dtypes.Float32:
		raw = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x)))
	case dtypes.Float64:
		raw = binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	default: // integers and bool, little-endian
		raw = binary.LittleEndian.AppendUint64(nil, uint64(int64(x)))[:d.Size()]
	}
	return p.constant(shapes.Make(d), raw)
}

// reshape gives x other dimensions. A reshape of a reshape goes back to the
// first.
func (p *program) reshape(x *value, dims ...int) *value {
	for {
		n, ok := x.producedBy("Reshape")
		if !ok {
			break
		}
		x = n.in[0]
	}
	if slices.Equal(dims, x.dims()) {
		return x
	}
	shape := shapes.Make(x.shape.DType, dims...)
	if x.isConstant() {
		return p.constant(shape, x.constant)
	}
	return p.emit("Reshape", shape, []*value{x, p.ints(dims...)}, onnx.Int("allowzero", 1))
}

// transpose permutes the axes of x: axis i of the result is axis perm[i] of
// x. Transposes compose, and one that only moves axes of size 1 is a reshape,
// which copies nothing.
func (p *program) transpose(x *value, perm ...int) *value {
	if n, ok := x.producedBy("Transpose"); ok {
		inner := n.attrs[0].Ints
		both := make([]int, len(perm))
		for i, a := range perm {
			both[i] = int(inner[a])
		}
		return p.transpose(n.in[0], both...)
	}
	dims := make([]int, len(perm))
	for i, a := range perm {
		dims[i] = x.dims()[a]
	}
	if keepsOrder(x.dims(), perm) {
		return p.reshape(x, dims...)
	}
	return p.emit("Transpose", shapes.Make(x.shape.DType, dims...), []*value{x}, onnx.Ints("perm", perm...))
}

// keepsOrder reports whether perm leaves the axes longer than 1 in order.
func keepsOrder(dims, perm []int) bool {
	last := -1
	for _, a := range perm {
		if dims[a] == 1 {
			continue
		}
		if a < last {
			return false
		}
		last = a
	}
	return true
}

// expand repeats axes of size 1 up to dims. Most consumers broadcast by
// themselves and look through it: see unexpanded.
func (p *program) expand(x *value, dims ...int) *value {
	if slices.Equal(dims, x.dims()) {
		return x
	}
	if n, ok := x.producedBy("Expand"); ok && len(n.in[0].dims()) == len(dims) {
		x = n.in[0]
	}
	if big, ok := p.enlarge(x, dims); ok {
		return big
	}
	return p.emit("Expand", shapes.Make(x.shape.DType, dims...), []*value{x, p.ints(dims...)})
}

// enlarge repeats pixels of an image [..., height, 1, width, 1] up to [...,
// height, rows, width, columns]. Expand would copy single elements; Resize
// takes a fortieth of the time.
func (p *program) enlarge(x *value, dims []int) (big *value, ok bool) {
	small, rank := x.dims(), len(dims)
	if rank < 4 || len(small) != rank || x.shape.DType != dtypes.Float32 || small[rank-3] != 1 || small[rank-1] != 1 || dims[rank-1] == 1 {
		return nil, false
	}
	height, rows, width, columns := dims[rank-4], dims[rank-3], dims[rank-2], dims[rank-1]
	if !slices.Equal(small[:rank-4], dims[:rank-4]) || small[rank-4] != height || small[rank-2] != width {
		return nil, false
	}
	outer := []int{1, product(dims[:rank-4])}
	if rank == 6 {
		outer = dims[:2]
	}
	image := p.reshape(x, outer[0], outer[1], height, width)
	scales := p.constant(shapes.Make(dtypes.Float32, 4), memoryOf([]float32{1, 1, float32(rows), float32(columns)}))
	resized := p.emit("Resize", shapes.Make(x.shape.DType, outer[0], outer[1], height*rows, width*columns), []*value{image, nil, scales},
		onnx.String("mode", "nearest"), onnx.String("coordinate_transformation_mode", "asymmetric"), onnx.String("nearest_mode", "floor"))
	return p.reshape(resized, dims...), true
}

// unexpanded returns the value that an Expand repeats, or v itself.
func unexpanded(v *value) *value {
	if n, ok := v.producedBy("Expand"); ok {
		return n.in[0]
	}
	return v
}

// broadcast returns the dimensions that ONNX gives to an elementwise operator
// on two shapes, aligned at the last axis; ok is false where they disagree.
func broadcast(a, b []int) (dims []int, ok bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	dims = slices.Clone(a)
	for i := range b {
		at := len(a) - len(b) + i
		switch {
		case a[at] == b[i] || b[i] == 1:
		case a[at] == 1:
			dims[at] = b[i]
		default:
			return nil, false
		}
	}
	return dims, true
}
