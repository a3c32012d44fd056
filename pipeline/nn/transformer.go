package nn

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// modulations is how many vectors steer a transformer block: scale, shift and
// gate of the attention and of the two-layer perceptron.
const modulations = 6

// perceptronRatio is how much wider the perceptron is inside.
const perceptronRatio = 4

// transformer is one block of the ViT. The modulation by the time is computed
// once for all blocks; each adds an offset of its own.
type transformer struct {
	width         int
	offset        Param // [modulations*width], added to the shared modulation
	qkv, merge    dense
	expand, close dense
}

func newTransformer(s scope, width int) transformer {
	return transformer{
		width:  width,
		offset: s.constant("modulation", 0, modulations*width),
		qkv:    newDense(s.in("attention.qkv"), width, 3*width),
		merge:  newDense(s.in("attention.merge"), width, width),
		expand: newDense(s.in("mlp.expand"), width, perceptronRatio*width),
		close:  newDense(s.in("mlp.close"), perceptronRatio*width, width),
	}
}

// apply maps tokens x [batch, width, rows, columns] under the shared modulation
// [batch, modulations*width, 1, 1].
func (b transformer) apply(w Weights, x, shared *Node) *Node {
	m := modulation(shared, w.Weight(b.offset), modulations)
	h := Add(Mul(layerNorm(x), OnePlus(m[0])), m[1])
	x = Add(x, Mul(b.selfAttention(w, h), m[2]))
	h = Add(Mul(layerNorm(x), OnePlus(m[3])), m[4])
	h = b.close.apply(w, silu(b.expand.apply(w, h)))
	return Add(x, Mul(h, m[5]))
}

// selfAttention lets tokens attend to one another.
func (b transformer) selfAttention(w Weights, x *Node) *Node {
	d := x.Shape().Dimensions
	qkv := Reshape(b.qkv.apply(w, x), d[0], 3*d[1], d[2]*d[3])
	return b.merge.apply(w, Reshape(attend(qkv, b.width/headChannels, anyMagnitude), d...))
}

// modulation returns the first parts vectors of shared plus offset, each
// [batch, width, 1, 1]; offset is [parts*width].
func modulation(shared, offset *Node, parts int) []*Node {
	size := offset.Shape().Dimensions[0]
	width := size / parts
	every := AxisRange()
	sum := Add(Slice(shared, every, AxisRange(0, size), every, every), channelwise(offset))
	out := make([]*Node, parts)
	for i := range out {
		out[i] = Slice(sum, every, AxisRange(i*width, (i+1)*width), every, every)
	}
	return out
}

// layerNorm returns x [batch, channels, rows, columns] with mean 0 and variance
// 1 over the channels. It computes in float32.
func layerNorm(x *Node) *Node {
	y := ConvertDType(x, dtypes.Float32)
	y = Sub(y, ReduceAndKeep(y, ReduceMean, 1))
	variance := ReduceAndKeep(Square(y), ReduceMean, 1)
	return ConvertDType(Div(y, Sqrt(AddScalar(variance, normEpsilon))), x.DType())
}
