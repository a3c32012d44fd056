package ort

import (
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// pick builds an array whose element at each place is that of a at source, or
// fill where source returns false.
func pick(a array, fill float32, dims []int, source func(at []int) ([]int, bool)) array {
	out := newArray(dims...)
	at := make([]int, len(dims))
	for i := range out.data {
		rest := i
		for axis := len(dims) - 1; axis >= 0; axis-- {
			at[axis] = rest % dims[axis]
			rest /= dims[axis]
		}
		out.data[i] = fill
		if from, ok := source(at); ok {
			flat := 0
			for axis, p := range from {
				flat = flat*a.dims[axis] + p
			}
			out.data[i] = a.data[flat]
		}
	}
	return out
}

func TestShapingOperationsMoveElementsWherePlainGoPutsThem(t *testing.T) {
	b := openBackend(t)
	always := func(f func(at []int) []int) func(at []int) ([]int, bool) {
		return func(at []int) ([]int, bool) { return f(at), true }
	}
	x := randomArray(1, 2, 3, 4)
	tests := []struct {
		name   string
		graph  func(x *Node) *Node
		dims   []int
		source func(at []int) ([]int, bool)
	}{
		{"transpose", func(x *Node) *Node { return TransposeAllDims(x, 2, 0, 1) }, []int{4, 2, 3}, always(func(at []int) []int { return []int{at[1], at[2], at[0]} })},
		{"two transposes", func(x *Node) *Node { return TransposeAllDims(TransposeAllDims(x, 2, 0, 1), 2, 1, 0) }, []int{3, 2, 4}, always(func(at []int) []int { return []int{at[1], at[0], at[2]} })},
		{"reshape and back", func(x *Node) *Node { return Reshape(Reshape(x, 6, 4), 2, 3, 4) }, []int{2, 3, 4}, always(func(at []int) []int { return at })},
		{"slice with a stride", func(x *Node) *Node { return Slice(x, AxisRange(), AxisRange(1), AxisRange().Stride(3)) }, []int{2, 2, 2}, always(func(at []int) []int { return []int{at[0], at[1] + 1, at[2] * 3} })},
		{"reverse", func(x *Node) *Node { return Reverse(x, 0, 2) }, []int{2, 3, 4}, always(func(at []int) []int { return []int{1 - at[0], at[1], 3 - at[2]} })},
		{"broadcast along a new axis", func(x *Node) *Node { return BroadcastToDims(Reshape(x, 2, 1, 3, 4), 2, 5, 3, 4) }, []int{2, 5, 3, 4}, always(func(at []int) []int { return []int{at[0], at[2], at[3]} })},
		{"pixels repeated", func(x *Node) *Node {
			return Reshape(BroadcastToDims(Reshape(x, 1, 2, 3, 1, 4, 1), 1, 2, 3, 2, 4, 3), 2, 6, 12)
		}, []int{2, 6, 12}, always(func(at []int) []int { return []int{at[0], at[1] / 2, at[2] / 3} })},
		{"pixels repeated, then used small", func(x *Node) *Node {
			return Neg(Neg(BroadcastToDims(Reshape(x, 2, 3, 1, 4, 1), 2, 3, 1, 4, 2)))
		}, []int{2, 3, 1, 4, 2}, always(func(at []int) []int { return []int{at[0], at[1], at[3]} })},
		{"pad around and between", func(x *Node) *Node {
			return Pad(x, Scalar(x.Graph(), dtypes.Float32, 7), PadAxis{}, PadAxis{Start: 1, Interior: 1}, PadAxis{End: 2, Interior: 2})
		}, []int{2, 6, 12}, func(at []int) ([]int, bool) {
			ok := at[1] >= 1 && (at[1]-1)%2 == 0 && at[2]%3 == 0 && at[2]/3 < 4
			return []int{at[0], max(at[1]-1, 0) / 2, min(at[2]/3, 3)}, ok
		}},
		{"pad by a negative amount", func(x *Node) *Node {
			return Pad(x, Scalar(x.Graph(), dtypes.Float32, 7), PadAxis{}, PadAxis{}, PadAxis{Start: -1, End: 1})
		}, []int{2, 3, 4}, func(at []int) ([]int, bool) { return []int{at[0], at[1], min(at[2]+1, 3)}, at[2] < 3 }},
		{"concatenate", func(x *Node) *Node { return Concatenate([]*Node{x, Slice(x, AxisRange(), AxisRange(0, 1))}, 1) }, []int{2, 4, 4}, always(func(at []int) []int { return []int{at[0], at[1] % 3, at[2]} })},
		{"one part concatenated", func(x *Node) *Node { return Concatenate([]*Node{x}, 1) }, []int{2, 3, 4}, always(func(at []int) []int { return at })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, b, func(in []*Node) []*Node { return []*Node{tt.graph(in[0])} }, x)
			wantClose(t, tt.name, got[0], pick(x, 7, tt.dims, tt.source), 0)
		})
	}
}

