package ort

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// Dot is the product of vectors and matrices: the last axis of lhs against
// the first of rhs.
func (g *builder) Dot(lhs, rhs backends.Op) (backends.Op, error) {
	in, err := g.values("Dot", lhs, rhs)
	if err != nil {
		return nil, err
	}
	if in[0].shape.Rank() == 0 || in[1].shape.Rank() == 0 {
		return g.Mul(lhs, rhs)
	}
	return g.DotGeneral(lhs, []int{in[0].shape.Rank() - 1}, nil, rhs, []int{0}, nil)
}

// DotGeneral multiplies along the contracting axes for each index of the
// batch axes. The result has the batch axes, then the free axes of lhs, then
// those of rhs.
func (g *builder) DotGeneral(lhs backends.Op, lhsContracting, lhsBatch []int, rhs backends.Op, rhsContracting, rhsBatch []int) (backends.Op, error) {
	in, err := g.values("DotGeneral", lhs, rhs)
	if err != nil {
		return nil, err
	}
	left := newDotOperand(in[0], lhsContracting, lhsBatch)
	right := newDotOperand(in[1], rhsContracting, rhsBatch)
	if in[0].shape.DType != in[1].shape.DType || left.contracted != right.contracted || left.batches != right.batches {
		return nil, fmt.Errorf("DotGeneral: %s (axes %v, batch %v) does not fit %s (axes %v, batch %v)",
			in[0].shape, lhsContracting, lhsBatch, in[1].shape, rhsContracting, rhsBatch)
	}
	dims := slices.Concat(left.sizes(lhsBatch), left.sizes(left.free), right.sizes(right.free))
	return g.program.reshape(g.program.matMul(left, right), dims...), nil
}

// dotOperand is one side of a product, its axes sorted by their part in it.
type dotOperand struct {
	value                         *value
	contracting, batch, free      []int
	contracted, batches, freeSize int
}

func newDotOperand(v *value, contracting, batch []int) dotOperand {
	d := dotOperand{value: v, contracting: contracting, batch: batch}
	for a := range v.shape.Rank() {
		if !slices.Contains(contracting, a) && !slices.Contains(batch, a) {
			d.free = append(d.free, a)
		}
	}
	d.contracted, d.batches, d.freeSize = product(d.sizes(contracting)), product(d.sizes(batch)), product(d.sizes(d.free))
	return d
}

func (d dotOperand) sizes(axes []int) []int {
	sizes := make([]int, len(axes))
	for i, a := range axes {
		sizes[i] = d.value.dims()[a]
	}
	return sizes
}

func product(sizes []int) int {
	p := 1
	for _, s := range sizes {
		p *= s
	}
	return p
}

// matMul returns the product as [batches, free of left, free of right]. Where it is less
// to turn round, it is that of right and left, turned.
func (p *program) matMul(left, right dotOperand) *value {
	turning := left.batches * left.freeSize * right.freeSize
	if p.dialect.turned && right.moved(true)+left.moved(false)+turning < left.moved(true)+right.moved(false) {
		return p.transpose(p.multiply(right, left), 0, 2, 1)
	}
	return p.multiply(left, right)
}

// moved returns how many numbers change their place where an operand goes to a side.
func (d dotOperand) moved(leftSide bool) int {
	order := slices.Concat(d.batch, d.contracting, d.free)
	if leftSide {
		order = slices.Concat(d.batch, d.free, d.contracting)
	}
	if keepsOrder(d.value.dims(), order) {
		return 0
	}
	return d.value.shape.Size()
}

// multiply returns the product as [batches, free of left, free of right]. An
// operand that only lacks a swap of its last two axes is passed as it is: the
// fused operator reads it transposed, which saves a copy.
func (p *program) multiply(left, right dotOperand) *value {
	l, swapL := p.matrices(left, true)
	r, swapR := p.matrices(right, false)
	shape := shapes.Make(l.shape.DType, left.batches, left.freeSize, right.freeSize)
	if swapL == 0 && swapR == 0 {
		return p.emit("MatMul", shape, []*value{l, r})
	}
	return p.emitIn("com.microsoft", "FusedMatMul", []shapes.Shape{shape}, []*value{l, r},
		onnx.Int("transA", swapL), onnx.Int("transB", swapR))[0]
}

// matrices brings an operand to [batches, rows, columns] and says with 1
// whether rows and columns still have to be swapped for the side it is on.
func (p *program) matrices(d dotOperand, leftSide bool) (v *value, swap int) {
	freeFirst := slices.Concat(d.batch, d.free, d.contracting)
	contractedFirst := slices.Concat(d.batch, d.contracting, d.free)
	want, other := freeFirst, contractedFirst
	if !leftSide {
		want, other = contractedFirst, freeFirst
	}
	perm := want
	if p.fusable(d.value) && keepsOrder(d.value.dims(), other) && (!keepsOrder(d.value.dims(), want) || d.isRow(leftSide)) {
		perm, swap = other, 1
	}
	rows, columns := d.freeSize, d.contracted
	if leftSide == (swap == 1) {
		rows, columns = columns, rows
	}
	return p.reshape(p.transpose(d.value, perm...), d.batches, rows, columns), swap
}

// isRow reports whether the operand is a vector on the right: the product
// runs seven times faster on a row that is to be swapped than on a column.
func (d dotOperand) isRow(leftSide bool) bool { return !leftSide && d.freeSize == 1 }

// fusable reports whether the fused product may be used and exists for the
// element type.
func (p *program) fusable(v *value) bool {
	return p.dialect.contrib && v.shape.DType == dtypes.Float32
}
