package ort

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// unary lowers an operation on single elements. It is applied before an
// Expand, not after, so that repeated elements are computed once.
func (g *builder) unary(t backends.OpType, op string, x backends.Op) (backends.Op, error) {
	v, err := g.value(t.String(), x)
	if err != nil {
		return nil, err
	}
	return g.program.unary(op, v), nil
}

func (p *program) unary(op string, v *value) *value {
	if small := unexpanded(v); small != v {
		return p.expand(p.emit(op, small.shape, []*value{small}), v.dims()...)
	}
	if blocked, ok := blockedSelf(v); ok && v.shape.DType == dtypes.Float32 {
		return p.toPlain(p.emit(op, v.shape, []*value{blocked}))
	}
	return p.emit(op, v.shape, []*value{v})
}

// binary lowers an arithmetic operation on two operands.
func (g *builder) binary(t backends.OpType, op string, lhs, rhs backends.Op) (backends.Op, error) {
	in, err := g.values(t.String(), lhs, rhs)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.BinaryOp(t, in[0].shape, in[1].shape)
	if err != nil {
		return nil, err
	}
	return g.program.elementwise(op, shape, in), nil
}

// compare lowers an operation on two operands that answers with bools.
func (g *builder) compare(t backends.OpType, op string, lhs, rhs backends.Op) (*value, error) {
	in, err := g.values(t.String(), lhs, rhs)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ComparisonOp(t, in[0].shape, in[1].shape)
	if err != nil {
		return nil, err
	}
	return g.program.elementwise(op, shape, in), nil
}

// elementwise applies op to operands that ONNX broadcasts to shape. Operands
// that are repeated are passed small where the result comes out the same, or
// else the result is expanded once at the end.
func (p *program) elementwise(op string, shape shapes.Shape, in []*value) *value {
	small := make([]*value, len(in))
	var dims []int
	for i, v := range in {
		small[i] = unexpanded(v)
		dims, _ = broadcast(dims, small[i].dims())
	}
	if blocked, ok := blockedSelves(small, shape); ok && shape.DType == dtypes.Float32 {
		return p.toPlain(p.elementwise(op, shape, blocked))
	}
	if slices.Equal(dims, shape.Dimensions) {
		if op == "Add" && shape.DType == dtypes.Float32 {
			if gradient, ok := p.siluGradient(small[0], small[1]); ok {
				return gradient
			}
			if gradient, ok := p.addedSiluGradient(small[0], small[1]); ok {
				return gradient
			}
		}
		return p.emit(op, shape, small)
	}
	return p.expand(p.emit(op, shapes.Make(shape.DType, dims...), small), shape.Dimensions...)
}

// Where chooses onTrue where condition holds, else onFalse.
func (g *builder) Where(condition, onTrue, onFalse backends.Op) (backends.Op, error) {
	in, err := g.values("Where", condition, onTrue, onFalse)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.WhereOp(in[0].shape, in[1].shape, in[2].shape)
	if err != nil {
		return nil, err
	}
	return g.program.elementwise("Where", shape, in), nil
}

// Clamp limits x to [low, high]; each limit is a scalar or shaped like x.
func (g *builder) Clamp(low, x, high backends.Op) (backends.Op, error) {
	raised, err := g.Max(low, x)
	if err != nil {
		return nil, err
	}
	return g.Min(raised, high)
}

// ConvertDType casts elements to another type; to bool, everything but zero
// is true.
func (g *builder) ConvertDType(x backends.Op, dtype dtypes.DType) (backends.Op, error) {
	v, err := g.value("ConvertDType", x)
	if err != nil {
		return nil, err
	}
	to, err := elementType(dtype)
	if err != nil {
		return nil, err
	}
	if v.shape.DType == dtype {
		return v, nil
	}
	small := unexpanded(v)
	cast := g.program.emit("Cast", shapes.Make(dtype, small.dims()...), []*value{small}, onnx.Int("to", int(to)))
	return g.program.expand(cast, v.dims()...), nil
}

// Rem is the remainder that takes the sign of the dividend, as in C.
func (g *builder) Rem(lhs, rhs backends.Op) (backends.Op, error) {
	op, err := g.binary(backends.OpTypeRem, "Mod", lhs, rhs)
	if err != nil {
		return nil, err
	}
	v := op.(*value)
	if n, ok := v.producedBy("Mod"); ok {
		n.attrs = []onnx.Attribute{onnx.Int("fmod", 1)}
	} else if n, ok := unexpanded(v).producedBy("Mod"); ok {
		n.attrs = []onnx.Attribute{onnx.Int("fmod", 1)}
	}
	return v, nil
}

// Rsqrt is 1 / sqrt(x).
func (g *builder) Rsqrt(x backends.Op) (backends.Op, error) {
	v, err := g.value("Rsqrt", x)
	if err != nil {
		return nil, err
	}
	return g.program.unary("Reciprocal", g.program.unary("Sqrt", v)), nil
}

// IsFinite is true for numbers that are neither infinite nor NaN. ONNX has no such
// operator; x - x is zero for exactly these.
func (g *builder) IsFinite(x backends.Op) (backends.Op, error) {
	v, err := g.value("IsFinite", x)
	if err != nil {
		return nil, err
	}
	if !v.shape.DType.IsFloat() {
		return nil, fmt.Errorf("IsFinite of %s: only floats can be infinite", v.shape.DType)
	}
	difference := g.program.elementwise("Sub", v.shape, []*value{v, v})
	isZero := shapes.Make(dtypes.Bool, v.dims()...)
	return g.program.elementwise("Equal", isZero, []*value{difference, g.program.scalar(v.shape.DType, 0)}), nil
}

// IsNaN is true for NaN.
func (g *builder) IsNaN(x backends.Op) (backends.Op, error) {
	v, err := g.value("IsNaN", x)
	if err != nil {
		return nil, err
	}
	return g.program.emit("IsNaN", shapes.Make(dtypes.Bool, v.dims()...), []*value{v}), nil
}

// NotEqual is true where the operands differ; NaN differs from itself.
func (g *builder) NotEqual(lhs, rhs backends.Op) (backends.Op, error) {
	equal, err := g.compare(backends.OpTypeNotEqual, "Equal", lhs, rhs)
	if err != nil {
		return nil, err
	}
	return g.program.unary("Not", equal), nil
}
