package ort

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// fold reduces axes of a in plain Go.
func fold(a array, start float64, axes []int, f func(sum, x float64) float64) array {
	var kept []int
	for axis := range a.dims {
		if !slices.Contains(axes, axis) {
			kept = append(kept, axis)
		}
	}
	out := newArray(permuteDims(a.dims, kept)...)
	sums := slices.Repeat([]float64{start}, len(out.data))
	for i, x := range a.data {
		at, rest := make([]int, len(a.dims)), i
		for axis := len(a.dims) - 1; axis >= 0; axis-- {
			at[axis] = rest % a.dims[axis]
			rest /= a.dims[axis]
		}
		flat := 0
		for _, axis := range kept {
			flat = flat*a.dims[axis] + at[axis]
		}
		sums[flat] = f(sums[flat], float64(x))
	}
	for i, s := range sums {
		out.data[i] = float32(s)
	}
	return out
}

func permuteDims(dims, order []int) []int {
	out := make([]int, len(order))
	for i, axis := range order {
		out[i] = dims[axis]
	}
	return out
}

func TestReductionsMatchPlainGo(t *testing.T) {
	b := openBackend(t)
	plus := func(s, x float64) float64 { return s + x }
	tests := []struct {
		name  string
		graph func(x *Node, axes ...int) *Node
		start float64
		plain func(s, x float64) float64
	}{
		{"sum", ReduceSum, 0, plus},
		{"max", ReduceMax, math.Inf(-1), math.Max},
		{"min", ReduceMin, math.Inf(1), math.Min},
		{"product", func(x *Node, axes ...int) *Node { return ReduceMultiply(x, axes...) }, 1, func(s, x float64) float64 { return s * x }},
		{"sum of squares", func(x *Node, axes ...int) *Node { return ReduceSum(Square(x), axes...) }, 0, func(s, x float64) float64 { return s + x*x }},
		{"all positive", func(x *Node, axes ...int) *Node {
			return ConvertDType(ReduceLogicalAnd(IsPositive(x), axes...), dtypes.Float32)
		}, 1, func(s, x float64) float64 { return s * oneIf(x > 0) }},
		{"any positive", func(x *Node, axes ...int) *Node {
			return ConvertDType(ReduceLogicalOr(IsPositive(x), axes...), dtypes.Float32)
		}, 0, func(s, x float64) float64 { return max(s, oneIf(x > 0)) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := randomArray(4, 2, 3, 1, 4)
			for _, axes := range [][]int{{0}, {3}, {1, 3}, {2}, {0, 1, 2, 3}} {
				got := run(t, b, func(in []*Node) []*Node { return []*Node{tt.graph(in[0], axes...)} }, x)
				wantClose(t, tt.name, got[0], fold(x, tt.start, axes, tt.plain), 1e-5)
			}
		})
	}
}

func TestLongSumsOfSquaresMatchPlainGo(t *testing.T) {
	b := openBackend(t)
	x := randomArray(5, 3, 2, 2000) // long enough to become a product
	got := run(t, b, func(in []*Node) []*Node { return []*Node{ReduceSum(Square(in[0]), 2)} }, x)
	wantClose(t, "squares", got[0], fold(x, 0, []int{2}, func(s, x float64) float64 { return s + x*x }), 1e-5)
}

func TestArgMaxAndArgMinFindThePlace(t *testing.T) {
	b := openBackend(t)
	x := array{[]int{2, 3}, []float32{2, 0, 7, -3, 4, 2}}
	got := run(t, b, func(in []*Node) []*Node {
		return []*Node{
			ConvertDType(ArgMax(in[0], 1, dtypes.Int32), dtypes.Float32),
			ConvertDType(ArgMin(in[0], 0, dtypes.Int32), dtypes.Float32),
		}
	}, x)
	wantClose(t, "largest", got[0], array{[]int{2}, []float32{2, 1}}, 0)
	wantClose(t, "smallest", got[1], array{[]int{3}, []float32{1, 0, 1}}, 0)
}

func TestDotProductsMatchNaiveLoops(t *testing.T) {
	b := openBackend(t)
	tests := []struct {
		name                     string
		x, y                     []int
		xSum, xEach, ySum, yEach []int
	}{
		{"matrices", []int{3, 4}, []int{4, 5}, []int{1}, nil, []int{0}, nil},
		{"left transposed", []int{4, 3}, []int{4, 5}, []int{0}, nil, []int{0}, nil},
		{"right transposed", []int{3, 4}, []int{5, 4}, []int{1}, nil, []int{1}, nil},
		{"vectors", []int{6}, []int{6}, []int{0}, nil, []int{0}, nil},
		{"outer product", []int{3}, []int{4}, nil, nil, nil, nil},
		{"a batch", []int{2, 3, 4}, []int{2, 4, 5}, []int{2}, []int{0}, []int{1}, []int{0}},
		{"a batch of attention scores", []int{2, 4, 3}, []int{2, 4, 5}, []int{1}, []int{0}, []int{1}, []int{0}},
		{"the batch inside", []int{3, 2, 4}, []int{4, 2, 5}, []int{2}, []int{1}, []int{0}, []int{1}},
		{"two axes summed", []int{2, 3, 4}, []int{4, 3, 5}, []int{1, 2}, nil, []int{1, 0}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, y := randomArray(6, tt.x...), randomArray(7, tt.y...)
			build := func(x, y *Node) *Node { return DotGeneral(x, tt.xSum, tt.xEach, y, tt.ySum, tt.yEach) }
			want := naiveDot(x, y, tt.xSum, tt.xEach, tt.ySum, tt.yEach)
			got := run(t, b, func(in []*Node) []*Node { return []*Node{build(in[0], in[1])} }, x, y)
			wantClose(t, tt.name, got[0], want, 1e-5)
			checkGradients(t, b, func(in []*Node) *Node { return build(in[0], in[1]) }, x, y)
		})
	}
}

// naiveDot sums over every pair of elements that meet.
func naiveDot(x, y array, xSum, xEach, ySum, yEach []int) array {
	free := func(rank int, sum, each []int) (axes []int) {
		for a := range rank {
			if !slices.Contains(sum, a) && !slices.Contains(each, a) {
				axes = append(axes, a)
			}
		}
		return axes
	}
	xFree, yFree := free(len(x.dims), xSum, xEach), free(len(y.dims), ySum, yEach)
	out := newArray(slices.Concat(permuteDims(x.dims, xEach), permuteDims(x.dims, xFree), permuteDims(y.dims, yFree))...)
	for i := range x.data {
		p := place(i, x.dims)
		for j := range y.data {
			q := place(j, y.dims)
			if !slices.Equal(permuteDims(p, xSum), permuteDims(q, ySum)) || !slices.Equal(permuteDims(p, xEach), permuteDims(q, yEach)) {
				continue
			}
			flat := 0
			for axis, at := range slices.Concat(permuteDims(p, xEach), permuteDims(p, xFree), permuteDims(q, yFree)) {
				flat = flat*out.dims[axis] + at
			}
			out.data[flat] += x.data[i] * y.data[j]
		}
	}
	return out
}

// place returns the indices of flat index i.
func place(i int, dims []int) []int {
	at := make([]int, len(dims))
	for axis := len(dims) - 1; axis >= 0; axis-- {
		at[axis] = i % dims[axis]
		i /= dims[axis]
	}
	return at
}
