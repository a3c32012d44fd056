package ort

import (
	"fmt"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors/images"
)

// convCase is a convolution of [batch, in, height, width] with a window.
type convCase struct {
	name                      string
	batch, in, out            int
	height, width             int
	windowHeight, windowWidth int
	stride, dilation          int
	pad                       [2]int // before and after, on both axes
}

var convCases = []convCase{
	{"3x3 of few channels", 2, 3, 5, 7, 9, 3, 3, 1, 1, [2]int{1, 1}},
	{"3x3 of whole blocks of channels", 2, 32, 16, 6, 8, 3, 3, 1, 1, [2]int{1, 1}},
	{"3x3 of whole blocks on a large image", 1, 16, 32, 24, 24, 3, 3, 1, 1, [2]int{1, 1}},
	{"1x1", 3, 4, 6, 5, 5, 1, 1, 1, 1, [2]int{0, 0}},
	{"1x1 of whole blocks", 2, 16, 48, 5, 4, 1, 1, 1, 1, [2]int{0, 0}},
	{"without padding", 2, 3, 4, 8, 8, 3, 3, 1, 1, [2]int{0, 0}},
	{"unequal padding", 1, 2, 3, 6, 7, 3, 3, 1, 1, [2]int{2, 0}},
	{"without padding on a large image", 2, 3, 4, 26, 28, 3, 3, 1, 1, [2]int{0, 0}},
	{"unequal padding on a large image", 2, 3, 4, 24, 26, 5, 3, 1, 1, [2]int{2, 0}},
	{"a wide window on a large image", 3, 2, 3, 24, 23, 3, 5, 1, 1, [2]int{1, 1}},
	{"stride 2", 2, 3, 4, 9, 9, 3, 3, 2, 1, [2]int{1, 1}},
	{"stride 2 of whole blocks", 2, 16, 16, 8, 8, 3, 3, 2, 1, [2]int{1, 1}},
	{"stride 2 that leaves a rest", 1, 2, 3, 8, 6, 3, 3, 2, 1, [2]int{0, 0}},
	{"dilation 2", 2, 3, 4, 9, 8, 3, 3, 1, 2, [2]int{2, 2}},
	{"5x5", 1, 2, 3, 9, 9, 5, 5, 1, 1, [2]int{2, 2}},
	{"a single pixel", 4, 16, 32, 1, 1, 1, 1, 1, 1, [2]int{0, 0}},
}

func (c convCase) outSize() (height, width int) {
	size := func(length, window int) int {
		return (length+c.pad[0]+c.pad[1]-(window-1)*c.dilation-1)/c.stride + 1
	}
	return size(c.height, c.windowHeight), size(c.width, c.windowWidth)
}

// each calls f for every product in the convolution, with the flat places of
// input, kernel and output.
func (c convCase) each(f func(x, k, y int)) {
	oh, ow := c.outSize()
	for n := range c.batch {
		for o := range c.out {
			for i := range c.in {
				for y := range oh * ow {
					for w := range c.windowHeight * c.windowWidth {
						row := y/ow*c.stride + w/c.windowWidth*c.dilation - c.pad[0]
						column := y%ow*c.stride + w%c.windowWidth*c.dilation - c.pad[0]
						if row < 0 || row >= c.height || column < 0 || column >= c.width {
							continue
						}
						f(((n*c.in+i)*c.height+row)*c.width+column,
							(o*c.in+i)*c.windowHeight*c.windowWidth+w, (n*c.out+o)*oh*ow+y)
					}
				}
			}
		}
	}
}

func (c convCase) graph(x, kernel *Node) *Node {
	return Convolve(x, kernel).ChannelsAxis(images.ChannelsFirst).Strides(c.stride).Dilations(c.dilation).
		PaddingPerDim([][2]int{c.pad, c.pad}).Done()
}

func TestConvolutionAndItsGradientsMatchNaiveLoops(t *testing.T) {
	b := openBackend(t)
	for _, c := range convCases {
		t.Run(c.name, func(t *testing.T) {
			oh, ow := c.outSize()
			x, kernel := randomArray(1, c.batch, c.in, c.height, c.width), randomArray(2, c.out, c.in, c.windowHeight, c.windowWidth)
			g := randomArray(3, c.batch, c.out, oh, ow)
			y, dx, dk := newArray(g.dims...), newArray(x.dims...), newArray(kernel.dims...)
			c.each(func(i, j, o int) {
				y.data[o] += x.data[i] * kernel.data[j]
				dx.data[i] += g.data[o] * kernel.data[j]
				dk.data[j] += g.data[o] * x.data[i]
			})
			got := run(t, b, func(in []*Node) []*Node {
				out := c.graph(in[0], in[1])
				grads := Gradient(ReduceAllSum(Mul(out, in[2])), in[0], in[1])
				return []*Node{out, grads[0], grads[1]}
			}, x, kernel, g)
			// Sums of up to a few thousand products of order one.
			for i, want := range []array{y, dx, dk} {
				wantClose(t, fmt.Sprint([]string{"output", "input gradient", "kernel gradient"}[i]), got[i], want, 2e-4)
			}
		})
	}
}

func TestBlockedLayoutIsFoundOrNotUsed(t *testing.T) {
	b := openBackend(t)
	if b.dialect.block == 0 {
		t.Skip("this machine has no blocked convolutions")
	}
	other := 24 - b.dialect.block // 8 for 16 and 16 for 8
	if b.blocksAgree(other) {
		t.Errorf("blocks of %d agree with plain convolutions, and blocks of %d too", b.dialect.block, other)
	}
}

// TestBlockedImagesPassThroughElementwiseOperations covers all operations that
// leave a tensor blocked, and those that do not.
func TestBlockedImagesPassThroughElementwiseOperations(t *testing.T) {
	b := openBackend(t)
	x, k := randomArray(1, 2, 16, 6, 6), randomArray(2, 16, 16, 3, 3)
	k = k.apply(func(v float64) float64 { return v / 12 })
	f := func(conv func(x, k *Node) *Node) func(in []*Node) []*Node {
		return func(in []*Node) []*Node {
			silu := func(x *Node) *Node { return Mul(x, Sigmoid(x)) }
			h := silu(conv(in[0], in[1]))
			h = Add(conv(h, in[1]), MulScalar(h, 0.5))
			scale := Reshape(ReduceMean(h, 2, 3), 2, 16, 1, 1)
			h = Mul(h, scale)
			both := Concatenate([]*Node{conv(h, in[1]), conv(silu(h), in[1])}, 1)
			both = Slice(both, AxisRange(), AxisRange(8, 24))
			y := conv(Max(both, Tanh(both)), in[1])
			loss := ReduceAllSum(Square(y))
			grads := Gradient(loss, in[0], in[1])
			return []*Node{y, grads[0], grads[1]}
		}
	}
	convolve := func(x, k *Node) *Node {
		return Convolve(x, k).ChannelsAxis(images.ChannelsFirst).PadSame().Done()
	}
	got := run(t, b, f(convolve), x, k)
	plain := &Backend{cfg: b.cfg, provider: b.provider, pool: newPool(), open: map[*executable]bool{}}
	want := run(t, plain, f(convolve), x, k)
	for i, name := range []string{"output", "input gradient", "kernel gradient"} {
		wantClose(t, name, got[i], want[i], 1e-4)
	}
}
