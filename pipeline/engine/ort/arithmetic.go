package ort

import "github.com/gomlx/gomlx/backends"

// The operations below mean the same in GoMLX and in ONNX.

// Abs is the absolute value.
func (g *builder) Abs(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeAbs, "Abs", x)
}

// Ceil is the smallest integer not below.
func (g *builder) Ceil(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeCeil, "Ceil", x)
}

// Cos is the cosine.
func (g *builder) Cos(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeCos, "Cos", x)
}

// Erf is the error function.
func (g *builder) Erf(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeErf, "Erf", x)
}

// Exp is the exponential.
func (g *builder) Exp(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeExp, "Exp", x)
}

// Floor is the largest integer not above.
func (g *builder) Floor(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeFloor, "Floor", x)
}

// Log is the natural logarithm.
func (g *builder) Log(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeLog, "Log", x)
}

// LogicalNot is the negation of a bool.
func (g *builder) LogicalNot(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeLogicalNot, "Not", x)
}

// Logistic is 1 / (1 + exp(-x)).
func (g *builder) Logistic(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeLogistic, "Sigmoid", x)
}

// Neg is the negative.
func (g *builder) Neg(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeNeg, "Neg", x)
}

// Round is the nearest integer, halves to even.
func (g *builder) Round(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeRound, "Round", x)
}

// Sign is -1, 0 or 1.
func (g *builder) Sign(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeSign, "Sign", x)
}

// Sin is the sine.
func (g *builder) Sin(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeSin, "Sin", x)
}

// Sqrt is the square root.
func (g *builder) Sqrt(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeSqrt, "Sqrt", x)
}

// Tanh is the hyperbolic tangent.
func (g *builder) Tanh(x backends.Op) (backends.Op, error) {
	return g.unary(backends.OpTypeTanh, "Tanh", x)
}

// Add is lhs + rhs.
func (g *builder) Add(lhs, rhs backends.Op) (backends.Op, error) {
	return g.binary(backends.OpTypeAdd, "Add", lhs, rhs)
}

// Sub is lhs - rhs.
func (g *builder) Sub(lhs, rhs backends.Op) (backends.Op, error) {
	return g.binary(backends.OpTypeSub, "Sub", lhs, rhs)
}

// Mul is lhs * rhs.
func (g *builder) Mul(lhs, rhs backends.Op) (backends.Op, error) {
	return g.binary(backends.OpTypeMul, "Mul", lhs, rhs)
}

// Div is lhs / rhs.
func (g *builder) Div(lhs, rhs backends.Op) (backends.Op, error) {
	if in, err := g.values("Div", lhs, rhs); err == nil {
		if mean, ok := g.program.attention(in[0], in[1]); ok {
			return mean, nil
		}
	}
	return g.binary(backends.OpTypeDiv, "Div", lhs, rhs)
}

// Pow is lhs to the power rhs.
func (g *builder) Pow(lhs, rhs backends.Op) (backends.Op, error) {
	return g.binary(backends.OpTypePow, "Pow", lhs, rhs)
}

// Max is the larger operand.
func (g *builder) Max(lhs, rhs backends.Op) (backends.Op, error) {
	return g.binary(backends.OpTypeMax, "Max", lhs, rhs)
}

// Min is the smaller operand.
func (g *builder) Min(lhs, rhs backends.Op) (backends.Op, error) {
	return g.binary(backends.OpTypeMin, "Min", lhs, rhs)
}

// LogicalAnd is true where both operands are.
func (g *builder) LogicalAnd(lhs, rhs backends.Op) (backends.Op, error) {
	return g.binary(backends.OpTypeLogicalAnd, "And", lhs, rhs)
}

// LogicalOr is true where either operand is.
func (g *builder) LogicalOr(lhs, rhs backends.Op) (backends.Op, error) {
	return g.binary(backends.OpTypeLogicalOr, "Or", lhs, rhs)
}

// LogicalXor is true where one operand is.
func (g *builder) LogicalXor(lhs, rhs backends.Op) (backends.Op, error) {
	return g.binary(backends.OpTypeLogicalXor, "Xor", lhs, rhs)
}

// Equal is true where lhs equals rhs.
func (g *builder) Equal(lhs, rhs backends.Op) (backends.Op, error) {
	return g.compare(backends.OpTypeEqual, "Equal", lhs, rhs)
}

// GreaterOrEqual is true where lhs is at least rhs.
func (g *builder) GreaterOrEqual(lhs, rhs backends.Op) (backends.Op, error) {
	return g.compare(backends.OpTypeGreaterOrEqual, "GreaterOrEqual", lhs, rhs)
}

// GreaterThan is true where lhs exceeds rhs.
func (g *builder) GreaterThan(lhs, rhs backends.Op) (backends.Op, error) {
	return g.compare(backends.OpTypeGreaterThan, "Greater", lhs, rhs)
}

// LessOrEqual is true where lhs is at most rhs.
func (g *builder) LessOrEqual(lhs, rhs backends.Op) (backends.Op, error) {
	return g.compare(backends.OpTypeLessOrEqual, "LessOrEqual", lhs, rhs)
}

// LessThan is true where lhs is below rhs.
func (g *builder) LessThan(lhs, rhs backends.Op) (backends.Op, error) {
	return g.compare(backends.OpTypeLessThan, "Less", lhs, rhs)
}
