package nn

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// attend is self-attention over all positions of a sample. qkv is
// [batch, 3*channels, positions], first the queries, then the keys, then the
// values, each with its heads one after the other; the answer is [batch,
// channels, positions]. The softmax is float32.
//
// The gradient is written out, because GoMLX derives that of a matrix product
// as a product of broadcast tensors and a sum: a thousand times the memory.
func attend(qkv *Node, heads int) *Node {
	qkv.AssertRank(3)
	var a attention
	// The function below is called when the gradient is built. The gradient
	// that arrives there is that of the answer in the place of the queries:
	// the answer is added to a zero made of them.
	qkv = IdentityWithCustomGradient(qkv, func(_, arriving *Node) *Node { return a.gradient(arriving) })
	a = newAttention(StopGradient(qkv), heads)
	d := qkv.Shape().Dimensions
	queries := Slice(qkv, AxisRange(), AxisRange(0, d[1]/3), AxisRange())
	zero := Sub(queries, StopGradient(queries))
	return Add(Reshape(a.answer(), d[0], d[1]/3, d[2]), zero)
}

// attention is one computation of attend.
type attention struct {
	q, k, v *Node // [batch, heads, depth, positions]
	share   *Node // [batch, heads, queries, keys], in the type of v
	scale   float64
}

// attentionBatch are the axes along which nothing is summed: samples and heads.
var attentionBatch = []int{0, 1}

func newAttention(qkv *Node, heads int) attention {
	parts := split(qkv, heads)
	a := attention{q: parts[0], k: parts[1], v: parts[2]}
	a.scale = 1 / math.Sqrt(float64(a.q.Shape().Dimensions[2]))
	scores := DotGeneral(MulScalar(a.q, a.scale), []int{2}, attentionBatch, a.k, []int{2}, attentionBatch)
	a.share = ConvertDType(softmax(ConvertDType(scores, dtypes.Float32)), a.v.DType())
	return a
}

// answer is the mean of the values, each with its share: [batch, heads, depth,
// queries].
func (a attention) answer() *Node {
	return DotGeneral(a.v, []int{3}, attentionBatch, a.share, []int{3}, attentionBatch)
}

// gradient maps the gradient of the answer, in the first third of arriving
// [batch, 3*channels, positions], to that of qkv.
func (a attention) gradient(arriving *Node) *Node {
	heads := a.q.Shape().Dimensions[1]
	dy := split(arriving, heads)[0]
	dv := DotGeneral(dy, []int{3}, attentionBatch, a.share, []int{2}, attentionBatch)
	dshare := ConvertDType(DotGeneral(dy, []int{2}, attentionBatch, a.v, []int{2}, attentionBatch), dtypes.Float32)

	share := ConvertDType(a.share, dtypes.Float32)
	weighted := Mul(dshare, share)
	dscore := Sub(weighted, Mul(share, ReduceAndKeep(weighted, ReduceSum, -1)))
	dscore = ConvertDType(MulScalar(dscore, a.scale), a.v.DType())
	dq := DotGeneral(a.k, []int{3}, attentionBatch, dscore, []int{3}, attentionBatch)
	dk := DotGeneral(a.q, []int{3}, attentionBatch, dscore, []int{2}, attentionBatch)

	d := arriving.Shape().Dimensions
	return Reshape(Concatenate([]*Node{dq, dk, dv}, 1), d...)
}

// softmax is taken over the last axis.
func softmax(x *Node) *Node {
	x = Exp(Sub(x, ReduceAndKeep(x, ReduceMax, -1))) // subtracting the maximum avoids overflow and cancels out
	return Div(x, ReduceAndKeep(x, ReduceSum, -1))
}

// split cuts x [batch, 3*heads*depth, positions] into three nodes
// [batch, heads, depth, positions].
func split(x *Node, heads int) [3]*Node {
	d := x.Shape().Dimensions
	width := d[1] / 3
	var parts [3]*Node
	for i := range parts {
		part := Slice(x, AxisRange(), AxisRange(i*width, (i+1)*width), AxisRange())
		parts[i] = Reshape(part, d[0], heads, width/heads, d[2])
	}
	return parts
}
