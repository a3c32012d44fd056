package ort

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// checkGradients compares the gradient of a weighted sum of f's output with
// central differences of that sum.
func checkGradients(t *testing.T, b *Backend, f func(in []*Node) *Node, inputs ...array) {
	t.Helper()
	loss := func(in []*Node) *Node {
		y := f(in)
		// Unequal weights, so that errors cannot cancel.
		weights := Cos(AddScalar(IotaFull(y.Graph(), y.Shape()), 0.5))
		return ReduceAllSum(Mul(y, weights))
	}
	got := run(t, b, func(in []*Node) []*Node { return Gradient(loss(in), in...) }, inputs...)
	exec, err := NewExec(b, func(in []*Node) *Node { return loss(in) })
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	value := func() float64 {
		args := make([]any, len(inputs))
		for i, a := range inputs {
			args[i] = a.tensor()
		}
		out, err := exec.Exec(args...)
		if err != nil {
			t.Fatal(err)
		}
		return float64(readFloats(t, out[0])[0])
	}
	// In float32 the error of a central difference is least near this step.
	const step = 1.0 / 128
	for k, a := range inputs {
		for i := 0; i < len(a.data); i += 1 + len(a.data)/7 {
			x := a.data[i]
			a.data[i] = x + step
			up := value()
			a.data[i] = x - step
			down := value()
			a.data[i] = x
			want := (up - down) / (2 * step)
			if d := math.Abs(float64(got[k].data[i]) - want); d > 5e-3*max(1, math.Abs(want)) {
				t.Errorf("gradient of input %d at %d is %v, differences give %v", k, i, got[k].data[i], want)
			}
		}
	}
}

func TestGradientsMatchFiniteDifferences(t *testing.T) {
	b := openBackend(t)
	positive := func(x *Node) *Node { return AddScalar(Square(x), 0.5) }
	silu := func(x *Node) *Node { return Mul(x, Sigmoid(x)) }
	tests := []struct {
		name string
		f    func(x, y *Node) *Node
	}{
		{"add", func(x, y *Node) *Node { return Add(x, y) }},
		{"sub", func(x, y *Node) *Node { return Sub(x, y) }},
		{"mul", func(x, y *Node) *Node { return Mul(x, y) }},
		{"div", func(x, y *Node) *Node { return Div(x, positive(y)) }},
		{"power", func(x, y *Node) *Node { return Pow(positive(x), y) }},
		{"max", func(x, y *Node) *Node { return Max(x, AddScalar(y, 0.01)) }},
		{"min", func(x, y *Node) *Node { return Min(x, AddScalar(y, 0.01)) }},
		{"abs", func(x, y *Node) *Node { return Abs(Add(x, y)) }},
		{"exp and log", func(x, y *Node) *Node { return Mul(Exp(x), Log(positive(y))) }},
		{"sqrt", func(x, y *Node) *Node { return Sqrt(positive(Mul(x, y))) }},
		{"sin and cos", func(x, y *Node) *Node { return Mul(Sin(x), Cos(y)) }},
		{"tanh", func(x, y *Node) *Node { return Tanh(Mul(x, y)) }},
		{"erf", func(x, y *Node) *Node { return Erf(Mul(x, y)) }},
		{"sigmoid", func(x, y *Node) *Node { return Sigmoid(Mul(x, y)) }},
		{"silu", func(x, y *Node) *Node { return Mul(silu(x), silu(y)) }},
		{"silu of a sum that is used again", func(x, y *Node) *Node { s := Add(x, y); return Add(silu(s), Square(s)) }},
		{"silu with a path around it", func(x, y *Node) *Node { s := Mul(x, y); return Add(s, Mul(y, silu(s))) }},
		{"not quite silu", func(x, y *Node) *Node { return Mul(y, Sigmoid(x)) }},
		{"where", func(x, y *Node) *Node { return Where(IsPositive(x), Add(x, y), Mul(x, y)) }},
		{"clip", func(x, y *Node) *Node { return ClipScalar(Add(x, y), -1.01, 1.01) }},
		{"mean and variance", func(x, y *Node) *Node {
			d := Sub(x, ReduceAndKeep(x, ReduceMean, 1))
			return Add(Div(d, Sqrt(AddScalar(ReduceAndKeep(Square(d), ReduceMean, 1), 0.1))), y)
		}},
		{"softmax", func(x, y *Node) *Node { return Mul(Softmax(x, 1), y) }},
		{"max along an axis", func(x, y *Node) *Node { return Mul(ReduceAndKeep(x, ReduceMax, 1), y) }},
		{"sum to a scalar", func(x, y *Node) *Node { return Mul(ReduceAllSum(x), ReduceAllSum(y)) }},
		{"scale per row", func(x, y *Node) *Node { return Mul(x, Reshape(Slice(y, AxisRange(), AxisElem(0)), 3, 1)) }},
		{"transpose and concatenate", func(x, y *Node) *Node { return Concatenate([]*Node{Transpose(x, 0, 1), Square(Transpose(y, 0, 1))}, 0) }},
		{"slice with a stride and pad", func(x, y *Node) *Node {
			return Mul(Slice(x, AxisRange(), AxisRange().Stride(2)), Slice(y, AxisRange(), AxisRange(1, 3)))
		}},
		{"pixels repeated and averaged", func(x, y *Node) *Node {
			up := Reshape(BroadcastToDims(Reshape(x, 1, 1, 3, 1, 4, 1), 1, 1, 3, 2, 4, 2), 1, 1, 6, 8)
			return Mul(ReduceMean(Reshape(Square(up), 3, 2, 4, 2), 1, 3), y)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkGradients(t, b, func(in []*Node) *Node { return tt.f(in[0], in[1]) }, randomArray(11, 3, 4), randomArray(12, 3, 4))
		})
	}
}
