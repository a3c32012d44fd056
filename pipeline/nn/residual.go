package nn

import . "github.com/gomlx/gomlx/pkg/core/graph"

// headChannels is the depth of an attention head.
const headChannels = 32

// branchShare is the share of a block's branch in its output.
const branchShare = 0.3

// residualShape sizes a residual block.
type residualShape struct {
	in, out, time int // channels of the image and width of the time embedding
	attention     bool
}

// residual is one block of the UNet: two convolutions with the time in
// between, added to the input, and self-attention after that. It keeps the
// magnitude of its input.
type residual struct {
	shape residualShape

	first, second conv
	time          dense // time embedding -> scale of each channel
	short         *conv // nil unless the number of channels changes
	qkv, merge    conv  // input and output maps of the attention
	keys          int   // most places that a pixel attends to; 0: all
}

func newResidual(s scope, shape residualShape) residual {
	keep, add := mixShares(branchShare)
	r := residual{
		shape:  shape,
		first:  newConv(s.in("first"), shape.in, shape.out, 3).withGain(siluGain),
		time:   newZeroDense(s.in("time"), shape.time, shape.out),
		second: newConv(s.in("second"), shape.out, shape.out, 3).withGain(siluGain * add),
	}
	if shape.in != shape.out {
		c := newConv(s.in("short"), shape.in, shape.out, 1).withGain(keep)
		r.short = &c
	}
	if shape.attention {
		r.qkv = newConv(s.in("attention.qkv"), shape.out, 3*shape.out, 1)
		r.merge = newConv(s.in("attention.merge"), shape.out, shape.out, 1).withGain(add)
	}
	return r
}

// apply maps x [batch, in, height, width] and the time embedding [batch, time,
// 1, 1] to [batch, out, height, width].
func (r residual) apply(w Weights, x, time *Node) *Node {
	h := r.first.apply(w, silu(x))
	h = Mul(h, OnePlus(r.time.apply(w, time)))
	h = r.second.apply(w, silu(h))
	x = Add(r.shortcut(w, x), h)
	if !r.shape.attention {
		return x
	}
	keep, _ := mixShares(branchShare)
	return Add(MulScalar(x, keep), r.selfAttention(w, x))
}

// shortcut is the way around the convolutions.
func (r residual) shortcut(w Weights, x *Node) *Node {
	if r.short != nil {
		return r.short.apply(w, x)
	}
	keep, _ := mixShares(branchShare)
	return MulScalar(x, keep)
}

// selfAttention lets pixels attend to one another. Queries, keys and values have unit
// magnitude, so scores stay bounded.
func (r residual) selfAttention(w Weights, x *Node) *Node {
	d := x.Shape().Dimensions
	heads := headsOf(d[1])
	y := Reshape(r.qkv.apply(w, x), d[0], 3*heads, d[1]/heads, d[2]*d[3])
	y = Reshape(unitMagnitude(y, 2), d[0], 3*d[1], d[2], d[3])
	if r.keys > 0 && d[2]*d[3] > r.keys {
		y = attendPooled(y, heads, poolSide(d[2], d[3], r.keys))
	} else {
		y = attend(Reshape(y, d[0], 3*d[1], d[2]*d[3]), heads, unitQueryKeys)
	}
	return r.merge.apply(w, Reshape(y, d...))
}

// headsOf returns the number of heads that share channels evenly, each of headChannels
// or more.
func headsOf(channels int) int {
	heads := max(1, channels/headChannels)
	for channels%heads != 0 {
		heads--
	}
	return heads
}
