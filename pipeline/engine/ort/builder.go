package ort

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/notimplemented"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// errNotLowered is wrapped by the error for an operation that has no lowering.
var errNotLowered = errors.New("operation is not lowered to ONNX")

// builder lowers the operations of one GoMLX graph to a program.
type builder struct {
	// Methods that builder does not define return an error that names them.
	notimplemented.Builder

	name     string
	program  *program
	compiler compiler
}

// compiler turns a finished program into something that runs.
type compiler interface {
	compile(name string, p *program, outputs []*value) (backends.Executable, error)
}

func newBuilder(b *Backend, name string) *builder {
	g := &builder{name: name, program: &program{dialect: b.dialect}, compiler: b}
	g.ErrFn = func(op backends.OpType) error { return fmt.Errorf("%s: %w", op, errNotLowered) }
	return g
}

// Name returns the name of the graph.
func (g *builder) Name() string { return g.name }

// Compile optimizes the program and hands it to ONNX Runtime.
func (g *builder) Compile(outputs []backends.Op, _ []*backends.ShardingSpec) (backends.Executable, error) {
	values, err := g.values("Compile", outputs...)
	if err != nil {
		return nil, err
	}
	exec, err := g.compiler.compile(g.name, g.program, values)
	if err != nil {
		return nil, fmt.Errorf("compile graph %q: %w", g.name, err)
	}
	return exec, nil
}

// OpShape returns the shape of a value.
func (g *builder) OpShape(op backends.Op) (shapes.Shape, error) {
	v, err := g.value("OpShape", op)
	if err != nil {
		return shapes.Invalid(), err
	}
	return v.shape, nil
}

// Parameter adds an input of the graph.
func (g *builder) Parameter(name string, shape shapes.Shape, _ *backends.ShardingSpec) (backends.Op, error) {
	if _, err := elementType(shape.DType); err != nil {
		return nil, fmt.Errorf("parameter %q: %w", name, err)
	}
	return g.program.parameter(name, shape), nil
}

// Constant adds a constant; flat is copied.
func (g *builder) Constant(flat any, dims ...int) (backends.Op, error) {
	raw, dtype, err := bytesOf(flat)
	if err != nil {
		return nil, fmt.Errorf("constant: %w", err)
	}
	shape := shapes.Make(dtype, dims...)
	if shape.Size()*dtype.Size() != len(raw) {
		return nil, fmt.Errorf("constant: %d bytes do not fill the shape %s", len(raw), shape)
	}
	return g.program.constant(shape, slices.Clone(raw)), nil
}

// AllReduce returns the operands themselves: on one device there is nothing to
// agree on.
func (g *builder) AllReduce(operands []backends.Op, _ backends.ReduceOpType, _ [][]int) ([]backends.Op, error) {
	values, err := g.values("AllReduce", operands...)
	if err != nil {
		return nil, err
	}
	out := make([]backends.Op, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out, nil
}

// Identity returns x itself.
func (g *builder) Identity(x backends.Op) (backends.Op, error) { return g.value("Identity", x) }

// DistributedSPMD accepts one device.
func (g *builder) DistributedSPMD(devices int) error {
	if devices > 1 {
		return fmt.Errorf("distribute over %d devices: the ort engine has one", devices)
	}
	return nil
}

// value checks that an opaque operand is a value of this graph.
func (g *builder) value(op string, opaque backends.Op) (*value, error) {
	v, ok := opaque.(*value)
	if !ok || v == nil {
		return nil, fmt.Errorf("%s: operand is a %T, which does not belong to the ort engine", op, opaque)
	}
	if v.owner != g.program {
		return nil, fmt.Errorf("%s: operand belongs to another graph", op)
	}
	return v, nil
}

func (g *builder) values(op string, opaque ...backends.Op) ([]*value, error) {
	values := make([]*value, len(opaque))
	for i, o := range opaque {
		v, err := g.value(op, o)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// loweredOps are the operations that this package lowers.
var loweredOps = []backends.OpType{
	backends.OpTypeParameter, backends.OpTypeConstant, backends.OpTypeIdentity,
	backends.OpTypeAbs, backends.OpTypeAdd, backends.OpTypeArgMinMax,
	backends.OpTypeBroadcastInDim, backends.OpTypeCeil, backends.OpTypeClamp,
	backends.OpTypeConcatenate, backends.OpTypeConvGeneral, backends.OpTypeConvertDType,
	backends.OpTypeCos, backends.OpTypeDiv, backends.OpTypeDot, backends.OpTypeDotGeneral,
	backends.OpTypeEqual, backends.OpTypeErf, backends.OpTypeExp, backends.OpTypeFloor,
	backends.OpTypeGreaterOrEqual, backends.OpTypeGreaterThan,
	backends.OpTypeIota, backends.OpTypeIsFinite, backends.OpTypeIsNaN,
	backends.OpTypeLessOrEqual, backends.OpTypeLessThan, backends.OpTypeLog,
	backends.OpTypeLogicalAnd, backends.OpTypeLogicalNot, backends.OpTypeLogicalOr,
	backends.OpTypeLogicalXor, backends.OpTypeLogistic, backends.OpTypeMax, backends.OpTypeMin,
	backends.OpTypeMul, backends.OpTypeNeg, backends.OpTypeNotEqual, backends.OpTypePad,
	backends.OpTypePow, backends.OpTypeReduceLogicalAnd, backends.OpTypeReduceLogicalOr,
	backends.OpTypeReduceMax, backends.OpTypeReduceMin, backends.OpTypeReduceProduct,
	backends.OpTypeReduceSum, backends.OpTypeRem, backends.OpTypeReshape,
	backends.OpTypeReverse, backends.OpTypeRound, backends.OpTypeRsqrt, backends.OpTypeSign,
	backends.OpTypeSin, backends.OpTypeSlice, backends.OpTypeSqrt, backends.OpTypeSub,
	backends.OpTypeTanh, backends.OpTypeTranspose, backends.OpTypeWhere,
}
