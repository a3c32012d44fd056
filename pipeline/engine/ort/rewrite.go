package ort

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// The rewrites below recognise patterns that GoMLX's automatic differentiation writes
// out at length. Each gives the same numbers up to rounding; nodes that are no
// longer needed are dropped when the program is compiled.

// sumOfProducts writes a sum over elementwise products as a matrix product,
// which does not store the products. This is how the gradient of a batched
// matrix product and of a scale per channel arrive.
func (p *program) sumOfProducts(v *value, shape shapes.Shape, axes []int) (*value, bool) {
	a, b, ok := p.factorPair(v)
	if !ok || v.shape.DType != dtypes.Float32 {
		return nil, false
	}
	var batch, ofA, ofB []int
	for i, d := range v.dims() {
		switch {
		case slices.Contains(axes, i):
			if a.dims()[i] != d || b.dims()[i] != d {
				return nil, false
			}
		case a.dims()[i] == b.dims()[i]:
			batch = append(batch, i)
		case b.dims()[i] == 1:
			ofA = append(ofA, i)
		default:
			ofB = append(ofB, i)
		}
	}
	left, right := newDotOperand(a, axes, batch), newDotOperand(b, axes, batch)
	if !left.pays(right) {
		return nil, false
	}
	order := slices.Concat(batch, ofA, ofB)
	dims := make([]int, len(order))
	for i, axis := range order {
		dims[i] = v.dims()[axis]
	}
	result := p.reshape(p.matMul(left, right), dims...)
	kept := slices.Sorted(slices.Values(order))
	perm := make([]int, len(order))
	for i, axis := range kept {
		perm[i] = slices.Index(order, axis)
	}
	return p.reshape(p.transpose(result, perm...), shape.Dimensions...), true
}

// factorPair returns the two plain tensors that v is the product of, at v's
// rank.
func (p *program) factorPair(v *value) (a, b *value, ok bool) {
	if n, ok := v.producedBy("Mul"); ok {
		rank := v.shape.Rank()
		return p.atRank(n.in[0], rank), p.atRank(n.in[1], rank), true
	}
	blocked, ok := blockedSelf(v)
	if !ok {
		return nil, nil, false
	}
	n, ok := blocked.producedBy("Mul")
	if !ok || !sameShape(n.in[0], n.in[1]) {
		return nil, nil, false
	}
	return p.toPlain(n.in[0]), p.toPlain(n.in[1]), true
}

// pays reports whether a matrix product is faster than multiplying and adding
// up: always for outer products, and for long sums whose operands need no
// transpose.
func (d dotOperand) pays(other dotOperand) bool {
	const longSum = 1024
	if d.freeSize > 1 && other.freeSize > 1 {
		return true
	}
	inOrder := func(o dotOperand) bool {
		return keepsOrder(o.value.dims(), slices.Concat(o.batch, o.free, o.contracting))
	}
	return d.contracted >= longSum && inOrder(d) && inOrder(other)
}

// atRank gives v leading axes of size 1.
func (p *program) atRank(v *value, rank int) *value {
	if missing := rank - v.shape.Rank(); missing > 0 {
		return p.reshape(v, slices.Concat(slices.Repeat([]int{1}, missing), v.dims())...)
	}
	return v
}

// siluGradient recognises the gradient of y = x*s with s = sigmoid(x),
//
//	g*s + g*x*s*(1-s),
//
// and writes it as g*s*(1+x-y): four passes over memory instead of six.
func (p *program) siluGradient(l, r *value) (*value, bool) {
	short, long := factors(l), factors(r)
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(short) != 2 || len(long) != 4 {
		return nil, false
	}
	for i, s := range short {
		n, ok := s.producedBy("Sigmoid")
		if !ok {
			continue
		}
		g, x := short[1-i], n.in[0]
		if !sameShape(g, x) || !isPermutation(long, func(f *value) int {
			return slices.IndexFunc([]bool{f == g, f == x, f == s, isOneMinus(f, s)}, func(is bool) bool { return is })
		}) {
			continue
		}
		y := p.emit("Mul", x.shape, []*value{x, s})
		slope := p.emit("Add", x.shape, []*value{p.emit("Sub", x.shape, []*value{x, y}), p.scalar(x.shape.DType, 1)})
		return p.emit("Mul", x.shape, []*value{g, p.emit("Mul", x.shape, []*value{s, slope})}), true
	}
	return nil, false
}

// addedSiluGradient recognises siluGradient where the gradient of another path,
// such as the one around a residual block, was added to its first part before.
func (p *program) addedSiluGradient(l, r *value) (*value, bool) {
	for _, pair := range [][2]*value{{l, r}, {r, l}} {
		sum, ok := pair[0].producedBy("Add")
		if !ok {
			continue
		}
		for i, part := range sum.in {
			if gradient, ok := p.siluGradient(part, pair[1]); ok && sameShape(gradient, l) && sameShape(sum.in[1-i], l) {
				return p.emit("Add", l.shape, []*value{sum.in[1-i], gradient}), true
			}
		}
	}
	return nil, false
}

// factors returns the factors of v, all shaped alike.
func factors(v *value) []*value {
	n, ok := v.producedBy("Mul")
	if !ok || !sameShape(n.in[0], v) || !sameShape(n.in[1], v) {
		return []*value{v}
	}
	return append(factors(n.in[0]), factors(n.in[1])...)
}

func sameShape(a, b *value) bool { return slices.Equal(a.dims(), b.dims()) }

// isOneMinus reports whether v is 1 - s.
func isOneMinus(v, s *value) bool {
	n, ok := v.producedBy("Sub")
	return ok && n.in[1] == s && n.in[0].isConstant() && n.in[0].shape.Size() == 1 &&
		string(n.in[0].constant) == string((&program{}).scalar(s.shape.DType, 1).constant)
}

// isPermutation reports whether index sends list to 0, 1, 2, ... in any order.
func isPermutation(list []*value, index func(*value) int) bool {
	seen := make([]bool, len(list))
	for _, v := range list {
		i := index(v)
		if i < 0 || seen[i] {
			return false
		}
		seen[i] = true
	}
	return true
}
