package ort

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/ort/onnx"
)

// Reshape gives x other dimensions and the same elements in the same order.
func (g *builder) Reshape(x backends.Op, dims ...int) (backends.Op, error) {
	v, err := g.value("Reshape", x)
	if err != nil {
		return nil, err
	}
	if _, err := shapeinference.ReshapeOp(v.shape, dims); err != nil {
		return nil, err
	}
	return g.program.reshape(v, dims...), nil
}

// Transpose permutes axes.
func (g *builder) Transpose(x backends.Op, perm ...int) (backends.Op, error) {
	v, err := g.value("Transpose", x)
	if err != nil {
		return nil, err
	}
	if _, err := shapeinference.TransposeOp(v.shape, perm); err != nil {
		return nil, err
	}
	return g.program.transpose(v, perm...), nil
}

// BroadcastInDim puts axis i of x at axis axes[i] of the result and repeats
// the rest.
func (g *builder) BroadcastInDim(x backends.Op, out shapes.Shape, axes []int) (backends.Op, error) {
	v, err := g.value("BroadcastInDim", x)
	if err != nil {
		return nil, err
	}
	if err := shapeinference.BroadcastInDimOp(v.shape, out, axes); err != nil {
		return nil, err
	}
	dims := slices.Repeat([]int{1}, out.Rank())
	for i, a := range axes {
		dims[a] = v.dims()[i]
	}
	return g.program.expand(g.program.reshape(v, dims...), out.Dimensions...), nil
}

// Concatenate joins operands along an axis.
func (g *builder) Concatenate(axis int, operands ...backends.Op) (backends.Op, error) {
	in, err := g.values("Concatenate", operands...)
	if err != nil {
		return nil, err
	}
	inShapes := make([]shapes.Shape, len(in))
	for i, v := range in {
		inShapes[i] = v.shape
	}
	shape, err := shapeinference.ConcatenateOp(inShapes, axis)
	if err != nil {
		return nil, err
	}
	if len(in) == 1 {
		return in[0], nil
	}
	return g.program.concat(shape, in, axis), nil
}

// concat joins blocked images along their channels as they are: whole blocks
// follow one another in both layouts.
func (p *program) concat(shape shapes.Shape, in []*value, axis int) *value {
	blocked := make([]*value, len(in))
	for i, v := range in {
		self, ok := blockedSelf(v)
		if !ok || axis != 1 {
			return p.emit("Concat", shape, in, onnx.Int("axis", axis))
		}
		blocked[i] = self
	}
	return p.toPlain(p.emit("Concat", shape, blocked, onnx.Int("axis", axis)))
}

// Slice takes elements from starts to before limits, every strides-th.
func (g *builder) Slice(x backends.Op, starts, limits, strides []int) (backends.Op, error) {
	v, err := g.value("Slice", x)
	if err != nil {
		return nil, err
	}
	if len(strides) == 0 {
		strides = slices.Repeat([]int{1}, v.shape.Rank())
	}
	if _, err := shapeinference.SliceOp(v.shape, starts, limits, strides); err != nil {
		return nil, err
	}
	return g.program.slice(v, starts, limits, strides), nil
}

// slice names only the axes that it cuts.
func (p *program) slice(v *value, starts, limits, strides []int) *value {
	dims := slices.Clone(v.dims())
	var from, to, axes, steps []int
	for a, d := range dims {
		if starts[a] == 0 && limits[a] == d && strides[a] == 1 {
			continue
		}
		from, to, axes, steps = append(from, starts[a]), append(to, limits[a]), append(axes, a), append(steps, strides[a])
		dims[a] = (limits[a] - starts[a] + strides[a] - 1) / strides[a]
	}
	if len(axes) == 0 {
		return v
	}
	return p.emit("Slice", shapes.Make(v.shape.DType, dims...),
		[]*value{v, p.ints(from...), p.ints(to...), p.ints(axes...), p.ints(steps...)})
}

