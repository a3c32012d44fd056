package ort

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// isWeightGradient recognises the gradient of a convolution with respect to
// its kernel, which GoMLX writes as a convolution of the input, batch and
// channels swapped, with a kernel as large as the image and a small result.
func (c convolution) isWeightGradient() bool {
	if len(c.strides) != 2 || c.groups != 1 {
		return false
	}
	kernel, out := c.kernel.dims(), c.out.Dimensions
	return kernel[2]*kernel[3] > out[2]*out[3] && out[2]*out[3] <= maxWindow
}

// maxWindow bounds the kernels whose gradient is computed as a product: 7x7.
const maxWindow = 49

// weightGradient computes the gradient of the kernel as matrix products.
// With x the padded input and g the incoming gradient it is, at window place
// (i, j),
//
//	sum over n, h, w of  x[n, h+i, w+j] * g[n, h, w].
//
// Columns are shifted in x and rows in g: for a 3x3 window that takes three
// copies of each instead of nine of x, and a product for each row of the
// window. ONNX Runtime's Conv takes 3 to 5 times longer.
func (p *program) weightGradient(c convolution) *value {
	if c.strides[0] != 1 || c.strides[1] != 1 || c.dilations[0] != 1 || c.dilations[1] != 1 {
		return p.sparseWeightGradient(c)
	}
	rows, columns := c.out.Dimensions[2], c.out.Dimensions[3]
	x, g, channelAxis := c.input, c.kernel, 0 // [channels, batch, height, width]
	apart := c.apart()
	if apart {
		x, g, channelAxis = p.transpose(x, 1, 0, 2, 3), p.transpose(g, 1, 0, 2, 3), 1
	}
	shiftedX, shiftedG := make([]*value, columns), make([]*value, rows)
	for j := range columns {
		shiftedX[j] = p.padImage(x, [][2]int{c.pads[0], {c.pads[1][0] - j, c.pads[1][1] - (columns - 1 - j)}})
	}
	for i := range rows {
		shiftedG[i] = p.padImage(g, [][2]int{{i, rows - 1 - i}, {0, 0}})
	}
	allColumns := p.stack(shiftedX, channelAxis)
	places := make([]*value, rows)
	for i, g := range shiftedG {
		place := p.imageProduct(allColumns, g, apart)
		places[i] = p.reshape(place, columns, c.out.Dimensions[0], 1, c.out.Dimensions[1])
	}
	return p.transpose(p.stack(places, 2), 1, 3, 2, 0)
}

// apart reports whether the product is taken image by image and then added
// up. That spares a transpose of everything, and pays where an image alone
// is a long enough sum for the product to run at full speed.
func (c convolution) apart() bool {
	const longSum = 512
	return c.kernel.dims()[2]*c.kernel.dims()[3] >= longSum
}

// imageProduct multiplies two stacks of channels, the sum running over pixels
// and images: [channels, batch, height, width], or batch first where apart.
func (p *program) imageProduct(x, g *value, apart bool) *value {
	xd, gd := x.dims(), g.dims()
	pixels := xd[2] * xd[3]
	if !apart {
		left := newDotOperand(p.reshape(x, xd[0], xd[1]*pixels), []int{1}, nil)
		right := newDotOperand(p.reshape(g, gd[0], gd[1]*pixels), []int{1}, nil)
		return p.matMul(left, right)
	}
	left := newDotOperand(p.reshape(x, xd[0], xd[1], pixels), []int{2}, []int{0})
	right := newDotOperand(p.reshape(g, gd[0], gd[1], pixels), []int{2}, []int{0})
	each := p.matMul(left, right)
	return p.reduce("ReduceSum", each, shapes.Make(x.shape.DType, xd[1], gd[1]), []int{0})
}

// sparseWeightGradient is the gradient for a convolution with strides or
// dilations: the input is shifted to each place of the window.
func (p *program) sparseWeightGradient(c convolution) *value {
	padded := p.padImage(c.input, c.pads)
	channels, batch := padded.dims()[0], padded.dims()[1]
	height, width := c.kernel.dims()[2], c.kernel.dims()[3]
	rows, columns := c.out.Dimensions[2], c.out.Dimensions[3]
	var shifted []*value
	for i := range rows {
		for j := range columns {
			top, left := i*c.strides[0], j*c.strides[1]
			shifted = append(shifted, p.slice(padded, []int{0, 0, top, left},
				[]int{channels, batch, top + (height-1)*c.dilations[0] + 1, left + (width-1)*c.dilations[1] + 1},
				[]int{1, 1, c.dilations[0], c.dilations[1]}))
		}
	}
	product := p.imageProduct(p.stack(shifted, 0), c.kernel, false)
	return p.transpose(p.reshape(product, rows, columns, channels, c.out.Dimensions[1]), 2, 3, 0, 1)
}

// padImage puts zeros around the last two axes or, where negative, cuts them.
func (p *program) padImage(x *value, pads [][2]int) *value {
	return p.pad(x, p.scalar(x.shape.DType, 0), []backends.PadAxis{
		{}, {}, {Start: pads[0][0], End: pads[0][1]}, {Start: pads[1][0], End: pads[1][1]},
	})
}

// stack joins values along an axis.
func (p *program) stack(parts []*value, axis int) *value {
	if len(parts) == 1 {
		return parts[0]
	}
	shape := parts[0].shape.Clone()
	shape.Dimensions[axis] *= len(parts)
	return p.emit("Concat", shape, parts, onnx.Int("axis", axis))
}
