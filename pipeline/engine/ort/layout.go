package ort

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// dialect says which operators beyond the ONNX standard a program may use.
// The zero value is the standard alone, in which files are written.
type dialect struct {
	// contrib allows ONNX Runtime's own operators, domain com.microsoft.
	contrib bool
	// block is the number of channels that lie together in the layout of ONNX
	// Runtime's fast convolutions; 0: there are none on this machine.
	block int
	// turned is for a runtime that has no product of a matrix turned round, and turns it
	// one number at a time: OpenVINO.
	turned bool
}

// String names the layout of convolutions.
func (d dialect) String() string {
	if d.block == 0 {
		return "plain convolutions"
	}
	return fmt.Sprintf("convolutions in blocks of %d channels", d.block)
}

// blockedDomain holds the operators of the blocked layout. ONNX Runtime uses
// them by itself only where weights are constants; in training they are not,
// so convolutions are lowered to them here.
const blockedDomain = "com.microsoft.nchwc"

// probeDialect finds the block size of this machine by trial: the operators are
// internal to the runtime, so they are used only if they give the answer of the
// standard operator.
func probeDialect(b *Backend) dialect {
	for _, block := range []int{16, 8} { // AVX-512, then AVX2 and NEON
		if b.blocksAgree(block) {
			return dialect{contrib: true, block: block}
		}
	}
	return dialect{contrib: true}
}

// blocksAgree convolves a small image both ways.
func (b *Backend) blocksAgree(block int) bool {
	const channels, side = 32, 5
	p := &program{dialect: dialect{contrib: true, block: block}}
	image := p.constant(shapes.Make(dtypes.Float32, 2, channels, side, side), waves(2*channels*side*side))
	kernel := p.parameter("kernel", shapes.Make(dtypes.Float32, channels, channels, 3, 3))
	c := convolution{
		input: image, kernel: kernel, out: image.shape,
		strides: []int{1, 1}, dilations: []int{1, 1}, pads: [][2]int{{1, 1}, {1, 1}}, groups: 1,
	}
	outputs := []*value{p.blockedConv(c), p.plainConv(c)}
	exec, err := b.compile("probe", p, outputs)
	if err != nil {
		return false
	}
	defer exec.Finalize()
	weights, err := b.newBuffer(kernel.shape)
	if err != nil {
		return false
	}
	defer b.BufferFinalize(weights) //nolint:errcheck // it is alive
	copy(weights.bytes(), waves(kernel.shape.Size()))
	out, err := exec.Execute([]backends.Buffer{weights}, nil, 0)
	if err != nil {
		return false
	}
	defer b.BufferFinalize(out[0]) //nolint:errcheck // it is alive
	defer b.BufferFinalize(out[1]) //nolint:errcheck // it is alive
	return b.close(out[0], out[1])
}

// close reports whether two float32 buffers agree to rounding.
func (b *Backend) close(x, y backends.Buffer) bool {
	shape, err := b.BufferShape(x)
	if err != nil {
		return false
	}
	xs, ys := make([]float32, shape.Size()), make([]float32, shape.Size())
	if b.BufferToFlatData(x, xs) != nil || b.BufferToFlatData(y, ys) != nil {
		return false
	}
	for i := range xs {
		if !(math.Abs(float64(xs[i]-ys[i])) <= 1e-4) { // sums of 288 products of at most one
			return false
		}
	}
	return true
}

// waves returns n float32 numbers between -1 and 1 without a short period.
func waves(n int) []byte {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i) * 1.7))
	}
	return memoryOf(x)
}
