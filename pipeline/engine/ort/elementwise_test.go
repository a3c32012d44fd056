package ort

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// float32Tolerance is a few units in the last place of float32; ONNX
// Runtime's exp and tanh are polynomial approximations of that accuracy.
const float32Tolerance = 4e-6

func TestUnaryOperationsMatchPlainGo(t *testing.T) {
	b := openBackend(t)
	positive := func(f func(float64) float64) func(float64) float64 { return f }
	tests := []struct {
		name  string
		graph func(*Node) *Node
		plain func(float64) float64
	}{
		{"abs", Abs, math.Abs},
		{"ceil", Ceil, math.Ceil},
		{"cos", Cos, math.Cos},
		{"erf", Erf, math.Erf},
		{"exp", Exp, math.Exp},
		{"floor", Floor, math.Floor},
		{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"neg", Neg, func(x float64) float64 { return -x }},
		{"round", Round, math.RoundToEven},
		{"sign", Sign, func(x float64) float64 { return math.Copysign(1, x) }},
		{"sin", Sin, math.Sin},
		{"tanh", Tanh, math.Tanh},
		{
			"log of a positive number", func(x *Node) *Node { return Log(AddScalar(Abs(x), 0.5)) },
			positive(func(x float64) float64 { return math.Log(math.Abs(x) + 0.5) }),
		},
		{
			"sqrt of a positive number", func(x *Node) *Node { return Sqrt(Abs(x)) },
			positive(func(x float64) float64 { return math.Sqrt(math.Abs(x)) }),
		},
		{
			"rsqrt of a positive number", func(x *Node) *Node { return Rsqrt(AddScalar(Abs(x), 0.5)) },
			positive(func(x float64) float64 { return 1 / math.Sqrt(math.Abs(x)+0.5) }),
		},
		{"silu", func(x *Node) *Node { return Mul(x, Sigmoid(x)) }, func(x float64) float64 { return x / (1 + math.Exp(-x)) }},
		{"clip", func(x *Node) *Node { return ClipScalar(x, -0.5, 0.25) }, func(x float64) float64 { return min(max(x, -0.5), 0.25) }},
		{
			"is finite", func(x *Node) *Node { return ConvertDType(IsFinite(Log(x)), dtypes.Float32) },
			func(x float64) float64 { return oneIf(x > 0) },
		},
		{
			"is NaN", func(x *Node) *Node { return ConvertDType(IsNaN(Log(x)), dtypes.Float32) },
			func(x float64) float64 { return oneIf(x < 0) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, dims := range [][]int{{}, {1}, {7}, {2, 3, 5}} {
				x := randomArray(1, dims...)
				got := run(t, b, func(in []*Node) []*Node { return []*Node{tt.graph(in[0])} }, x)
				wantClose(t, tt.name, got[0], x.apply(tt.plain), float32Tolerance)
			}
		})
	}
}

