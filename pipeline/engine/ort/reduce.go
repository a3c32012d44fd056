package ort

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// ReduceSum adds up along axes, or along all of them where none is named.
func (g *builder) ReduceSum(x backends.Op, axes ...int) (backends.Op, error) {
	return g.reduce("ReduceSum", x, axes)
}

// ReduceMax takes the largest element along axes.
func (g *builder) ReduceMax(x backends.Op, axes ...int) (backends.Op, error) {
	return g.reduce("ReduceMax", x, axes)
}

// ReduceMin takes the smallest element along axes.
func (g *builder) ReduceMin(x backends.Op, axes ...int) (backends.Op, error) {
	return g.reduce("ReduceMin", x, axes)
}

// ReduceProduct multiplies along axes.
func (g *builder) ReduceProduct(x backends.Op, axes ...int) (backends.Op, error) {
	return g.reduce("ReduceProd", x, axes)
}

// ReduceLogicalAnd is true where all elements along axes are.
func (g *builder) ReduceLogicalAnd(x backends.Op, axes ...int) (backends.Op, error) {
	return g.reduceBool("ReduceMin", x, axes)
}

// ReduceLogicalOr is true where any element along axes is.
func (g *builder) ReduceLogicalOr(x backends.Op, axes ...int) (backends.Op, error) {
	return g.reduceBool("ReduceMax", x, axes)
}

// reduceBool reduces bools as integers, which every provider can.
func (g *builder) reduceBool(op string, x backends.Op, axes []int) (backends.Op, error) {
	counted, err := g.ConvertDType(x, dtypes.Int32)
	if err != nil {
		return nil, err
	}
	reduced, err := g.reduce(op, counted, axes)
	if err != nil {
		return nil, err
	}
	return g.ConvertDType(reduced, dtypes.Bool)
}

func (g *builder) reduce(op string, x backends.Op, axes []int) (backends.Op, error) {
	v, err := g.value(op, x)
	if err != nil {
		return nil, err
	}
	if len(axes) == 0 {
		for a := range v.shape.Rank() {
			axes = append(axes, a)
		}
	}
	shape, err := shapeinference.ReduceOp(v.shape, axes)
	if err != nil {
		return nil, err
	}
	if len(axes) == 0 { // a scalar is its own reduction
		return v, nil
	}
	return g.program.reduce(op, v, shape, axes), nil
}

// reduce drops axes of size 1 by a reshape, which costs nothing.
func (p *program) reduce(op string, v *value, shape shapes.Shape, axes []int) *value {
	if !slices.ContainsFunc(axes, func(a int) bool { return v.dims()[a] != 1 }) {
		return p.reshape(v, shape.Dimensions...)
	}
	if op == "ReduceSum" {
		if product, ok := p.sumOfProducts(v, shape, axes); ok {
			return product
		}
		if pooled, ok := p.sumOfTiles(v, shape, axes); ok {
			return pooled
		}
	}
	return p.emit(op, shape, []*value{v, p.ints(axes...)}, onnx.Int("keepdims", 0))
}

// sumOfTiles adds up tiles of an image, given as [batch, channels, height,
// rows, width, columns], by AveragePool: a fourth of the time, and a blocked
// image stays blocked.
func (p *program) sumOfTiles(v *value, shape shapes.Shape, axes []int) (*value, bool) {
	n, ok := v.producedBy("Reshape")
	if !ok || p.dialect.block == 0 && !p.dialect.turned || v.shape.DType != dtypes.Float32 || v.shape.Rank() != 6 || !slices.Equal(axes, []int{3, 5}) {
		return nil, false
	}
	d, image := v.dims(), n.in[0]
	if !slices.Equal(image.dims(), []int{d[0], d[1], d[2] * d[3], d[4] * d[5]}) {
		return nil, false
	}
	tile := []onnx.Attribute{onnx.Ints("kernel_shape", d[3], d[5]), onnx.Ints("strides", d[3], d[5])}
	size := p.scalar(v.shape.DType, float64(d[3]*d[5]))
	if blocked, ok := blockedSelf(image); ok {
		mean := p.emitIn(blockedDomain, "AveragePool", []shapes.Shape{shape}, []*value{blocked}, tile...)[0]
		return p.toPlain(p.emit("Mul", shape, []*value{mean, size})), true
	}
	return p.emit("Mul", shape, []*value{p.emit("AveragePool", shape, []*value{image}, tile...), size}), true
}

// ArgMinMax returns the place of the smallest or largest element along an
// axis, the first of equals.
func (g *builder) ArgMinMax(x backends.Op, axis int, dtype dtypes.DType, isMin bool) (backends.Op, error) {
	v, err := g.value("ArgMinMax", x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ArgMinMaxOp(v.shape, axis, dtype)
	if err != nil {
		return nil, err
	}
	op := "ArgMax"
	if isMin {
		op = "ArgMin"
	}
	found := g.program.emit(op, shapes.Make(dtypes.Int64, shape.Dimensions...), []*value{v},
		onnx.Int("axis", axis), onnx.Int("keepdims", 0))
	return g.ConvertDType(found, dtype)
}
