package ort

import (
	"bytes"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
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
// Rows are shifted in x and columns in g: three copies of each serve the nine
// places of a 3x3 window. There is a product for each column of the window; a
// single one, with all of them side by side, is slower, since the runtime then
// takes shorter pieces of the long sum. Its Conv takes 3 to 5 times longer.
//
// The images lie flat in memory, where a shift is a number of zeros before and
// after. Concat adds them: it copies long pieces on all threads, where Pad
// copies row by row on one. Elements that a shift carries into the next row meet
// zeros in g.
func (p *program) weightGradient(c convolution) *value {
	if c.strides[0] != 1 || c.strides[1] != 1 || c.dilations[0] != 1 || c.dilations[1] != 1 {
		return p.sparseWeightGradient(c)
	}
	x, g := c.input, c.kernel // [channels, batch, height, width]
	apart := c.apart()
	if apart {
		x, g = p.transpose(x, 1, 0, 2, 3), p.transpose(g, 1, 0, 2, 3)
	}
	s := c.shifts(apart)
	x = p.lengthen(p.lengthen(x, 3, s.rowLength), 2, s.imageRows[0])
	allRows := p.shifted(x, s.beforeX, s.length, apart)
	places := make([]*value, len(s.beforeG))
	for j := range places {
		column := p.withinRow(g, j-c.pads[1][0], c.input.dims()[3])
		column = p.lengthen(p.lengthen(column, 3, s.rowLength), 2, s.imageRows[1])
		place := p.flatProduct(allRows, p.shifted(column, s.beforeG[j:j+1], s.length, apart))
		places[j] = p.reshape(place, c.out.Dimensions[0], len(s.beforeX), 1, c.out.Dimensions[1])
	}
	return p.transpose(p.stack(places, 2), 0, 3, 1, 2)
}

// apart reports whether the product is taken image by image and then added
// up. That saves a transpose of everything, and pays if a single image is a
// long enough sum for the product to run at full speed.
func (c convolution) apart() bool {
	const longSum = 512
	return c.kernel.dims()[2]*c.kernel.dims()[3] >= longSum
}

// shifts is the layout of the input and the gradient of a convolution in memory
// so that a place of the window is a distance between the two.
type shifts struct {
	rowLength int    // length of a row of both
	imageRows [2]int // rows of the input and of the gradient, with zero rows at the end
	length    int    // length of a shifted copy, zeros included
	beforeX   []int  // zeros before the input, by row of the window
	beforeG   []int  // zeros before the gradient, by column of the window
}

// shifts lays out single images where they are apart, else all of them one
// below the other, which then need zero rows between them.
func (c convolution) shifts(apart bool) shifts {
	x, g := c.input.dims(), c.kernel.dims()
	rows, columns := c.out.Dimensions[2], c.out.Dimensions[3]
	top, bottom, left := c.pads[0][0], c.pads[0][1], c.pads[1][0]
	s := shifts{rowLength: max(x[3], g[3]), imageRows: [2]int{x[2], g[2]}}
	images := 1
	if !apart {
		images = x[1]
		image := max(x[2]+max(top, bottom), g[2])
		s.imageRows = [2]int{image, image}
	}
	// Place (i, j) is the distance (top-i, left-j); no number of zeros may be
	// negative.
	least := max(0, (rows-1-top)*s.rowLength, left)
	for i := range rows {
		s.beforeX = append(s.beforeX, least+(top-i)*s.rowLength)
	}
	for j := range columns {
		s.beforeG = append(s.beforeG, least+j-left)
	}
	s.length = max(s.beforeX[0]+images*s.imageRows[0]*s.rowLength, s.beforeG[columns-1]+images*s.imageRows[1]*s.rowLength)
	return s
}

// withinRow sets the columns of g to zero that, shifted, lie outside a row of
// the given width.
func (p *program) withinRow(g *value, shift, width int) *value {
	zero, one := p.scalar(g.shape.DType, 0).constant, p.scalar(g.shape.DType, 1).constant
	columns, all := make([]byte, 0, len(one)*g.dims()[3]), true
	for w := range g.dims()[3] {
		if to := w + shift; to >= 0 && to < width {
			columns = append(columns, one...)
		} else {
			columns, all = append(columns, zero...), false
		}
	}
	if all {
		return g
	}
	// A mask as high as the image is applied in longer runs than a row of it.
	mask := p.constant(shapes.Make(g.shape.DType, g.dims()[2:]...), bytes.Repeat(columns, g.dims()[2]))
	return p.emit("Mul", g.shape, []*value{g, mask})
}

// lengthen puts zeros at the end of an axis. See weightGradient for why this
// is not Pad.
func (p *program) lengthen(x *value, axis, length int) *value {
	if length == x.dims()[axis] {
		return x
	}
	dims := slices.Clone(x.dims())
	dims[axis] = length - x.dims()[axis]
	whole := x.shape.Clone()
	whole.Dimensions[axis] = length
	return p.emit("Concat", whole, []*value{x, p.zeros(x.shape.DType, dims...)}, onnx.Int("axis", axis))
}

// zeros returns zeros that the runtime makes once, when it opens the graph.
func (p *program) zeros(dtype dtypes.DType, dims ...int) *value {
	return p.expand(p.reshape(p.scalar(dtype, 0), slices.Repeat([]int{1}, len(dims))...), dims...)
}

// shifted returns copies of each flat channel, one with each number of zeros
// before it and as many after it as make up length: [batch, channels * copies,
// length], where the batch is 1 unless images are apart.
func (p *program) shifted(x *value, before []int, length int, apart bool) *value {
	batch, channels, size := 1, x.dims()[0], product(x.dims()[1:])
	if apart {
		batch, channels, size = x.dims()[0], x.dims()[1], product(x.dims()[2:])
	}
	flat := p.reshape(x, batch, channels, size)
	var parts []*value
	gap := 0 // zeros that are due before the next copy
	for _, zeros := range before {
		if gap += zeros; gap > 0 {
			parts = append(parts, p.zeros(x.shape.DType, batch, channels, gap))
		}
		parts = append(parts, flat)
		gap = length - zeros - size
	}
	if gap > 0 {
		parts = append(parts, p.zeros(x.shape.DType, batch, channels, gap))
	}
	if len(parts) == 1 {
		return flat
	}
	all := p.emit("Concat", shapes.Make(x.shape.DType, batch, channels, len(before)*length), parts, onnx.Int("axis", 2))
	return p.reshape(all, batch, channels*len(before), length)
}

// flatProduct multiplies [batch, rows, length] with [batch, columns, length],
// the sum running over length and batch.
func (p *program) flatProduct(l, r *value) *value {
	each := p.matMul(newDotOperand(l, []int{2}, []int{0}), newDotOperand(r, []int{2}, []int{0}))
	return p.reduce("ReduceSum", each, shapes.Make(l.shape.DType, each.dims()[1:]...), []int{0})
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
	left := newDotOperand(p.stack(shifted, 0), []int{1, 2, 3}, nil)
	product := p.matMul(left, newDotOperand(c.kernel, []int{1, 2, 3}, nil))
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
