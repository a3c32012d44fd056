package nn

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// attend is self-attention over all positions of a sample. qkv is
// [batch, 3*channels, positions], first the queries, then the keys, then the
// values, each with its heads one after the other; the answer is [batch,
// channels, positions]. The softmax is float32. It is divided by its sum behind the
// product with the values, which are fewer numbers than its shares; of queries and keys of
// unit magnitude nothing need be taken off the scores first, which saves two more ways
// through them.
//
// The gradient is written out, because GoMLX derives that of a matrix product
// as a product of broadcast tensors and a sum: a thousand times the memory.
func attend(qkv *Node, heads int, of magnitude) *Node {
	qkv.AssertRank(3)
	var a attention
	// The function below is called when the gradient is built. The gradient
	// that arrives there is that of the answer in the place of the queries:
	// the answer is added to a zero made of them.
	qkv = IdentityWithCustomGradient(qkv, func(_, arriving *Node) *Node { return a.gradient(arriving) })
	a = newAttention(split(StopGradient(qkv), heads), of, nil)
	d := qkv.Shape().Dimensions
	queries := Slice(qkv, AxisRange(), AxisRange(0, d[1]/3), AxisRange())
	zero := Sub(queries, StopGradient(queries))
	return Add(Reshape(a.answer(), d[0], d[1]/3, d[2]), zero)
}

// magnitude is that of queries and keys.
type magnitude int

const (
	anyMagnitude  magnitude = iota
	unitQueryKeys           // of one: scores are at most the root of the depth of a head
)

// attention is one computation of attend.
type attention struct {
	q, k, v *Node // [batch, heads, depth, positions]
	raised  *Node // exponentials of the scores, float32 [batch, heads, queries, keys]
	total   *Node // their sums [batch, heads, queries, 1]
	scale   float64
}

// attentionBatch are the axes along which nothing is summed: samples and heads.
var attentionBatch = []int{0, 1}

// newAttention attends with the queries, keys and values of parts. More is added to the
// scores, unless it is nil.
func newAttention(parts [3]*Node, of magnitude, more *Node) attention {
	a := attention{q: parts[0], k: parts[1], v: parts[2]}
	a.scale = 1 / math.Sqrt(float64(a.q.Shape().Dimensions[2]))
	scores := DotGeneral(MulScalar(a.q, a.scale), []int{2}, attentionBatch, a.k, []int{2}, attentionBatch)
	scores = ConvertDType(scores, dtypes.Float32)
	if more != nil {
		scores = Add(scores, more)
	}
	if of != unitQueryKeys { // to avoid overflow; it cancels out
		scores = Sub(scores, ReduceAndKeep(scores, ReduceMax, -1))
	}
	a.raised = Exp(scores)
	a.total = ReduceAndKeep(a.raised, ReduceSum, -1)
	return a
}

// answer is the mean of the values, each with its share: [batch, heads, depth,
// queries].
func (a attention) answer() *Node {
	sum := DotGeneral(a.v, []int{3}, attentionBatch, ConvertDType(a.raised, a.v.DType()), []int{3}, attentionBatch)
	d := a.total.Shape().Dimensions
	return ConvertDType(Div(ConvertDType(sum, dtypes.Float32), Reshape(a.total, d[0], d[1], 1, d[2])), a.v.DType())
}

// gradient maps the gradient of the answer, in the first third of arriving
// [batch, 3*channels, positions], to that of qkv.
func (a attention) gradient(arriving *Node) *Node {
	heads := a.q.Shape().Dimensions[1]
	dy := split(arriving, heads)[0]
	share := Div(a.raised, a.total)
	dv := DotGeneral(dy, []int{3}, attentionBatch, ConvertDType(share, a.v.DType()), []int{2}, attentionBatch)
	dshare := ConvertDType(DotGeneral(dy, []int{2}, attentionBatch, a.v, []int{2}, attentionBatch), dtypes.Float32)

	weighted := Mul(dshare, share)
	dscore := Sub(weighted, Mul(share, ReduceAndKeep(weighted, ReduceSum, -1)))
	dscore = ConvertDType(MulScalar(dscore, a.scale), a.v.DType())
	dq := DotGeneral(a.k, []int{3}, attentionBatch, dscore, []int{3}, attentionBatch)
	dk := DotGeneral(a.q, []int{3}, attentionBatch, dscore, []int{2}, attentionBatch)

	d := arriving.Shape().Dimensions
	return Reshape(Concatenate([]*Node{dq, dk, dv}, 1), d...)
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