func TestBinaryOperationsMatchPlainGo(t *testing.T) {
	b := openBackend(t)
	asFloat := func(f func(a, b *Node) *Node) func(a, b *Node) *Node {
		return func(a, b *Node) *Node { return ConvertDType(f(a, b), dtypes.Float32) }
	}
	tests := []struct {
		name  string
		graph func(x, y *Node) *Node
		plain func(x, y float64) float64
	}{
		{"add", Add, func(x, y float64) float64 { return x + y }},
		{"sub", Sub, func(x, y float64) float64 { return x - y }},
		{"mul", Mul, func(x, y float64) float64 { return x * y }},
		{"div", Div, func(x, y float64) float64 { return x / y }},
		{"max", Max, math.Max},
		{"min", Min, math.Min},
		{"remainder with the sign of the dividend", Mod, math.Mod},
		{"power", func(x, y *Node) *Node { return Pow(AddScalar(Abs(x), 0.5), y) }, func(x, y float64) float64 { return math.Pow(math.Abs(x)+0.5, y) }},
		{"equal", asFloat(func(x, y *Node) *Node { return Equal(Floor(x), Floor(y)) }), func(x, y float64) float64 { return oneIf(math.Floor(x) == math.Floor(y)) }},
		{"not equal", asFloat(func(x, y *Node) *Node { return NotEqual(Floor(x), Floor(y)) }), func(x, y float64) float64 { return oneIf(math.Floor(x) != math.Floor(y)) }},
		{"greater", asFloat(GreaterThan), func(x, y float64) float64 { return oneIf(x > y) }},
		{"greater or equal", asFloat(GreaterOrEqual), func(x, y float64) float64 { return oneIf(x >= y) }},
		{"less", asFloat(LessThan), func(x, y float64) float64 { return oneIf(x < y) }},
		{"less or equal", asFloat(LessOrEqual), func(x, y float64) float64 { return oneIf(x <= y) }},
		{"and", asFloat(func(x, y *Node) *Node { return LogicalAnd(IsPositive(x), IsPositive(y)) }), func(x, y float64) float64 { return oneIf(x > 0 && y > 0) }},
		{"or", asFloat(func(x, y *Node) *Node { return LogicalOr(IsPositive(x), IsPositive(y)) }), func(x, y float64) float64 { return oneIf(x > 0 || y > 0) }},
		{"xor", asFloat(func(x, y *Node) *Node { return LogicalXor(IsPositive(x), IsPositive(y)) }), func(x, y float64) float64 { return oneIf((x > 0) != (y > 0)) }},
		{"not", asFloat(func(x, y *Node) *Node { return LogicalNot(LessThan(x, y)) }), func(x, y float64) float64 { return oneIf(x >= y) }},
		{"where", func(x, y *Node) *Node {
			return Where(LessThan(x, y), Add(x, ZerosLike(y)), Add(MulScalar(y, 2), ZerosLike(x)))
		}, func(x, y float64) float64 {
			if x < y {
				return x
			}
			return 2 * y
		}},
	}
	pairs := [][2][]int{{{}, {}}, {{3, 4}, {3, 4}}, {{3, 4}, {}}, {{}, {3, 4}}, {{3, 1}, {3, 4}}, {{1, 4}, {3, 1}}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, dims := range pairs {
				x, y := randomArray(2, dims[0]...), randomArray(3, dims[1]...)
				got := run(t, b, func(in []*Node) []*Node { return []*Node{tt.graph(in[0], in[1])} }, x, y)
				wantClose(t, tt.name, got[0], combine(x, y, tt.plain), 4*float32Tolerance)
			}
		})
	}
}

// combine applies f to two arrays that broadcast.
func combine(x, y array, f func(x, y float64) float64) array {
	dims, _ := broadcast(x.dims, y.dims)
	out := newArray(dims...)
	for i := range out.data {
		out.data[i] = float32(f(float64(x.data[sourceIndex(i, dims, x.dims)]), float64(y.data[sourceIndex(i, dims, y.dims)])))
	}
	return out
}

// sourceIndex returns which element of a smaller array stands at flat index i
// of the array it is broadcast to.
func sourceIndex(i int, dims, small []int) int {
	index, stride := 0, 1
	for a := len(dims) - 1; a >= 0; a-- {
		at := i % dims[a]
		i /= dims[a]
		s := a - (len(dims) - len(small))
		if s < 0 {
			continue
		}
		if small[s] > 1 {
			index += at * stride
		}
		stride *= small[s]
	}
	return index
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func TestOperationWithoutLoweringIsAnErrorThatNamesIt(t *testing.T) {
	b := openBackend(t)
	_, err := tryRun(b, func(in []*Node) []*Node { return []*Node{Real(FFT(ConvertDType(in[0], dtypes.Complex64)))} }, randomArray(1, 8))
	if err == nil {
		t.Fatal("a Fourier transform ran; it has no lowering")
	}
	_, err = tryRun(b, func(in []*Node) []*Node {
		return []*Node{MaxPool(in[0]).Window(2).Done()}
	}, randomArray(1, 1, 4, 4, 1))
	if err == nil || !strings.Contains(err.Error(), "ReduceWindow") {
		t.Errorf("error of a pooling operation is %v, want one that names ReduceWindow", err)
	}
}
