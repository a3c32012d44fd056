package nn

import (
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
)

// applyOn runs a network in dtype on a backend, on one image of 16x16 pixels.
func applyOn(t *testing.T, b backends.Backend, n Network, dtype dtypes.DType) []float32 {
	t.Helper()
	weights := busy(n.Layout())
	x, times := tensor(normals("x", imageSize), 1, 3, 16, 16), tensor([]float32{0.2}, 1)
	p, err := engine.Compile(b, t.Name(), func(g *Graph) []*Node {
		w := WithDType(Constants(g, weights), dtype)
		return []*Node{n.Apply(w, Parameter(g, "x", x.Shape()), Parameter(g, "t", times.Shape()))}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(x, times)
	if err != nil {
		t.Fatal(err)
	}
	flat, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		t.Fatal(err)
	}
	return flat
}

// plainGo returns GoMLX's own backend in plain Go. It cannot train
// convolutions, but it can apply them, and in bfloat16 too, which ONNX Runtime
// cannot on processors. Operations run one after the other: side by side they
// race (GoMLX 0.26).
func plainGo(t *testing.T) backends.Backend {
	t.Helper()
	b, err := simplego.New("ops_sequential")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

func TestTwoEnginesAgree(t *testing.T) {
	for name, n := range backbones(t) {
		want := applyOn(t, plainGo(t), n, dtypes.Float32)
		got := applyOn(t, enginetest.Open(t), n, dtypes.Float32)
		if d := largestDifference(got, want); d > 1e-4*rms(want) {
			t.Errorf("%s: the engines differ by %g, of %g", name, d, rms(want))
		}
	}
}

func TestBFloat16StaysNearFloat32(t *testing.T) {
	for name, n := range backbones(t) {
		want := applyOn(t, plainGo(t), n, dtypes.Float32)
		got := applyOn(t, plainGo(t), n, dtypes.BFloat16)
		for i := range got {
			got[i] -= want[i]
		}
		// Eight bits of mantissa through a few dozen layers.
		if off := rms(got) / rms(want); off == 0 || off > 0.1 {
			t.Errorf("%s: bfloat16 is off by %.3f of the answer, want a little", name, off)
		}
	}
}