// Reverse turns the order of elements around along axes.
func (g *builder) Reverse(x backends.Op, axes ...int) (backends.Op, error) {
	v, err := g.value("Reverse", x)
	if err != nil {
		return nil, err
	}
	var turned []int
	for _, a := range axes {
		if a < 0 || a >= v.shape.Rank() {
			return nil, fmt.Errorf("Reverse: axis %d of a tensor %s", a, v.shape)
		}
		if v.dims()[a] > 1 {
			turned = append(turned, a)
		}
	}
	if len(turned) == 0 {
		return v, nil
	}
	// From the last element back past the first, which ONNX writes as a limit
	// below every index.
	last, past, back := make([]int, len(turned)), make([]int, len(turned)), make([]int, len(turned))
	for i := range turned {
		last[i], past[i], back[i] = -1, math.MinInt64+1, -1
	}
	p := g.program
	return p.emit("Slice", v.shape, []*value{v, p.ints(last...), p.ints(past...), p.ints(turned...), p.ints(back...)}), nil
}

// Pad adds elements before, after and between those of x; a negative amount
// before or after removes some.
func (g *builder) Pad(x, fill backends.Op, axes ...backends.PadAxis) (backends.Op, error) {
	in, err := g.values("Pad", x, fill)
	if err != nil {
		return nil, err
	}
	v, with := in[0], in[1]
	if len(axes) > v.shape.Rank() || with.shape.Rank() != 0 || with.shape.DType != v.shape.DType {
		return nil, fmt.Errorf("Pad: %d axes and fill value %s for a tensor %s", len(axes), with.shape, v.shape)
	}
	for a, c := range axes {
		v = g.program.spread(v, with, a, c.Interior)
	}
	return g.program.pad(v, with, axes), nil
}

// pad adds or, where negative, removes elements at both ends of each axis.
func (p *program) pad(v, fill *value, axes []backends.PadAxis) *value {
	dims, rank := slices.Clone(v.dims()), v.shape.Rank()
	amounts := make([]int, 2*rank)
	changed := false
	for a, c := range axes {
		amounts[a], amounts[rank+a] = c.Start, c.End
		dims[a] += c.Start + c.End
		changed = changed || c.Start != 0 || c.End != 0
	}
	if !changed {
		return v
	}
	return p.emit("Pad", shapes.Make(v.shape.DType, dims...), []*value{v, p.ints(amounts...), fill})
}

// spread puts interior fill values between the elements along an axis: each
// element gets an axis of its own, which is padded and folded back.
func (p *program) spread(v, fill *value, axis, interior int) *value {
	length := v.dims()[axis]
	if interior <= 0 || length < 2 {
		return v
	}
	dims := slices.Insert(slices.Clone(v.dims()), axis+1, 1)
	single := make([]backends.PadAxis, len(dims))
	single[axis+1].End = interior
	wide := p.pad(p.reshape(v, dims...), fill, single)
	folded := slices.Clone(v.dims())
	folded[axis] = length * (interior + 1)
	ends := make([]backends.PadAxis, len(folded))
	ends[axis].End = -interior
	return p.pad(p.reshape(wide, folded...), fill, ends)
}

// Iota counts 0, 1, 2 ... along an axis.
func (g *builder) Iota(shape shapes.Shape, axis int) (backends.Op, error) {
	if axis < 0 || axis >= shape.Rank() {
		return nil, fmt.Errorf("Iota: axis %d of a tensor %s", axis, shape)
	}
	length := shape.Dimensions[axis]
	counts := make([]int64, length)
	for i := range counts {
		counts[i] = int64(i)
	}
	dims := slices.Repeat([]int{1}, shape.Rank())
	dims[axis] = length
	line := g.program.constant(shapes.Make(dtypes.Int64, dims...), memoryOf(counts))
	converted, err := g.ConvertDType(line, shape.DType)
	if err != nil {
		return nil, err
	}
	return g.program.expand(converted.(*value), shape.Dimensions...), nil
}
