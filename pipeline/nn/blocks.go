package nn

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors/images"
)

// siluGain is the inverse of the root mean square of silu(x) for standard
// normal x. The convolution after a silu multiplies its kernel with it, which
// costs nothing, where scaling the image would be a pass over memory.
const siluGain = 1 / 0.596

// conv is a square convolution without bias, stride 1, that keeps height and
// width (zeros outside). Its filters are normalised: each has length gain,
// whatever the length of the weights, so that an image of independent pixels
// of magnitude one comes out with magnitude gain.
type conv struct {
	kernel Param
	gain   float64
}

// newConv lays out a convolution with kernels of side x side pixels.
func newConv(s scope, in, out, side int) conv {
	return conv{kernel: s.normal("kernel", 1, in*side*side, out, in, side, side), gain: 1}
}

func (c conv) withGain(gain float64) conv {
	c.gain = gain
	return c
}

// apply maps x [batch, in, height, width] to [batch, out, height, width].
func (c conv) apply(w Weights, x *Node) *Node {
	return Filter(x, unitFilters(w.Weight(c.kernel), c.gain))
}

// Filter convolves x [batch, in, height, width] with kernel [out, in, rows,
// columns] and keeps its height and width: beyond the edge is zero.
func Filter(x, kernel *Node) *Node {
	return Convolve(x, kernel).ChannelsAxis(images.ChannelsFirst).Strides(1).PadSame().Done()
}

// normEpsilon keeps norms of zeros finite; normalised values are of order one.
const normEpsilon = 1e-4

// unitFilters returns kernel [out, in, side, side] with filters of length
// gain. It computes in float32.
func unitFilters(kernel *Node, gain float64) *Node {
	dims := kernel.Shape().Dimensions
	filters := Reshape(ConvertDType(kernel, dtypes.Float32), dims[0], -1)
	square := ReduceAndKeep(Square(filters), ReduceSum, 1)
	length := Sqrt(AddScalar(square, normEpsilon*normEpsilon))
	filters = Mul(filters, Div(Scalar(kernel.Graph(), dtypes.Float32, gain), length))
	return ConvertDType(Reshape(filters, dims...), kernel.DType())
}

// unitPixels returns x [batch, channels, height, width] with a root mean square
// over the channels of one, at each pixel. It computes in float32.
func unitPixels(x *Node) *Node {
	return unitMagnitude(x, 1)
}

// unitMagnitude returns x with a root mean square of one along axis.
func unitMagnitude(x *Node, axis int) *Node {
	y := ConvertDType(x, dtypes.Float32)
	square := ReduceAndKeep(Square(y), ReduceMean, axis)
	y = Div(y, Sqrt(AddScalar(square, normEpsilon)))
	return ConvertDType(y, x.DType())
}

// dense is a linear map of the channels, with bias, pixel by pixel. It is a
// convolution of one pixel, whose gradient the engines know how to do well.
type dense struct{ kernel, bias Param }

// newDense lays out a linear map that keeps magnitudes.
func newDense(s scope, in, out int) dense {
	return dense{kernel: s.normal("kernel", 1, in, out, in, 1, 1), bias: s.constant("bias", 0, out)}
}

// newZeroDense lays out a linear map that starts as zero, so that it has no
// effect before training.
func newZeroDense(s scope, in, out int) dense {
	return dense{kernel: s.constant("kernel", 0, out, in, 1, 1), bias: s.constant("bias", 0, out)}
}

// apply maps x [batch, in, height, width] to [batch, out, height, width].
func (d dense) apply(w Weights, x *Node) *Node {
	return Add(Filter(x, w.Weight(d.kernel)), channelwise(w.Weight(d.bias)))
}

// silu returns x*sigmoid(x).
func silu(x *Node) *Node { return Mul(x, Sigmoid(x)) }

// channelwise shapes v [channels] to act on an image [batch, channels, height,
// width].
func channelwise(v *Node) *Node { return Reshape(v, 1, -1, 1, 1) }

// mixShares returns the factors of two signals of magnitude one with which their
// sum has magnitude one and the second has the given share in it.
func mixShares(share float64) (first, second float64) {
	length := math.Hypot(1-share, share)
	return (1 - share) / length, share / length
}

// halve returns the means of 2x2 pixels of x, whose height and width are even.
func halve(x *Node) *Node {
	d := x.Shape().Dimensions
	y := Reshape(x, d[0], d[1], d[2]/2, 2, d[3]/2, 2)
	return ReduceMean(y, 3, 5)
}

// double returns x with each pixel repeated 2x2.
func double(x *Node) *Node {
	d := x.Shape().Dimensions
	y := Reshape(x, d[0], d[1], d[2], 1, d[3], 1)
	y = BroadcastToDims(y, d[0], d[1], d[2], 2, d[3], 2)
	return Reshape(y, d[0], d[1], 2*d[2], 2*d[3])
}
