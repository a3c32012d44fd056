package nn

import (
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/noise"
)

func tensor(values []float32, dims ...int) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(values, dims...)
}

func normals(name string, n int) []float32 {
	x := make([]float32, n)
	noise.New(1, "test", name).Normals(x, 0)
	return x
}

// compute runs build once and returns its output.
func compute(t *testing.T, build func(in []*Node) *Node, inputs ...*tensors.Tensor) []float32 {
	t.Helper()
	p, err := engine.Compile(enginetest.Open(t), t.Name(), func(g *Graph) []*Node {
		var nodes []*Node
		for _, in := range inputs {
			nodes = append(nodes, Parameter(g, "in"+string(rune('a'+len(nodes))), in.Shape()))
		}
		return []*Node{build(nodes)}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(inputs...)
	if err != nil {
		t.Fatal(err)
	}
	flat, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		t.Fatal(err)
	}
	return flat
}

// backbones are the two networks with small images.
func backbones(t *testing.T) map[string]Network {
	t.Helper()
	networks := map[string]Network{}
	for _, b := range []string{BackboneUNet, BackboneViT} {
		n, err := New(Config{Backbone: b, Size: Tiny, In: 3, Out: 2})
		if err != nil {
			t.Fatal(err)
		}
		networks[b] = n
	}
	return networks
}

// busy returns weights of which none is zero, as after training.
func busy(l *Layout) []float32 {
	w := l.Init(1)
	for i, v := range normals("busy", len(w)) {
		w[i] += 0.05 * v
	}
	return w
}

// apply runs a network with constant weights on n images of 16x16 pixels.
func apply(t *testing.T, n Network, weights, x, times []float32) []float32 {
	t.Helper()
	return compute(t, func(in []*Node) *Node {
		return n.Apply(Constants(in[0].Graph(), weights), in[0], in[1])
	}, tensor(x, len(times), 3, 16, 16), tensor(times, len(times)))
}

const imageSize = 3 * 16 * 16 // numbers of one input image

func TestSizesHaveTheirDocumentedNumberOfWeights(t *testing.T) {
	bounds := map[string][2]int{ // millions, times ten
		Tiny: {1, 3}, Small: {18, 24}, Base: {75, 90}, Large: {270, 360},
	}
	for size, b := range bounds {
		for _, backbone := range []string{BackboneUNet, BackboneViT} {
			n, err := Count(Config{Backbone: backbone, Size: size, In: 5, Out: 2})
			if err != nil {
				t.Fatal(err)
			}
			if n < b[0]*100_000 || n > b[1]*100_000 {
				t.Errorf("%s %s has %d weights, want %.1f to %.1f million", size, backbone, n, float64(b[0])/10, float64(b[1])/10)
			}
		}
	}
}

func TestBadConfigsAreNamed(t *testing.T) {
	tests := []struct {
		cfg  Config
		want string
	}{
		{Config{Backbone: "lenet", Size: Tiny, In: 1, Out: 1}, `backbone is "lenet"`},
		{Config{Backbone: BackboneUNet, Size: "huge", In: 1, Out: 1}, `size is "huge"`},
		{Config{Backbone: BackboneUNet, Size: Tiny, Out: 1}, "0 input channels"},
		{Config{Backbone: BackboneViT, Size: Tiny, In: 1}, "0 output channels"},
	}
	for _, tt := range tests {
		if _, err := New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%+v) = %v, want an error with %q", tt.cfg, err, tt.want)
		}
	}
}

func TestBatchOfOneEqualsTheSameItemInABatchOfFour(t *testing.T) {
	for name, n := range backbones(t) {
		t.Run(name, func(t *testing.T) {
			weights, x := busy(n.Layout()), normals("x", 4*imageSize)
			times := []float32{0, 0.3, 0.6, 1}
			four := apply(t, n, weights, x, times)
			for i := range times {
				one := apply(t, n, weights, x[i*imageSize:(i+1)*imageSize], times[i:i+1])
				if d := largestDifference(one, four[i*len(one):(i+1)*len(one)]); d > 1e-5*rms(one) {
					t.Errorf("item %d alone differs by %g from itself in the batch, of %g", i, d, rms(one))
				}
			}
		})
	}
}

func TestNothingLeaksAcrossSamples(t *testing.T) {
	for name, n := range backbones(t) {
		t.Run(name, func(t *testing.T) {
			weights, x := busy(n.Layout()), normals("x", 3*imageSize)
			before := apply(t, n, weights, x, []float32{0.2, 0.2, 0.2})
			for i := range imageSize {
				x[imageSize+i] = 1e3 // the middle sample
			}
			after := apply(t, n, weights, x, []float32{0.2, 0.9, 0.2})
			third := len(before) / 3
			if !slices.Equal(before[:third], after[:third]) || !slices.Equal(before[2*third:], after[2*third:]) {
				t.Error("another sample of the batch changed the answer")
			}
			if slices.Equal(before[third:2*third], after[third:2*third]) {
				t.Error("the sample that was changed gives the same answer")
			}
		})
	}
}

func TestEveryPixelAndTheTimeMatter(t *testing.T) {
	for name, n := range backbones(t) {
		t.Run(name, func(t *testing.T) {
			weights, x := busy(n.Layout()), normals("x", imageSize)
			base := apply(t, n, weights, x, []float32{0.5})
			if slices.Equal(base, apply(t, n, weights, x, []float32{0.501})) {
				t.Error("the time does not matter")
			}
			x[0]++ // the first corner must reach the last through attention
			moved := apply(t, n, weights, x, []float32{0.5})
			if moved[len(moved)-1] == base[len(base)-1] {
				t.Error("the far corner does not see the near one")
			}
		})
	}
}

func TestUntrainedNetworkAnswersZero(t *testing.T) {
	for name, n := range backbones(t) {
		out := apply(t, n, n.Layout().Init(3), normals("x", imageSize), []float32{0.5})
		if rms(out) != 0 {
			t.Errorf("%s answers %g before it has learned anything", name, rms(out))
		}
	}
}

func TestWrongShapesAreErrors(t *testing.T) {
	unet := backbones(t)[BackboneUNet]
	tests := []struct {
		name string
		dims []int
		want string
	}{
		{"side", []int{2, 3, 16, 12}, "16x12, sides must be multiples of 8"},
		{"channels", []int{2, 4, 16, 16}, "4"},
		{"rank", []int{2, 3, 16}, "rank"},
	}
	for _, tt := range tests {
		_, err := engine.Compile(enginetest.Open(t), "wrong", func(g *Graph) []*Node {
			x := Parameter(g, "x", tensor(make([]float32, product(tt.dims)), tt.dims...).Shape())
			times := Parameter(g, "t", tensor([]float32{0, 0}, 2).Shape())
			return []*Node{unet.Apply(Constants(g, unet.Layout().Init(1)), x, times)}
		})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func product(dims []int) int { return Param{Dims: dims}.Size() }

func rms(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(len(x)))
}

func largestDifference(a, b []float32) float64 {
	largest := 0.0
	for i := range a {
		largest = max(largest, math.Abs(float64(a[i]-b[i])))
	}
	return largest
}