func TestIotaCountsAlongItsAxis(t *testing.T) {
	b := openBackend(t)
	got := run(t, b, func(in []*Node) []*Node {
		g := in[0].Graph()
		return []*Node{Iota(g, shapes.Make(dtypes.Float32, 2, 3), 1), Iota(g, shapes.Make(dtypes.Float32, 2, 3), 0)}
	}, randomArray(1, 1))
	wantClose(t, "along columns", got[0], array{[]int{2, 3}, []float32{0, 1, 2, 0, 1, 2}}, 0)
	wantClose(t, "along rows", got[1], array{[]int{2, 3}, []float32{0, 0, 0, 1, 1, 1}}, 0)
}

func TestConversionsKeepValuesThatBothTypesHold(t *testing.T) {
	b := openBackend(t)
	x := array{[]int{5}, []float32{-2, -0.75, 0, 1.5, 3}}
	for _, tt := range []struct {
		through dtypes.DType
		want    []float32
	}{
		{dtypes.Float64, []float32{-2, -0.75, 0, 1.5, 3}},
		{dtypes.Int32, []float32{-2, 0, 0, 1, 3}},
		{dtypes.Int64, []float32{-2, 0, 0, 1, 3}},
		{dtypes.Bool, []float32{1, 1, 0, 1, 1}},
	} {
		got := run(t, b, func(in []*Node) []*Node {
			return []*Node{ConvertDType(ConvertDType(in[0], tt.through), dtypes.Float32)}
		}, x)
		wantClose(t, tt.through.String(), got[0], array{[]int{5}, tt.want}, 0)
	}
}

func TestOutputsMayRepeatBeInputsOrBeConstants(t *testing.T) {
	b := openBackend(t)
	x := randomArray(1, 3)
	got := run(t, b, func(in []*Node) []*Node {
		y := Neg(in[0])
		return []*Node{y, y, in[0], Const(in[0].Graph(), []float32{1, 2}), Scalar(in[0].Graph(), dtypes.Float32, 5)}
	}, x)
	minus := x.apply(func(v float64) float64 { return -v })
	for i, want := range []array{minus, minus, x, {[]int{2}, []float32{1, 2}}, {nil, []float32{5}}} {
		wantClose(t, "output", got[i], want, 0)
	}
}

func TestGraphWithoutInputsRuns(t *testing.T) {
	b := openBackend(t)
	g := newBuilder(b, "")
	c, err := g.Constant([]float32{1, 2, 3}, 3)
	if err != nil {
		t.Fatal(err)
	}
	y, err := g.Neg(c)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := g.Compile([]backends.Op{y}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	out, err := exec.Execute(nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 3)
	if err := b.BufferToFlatData(out[0], got); err != nil {
		t.Fatal(err)
	}
	wantClose(t, "constant", array{[]int{3}, got}, array{[]int{3}, []float32{-1, -2, -3}}, 0)
}
