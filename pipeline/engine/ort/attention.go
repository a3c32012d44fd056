package ort

import (
	"slices"

	"lacuna/pipeline/engine/ort/onnx"
)

// attention recognises a mean of values with shares that are exponentials of scores over
// their sum, as attention writes it for a runtime that goes through the scores by itself:
//
//	transpose(exp(scores) * values) / sum(exp(scores))
//
// and writes it as transpose(softmax(scores) * values), for which OpenVINO has one kernel
// that never stores the scores. Scores are [..., queries, keys].
func (p *program) attention(mean, total *value) (*value, bool) {
	if !p.dialect.turned {
		return nil, false
	}
	sum, ok := unshaped(total).producedBy("ReduceSum")
	if !ok {
		return nil, false
	}
	raised := sum.in[0]
	exp, ok := raised.producedBy("Exp")
	rank := raised.shape.Rank()
	if !ok || rank < 3 || string(sum.in[1].constant) != string(p.ints(rank-1).constant) { // not over the keys
		return nil, false
	}
	turn, ok := unshaped(mean).producedBy("Transpose")
	if !ok || !slices.Equal(turn.attrs[0].Ints, []int64{0, 2, 1}) {
		return nil, false
	}
	dot, ok := turn.in[0].producedBy("MatMul")
	if !ok || unshaped(dot.in[0]) != raised {
		return nil, false
	}
	d, queries := mean.dims(), raised.dims()[rank-2]
	if !slices.Equal(total.dims(), slices.Concat(d[:len(d)-2], []int{1, queries})) || d[len(d)-1] != queries {
		return nil, false
	}
	shares := p.emit("Softmax", raised.shape, exp.in, onnx.Int("axis", -1))
	product := p.emit("MatMul", dot.out[0].shape, []*value{p.reshape(shares, dot.in[0].dims()...), dot.in[1]})
	return p.reshape(p.transpose(product, 0, 2, 1), d...), true
}

// unshaped returns the value behind reshapes.
func unshaped(v *value) *value {
	for {
		n, ok := v.producedBy("Reshape")
		if !ok {
			return v
		}
		v = n.in[0]
	}
}
