package ort

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// convolution is a convolution in ONNX's order of axes: input [batch,
// channels, spatial...], kernel [output channels, input channels, spatial...].
type convolution struct {
	input, kernel      *value
	out                shapes.Shape // [batch, channels, spatial...]
	strides, dilations []int
	pads               [][2]int // not negative
	groups             int
}

// ConvGeneral lowers every convolution: forward, and those that GoMLX makes
// of its gradients.
func (g *builder) ConvGeneral(input, kernel backends.Op, axes backends.ConvolveAxesConfig, strides []int, pads [][2]int,
	inputDilations, kernelDilations []int, channelGroups, batchGroups int,
) (backends.Op, error) {
	in, err := g.values("ConvGeneral", input, kernel)
	if err != nil {
		return nil, err
	}
	spatial := len(axes.InputSpatial)
	strides, inputDilations, kernelDilations = atLeastOne(strides, spatial), atLeastOne(inputDilations, spatial), atLeastOne(kernelDilations, spatial)
	if len(pads) == 0 {
		pads = make([][2]int, spatial)
	}
	channelGroups, batchGroups = max(channelGroups, 1), max(batchGroups, 1)
	out, err := shapeinference.ConvGeneralOp(in[0].shape, in[1].shape, axes, strides, pads, inputDilations, kernelDilations, channelGroups, batchGroups)
	if err != nil {
		return nil, err
	}
	if batchGroups > 1 {
		return nil, fmt.Errorf("ConvGeneral with %d batch groups: %w", batchGroups, errNotLowered)
	}
	p := g.program
	c := convolution{
		input:   p.transpose(in[0], slices.Concat([]int{axes.InputBatch, axes.InputChannels}, axes.InputSpatial)...),
		kernel:  p.transpose(in[1], slices.Concat([]int{axes.KernelOutputChannels, axes.KernelInputChannels}, axes.KernelSpatial)...),
		strides: strides, dilations: kernelDilations, groups: channelGroups,
	}
	order := slices.Concat([]int{axes.OutputBatch, axes.OutputChannels}, axes.OutputSpatial)
	c.out = permuted(out, order)
	c.input, c.pads = p.prepareInput(c.input, inputDilations, pads)
	return p.transpose(p.convolve(c), inverse(order)...), nil
}

// convolve picks the form that runs fastest.
func (p *program) convolve(c convolution) *value {
	if c.isWeightGradient() {
		return p.weightGradient(c)
	}
	if p.blockable(c) {
		return p.blockedConv(c)
	}
	return p.plainConv(c)
}

func (p *program) plainConv(c convolution) *value {
	return p.emit("Conv", c.out, []*value{c.input, c.kernel}, c.attributes()...)
}

func (c convolution) attributes() []onnx.Attribute {
	spatial := len(c.strides)
	pads := make([]int, 2*spatial)
	for i, p := range c.pads {
		pads[i], pads[spatial+i] = p[0], p[1]
	}
	return []onnx.Attribute{
		onnx.Ints("kernel_shape", c.kernel.dims()[2:]...), onnx.Ints("strides", c.strides...),
		onnx.Ints("dilations", c.dilations...), onnx.Ints("pads", pads...), onnx.Int("group", c.groups),
	}
}

// prepareInput applies the settings for which Conv has no attribute: it spreads
// the input by its dilation, as the gradient of a strided convolution requires,
// and cuts off a negative padding.
func (p *program) prepareInput(x *value, dilations []int, pads [][2]int) (*value, [][2]int) {
	zero := p.scalar(x.shape.DType, 0)
	positive := make([][2]int, len(pads))
	cut := make([]backends.PadAxis, x.shape.Rank())
	for i, d := range dilations {
		x = p.spread(x, zero, 2+i, d-1)
		cut[2+i] = backends.PadAxis{Start: min(pads[i][0], 0), End: min(pads[i][1], 0)}
		positive[i] = [2]int{max(pads[i][0], 0), max(pads[i][1], 0)}
	}
	return p.pad(x, zero, cut), positive
}

// atLeastOne fills a list of strides or dilations that GoMLX left empty.
func atLeastOne(list []int, length int) []int {
	filled := slices.Repeat([]int{1}, length)
	for i, v := range list {
		filled[i] = max(v, 1)
	}
	return filled
}

func permuted(s shapes.Shape, order []int) shapes.Shape {
	dims := make([]int, len(order))
	for i, a := range order {
		dims[i] = s.Dimensions[a]
	}
	return shapes.Make(s.DType, dims...)
}

// inverse returns the permutation that undoes order.
func inverse(order []int) []int {
	inv := make([]int, len(order))
	for i, a := range order {
		inv[a] = i
	}
	return inv
}
