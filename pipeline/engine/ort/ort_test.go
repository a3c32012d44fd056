package ort

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// openBackend returns a CPU backend with two threads, or skips the test where
// ONNX Runtime is not installed.
func openBackend(t testing.TB) *Backend {
	t.Helper()
	if _, err := LibraryPath(""); err != nil {
		t.Skipf("ONNX Runtime is not here: %v", err)
	}
	b, err := sharedBackend()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var sharedBackend = sync.OnceValues(func() (*Backend, error) { return New(Config{Threads: 2}) })

// array is a tensor in plain Go, for reference computations.
type array struct {
	dims []int
	data []float32
}

func newArray(dims ...int) array { return array{dims: dims, data: make([]float32, product(dims))} }

// randomArray has normal elements that depend on seed only.
func randomArray(seed uint64, dims ...int) array {
	r := rand.New(rand.NewPCG(seed, 7))
	a := newArray(dims...)
	for i := range a.data {
		a.data[i] = float32(r.NormFloat64())
	}
	return a
}

func (a array) apply(f func(float64) float64) array {
	out := newArray(a.dims...)
	for i, x := range a.data {
		out.data[i] = float32(f(float64(x)))
	}
	return out
}

func (a array) tensor() *tensors.Tensor {
	if len(a.dims) == 0 {
		return tensors.FromScalar(a.data[0])
	}
	return tensors.FromFlatDataAndDimensions(a.data, a.dims...)
}

// run executes a graph function on b and returns its outputs.
func run(t testing.TB, b *Backend, f func(in []*graph.Node) []*graph.Node, inputs ...array) []array {
	t.Helper()
	out, err := tryRun(b, f, inputs...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryRun(b *Backend, f func(in []*graph.Node) []*graph.Node, inputs ...array) ([]array, error) {
	exec, err := graph.NewExec(b, f)
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	args := make([]any, len(inputs))
	for i, a := range inputs {
		args[i] = a.tensor()
	}
	results, err := exec.Exec(args...)
	if err != nil {
		return nil, err
	}
	out := make([]array, len(results))
	for i, r := range results {
		data, err := tensors.CopyFlatData[float32](r)
		if err != nil {
			return nil, err
		}
		out[i] = array{dims: r.Shape().Dimensions, data: data}
		r.FinalizeAll()
	}
	return out, nil
}

// wantClose compares element by element, relative to the larger of 1 and the
// wanted magnitude. NaN equals NaN.
func wantClose(t testing.TB, name string, got, want array, tolerance float64) {
	t.Helper()
	if product(got.dims) != product(want.dims) || len(got.dims) != len(want.dims) {
		t.Fatalf("%s: dimensions %v, want %v", name, got.dims, want.dims)
	}
	for i, w := range want.data {
		g := float64(got.data[i])
		if math.IsNaN(g) && math.IsNaN(float64(w)) || g == float64(w) {
			continue
		}
		if d := math.Abs(g - float64(w)); !(d <= tolerance*max(1, math.Abs(float64(w)))) {
			t.Fatalf("%s: element %d of %v is %v, want %v (difference %g)", name, i, want.dims, g, w, d)
		}
	}
}

// readFloats copies a result and releases it.
func readFloats(t testing.TB, r *tensors.Tensor) []float32 {
	t.Helper()
	data, err := tensors.CopyFlatData[float32](r)
	if err != nil {
		t.Fatal(err)
	}
	r.FinalizeAll()
	return data
}
