package ort

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// A tensor in the blocked layout has the shape of its plain self and another
// order in memory. Plain code sees it through a ReorderOutput; operations that
// do not care for the order look behind that and work on the blocked tensor,
// so that it stays blocked from one convolution to the next. A ReorderOutput
// that nothing reads in the end is dropped with the other dead nodes.

// blockable reports whether the blocked layout can do c and gains by it: on a
// single pixel there is nothing to gain.
func (p *program) blockable(c convolution) bool {
	if p.dialect.block == 0 || len(c.strides) != 2 || c.groups != 1 || c.out.DType != dtypes.Float32 {
		return false
	}
	k := c.kernel.dims()
	return k[0]%p.dialect.block == 0 && k[1]%p.dialect.block == 0 && c.out.Dimensions[2]*c.out.Dimensions[3] > 1
}

// blockedConv convolves in the blocked layout.
func (p *program) blockedConv(c convolution) *value {
	in := []*value{p.toBlocked(c.input), p.blockedKernel(c.kernel)}
	return p.toPlain(p.emitIn(blockedDomain, "Conv", []shapes.Shape{c.out}, in, c.attributes()...)[0])
}

// blockedKernel brings weights into the order that the blocked kernels read:
// blocks of output and input channels outside, then the window, then the
// input and output channels within the blocks. One Transpose could do it, a
// number at a time on one thread. ReorderInput puts the channels that go last
// there on all threads, and the rest moves whole blocks: a fifth of the time.
func (p *program) blockedKernel(kernel *value) *value {
	block, k := p.dialect.block, kernel.dims()
	window := k[2] * k[3]
	if n, ok := kernel.producedBy("Transpose"); ok && slices.Equal(n.attrs[0].Ints, []int64{1, 0, 2, 3}) {
		// The kernel of an input gradient: as stored, its output channels come
		// second.
		w := p.reshape(p.reorderInput(n.in[0]), k[1]/block, block, k[0]/block, window, block)
		return p.reshape(p.transpose(w, 2, 0, 3, 1, 4), k...)
	}
	w := p.reorderInput(p.reshape(kernel, 1, k[0], k[1], window))
	w = p.reshape(w, k[0]/block*k[1]/block, block, window, block)
	return p.reshape(p.transpose(w, 0, 2, 1, 3), k...)
}

// toBlocked returns v in the blocked layout.
func (p *program) toBlocked(v *value) *value {
	if blocked, ok := blockedSelf(v); ok {
		return blocked
	}
	return p.reorderInput(v)
}

func (p *program) reorderInput(v *value) *value {
	return p.emitIn(blockedDomain, "ReorderInput", []shapes.Shape{v.shape}, []*value{v})[0]
}

// toPlain returns the plain self of a blocked value, always the same node.
func (p *program) toPlain(v *value) *value {
	if plain, ok := p.plain[v]; ok {
		return plain
	}
	if p.plain == nil {
		p.plain = map[*value]*value{}
	}
	p.plain[v] = p.emitIn(blockedDomain, "ReorderOutput", []shapes.Shape{v.shape}, []*value{v}, onnx.Int("channels", v.dims()[1]))[0]
	return p.plain[v]
}

// blockedSelf returns the blocked tensor behind a plain one, if there is one.
func blockedSelf(v *value) (*value, bool) {
	if n, ok := v.producedBy("ReorderOutput"); ok {
		return n.in[0], true
	}
	return nil, false
}

// blockedSelves returns the operands of an elementwise operation on blocked
// tensors: each must be blocked and shaped like the result, or a single
// number.
func blockedSelves(in []*value, shape shapes.Shape) ([]*value, bool) {
	selves := make([]*value, len(in))
	found := false
	for i, v := range in {
		if v.shape.Size() == 1 && v.shape.Rank() == 0 {
			selves[i] = v
			continue
		}
		self, ok := blockedSelf(v)
		if !ok || !slices.Equal(self.dims(), shape.Dimensions) {
			return nil, false
		}
		selves[i], found = self, true
	}
	return selves, found
}
