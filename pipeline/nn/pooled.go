package nn

import (
	"math"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// Pooled returns a network whose pixels attend to so many places at most: in images
// of more, to the means of squares of them. With each pixel attending to each other
// one the cost grows as the square of the image: 790x1101 pixels are 13,662 places at
// an eighth of the resolution, and 187 million pairs a head, several gigabytes to be
// written and read in each block. It costs some skill (docs/results.md, Whole basins), so
// it is for networks that are asked hundreds of times about an image. A vision transformer
// stays as it is.
func Pooled(n Network, keys int) Network {
	u, ok := n.(*UNet)
	if !ok {
		return n
	}
	pooled := *u
	for _, way := range []*[][]residual{&pooled.down, &pooled.up} {
		levels := make([][]residual, len(*way))
		for i, blocks := range *way {
			levels[i] = slices.Clone(blocks)
			for k := range levels[i] {
				levels[i][k].keys = keys
			}
		}
		*way = levels
	}
	return &pooled
}

// poolSide returns the side of the squares of places that are taken together, so
// that an image of height x width places has so many of them at most; 1: each stands for
// itself.
func poolSide(height, width, keys int) int {
	side := 1
	for ceilDiv(height, side)*ceilDiv(width, side) > keys {
		side++
	}
	return side
}

// attendPooled is attend for images qkv [batch, 3*channels, height, width] with keys
// and values that are the means of squares of side x side places: [batch, channels,
// positions]. A square counts by the places that it has. It has the gradient that
// GoMLX derives, which takes too much memory to train with.
func attendPooled(qkv *Node, heads, side int) *Node {
	d := qkv.Shape().Dimensions
	batch, channels, positions := d[0], d[1]/3, d[2]*d[3]
	q := Reshape(Slice(qkv, AxisRange(), AxisRange(0, channels)), batch, heads, channels/heads, positions)
	sums := poolSums(Slice(qkv, AxisRange(), AxisRange(channels, 3*channels)), side)
	keys := sums.Shape().Dimensions[2] * sums.Shape().Dimensions[3]

	inverse, weight := make([]float32, 0, keys), make([]float32, 0, keys)
	for _, places := range squarePlaces(d[2], d[3], side) {
		inverse = append(inverse, float32(1/places))
		weight = append(weight, float32(math.Log(places/float64(side*side))))
	}
	constant := func(v []float32, dtype dtypes.DType) *Node {
		return ConvertDType(Reshape(Const(qkv.Graph(), v), 1, 1, 1, keys), dtype)
	}
	kv := Mul(Reshape(sums, batch, 2*heads, channels/heads, keys), constant(inverse, qkv.DType()))
	k := Slice(kv, AxisRange(), AxisRange(0, heads))
	v := Slice(kv, AxisRange(), AxisRange(heads, 2*heads))

	more := Add(spreadWithin(k), constant(weight, dtypes.Float32))
	answer := newAttention([3]*Node{q, k, v}, unitQueryKeys, more).answer()
	return Reshape(answer, batch, channels, positions)
}

// spreadWithin returns what the mean key of a square lacks, [batch, heads, 1, keys]: the
// mean of the exponentials of scores is more than that of their mean, by half their
// variance, and keys and queries of unit magnitude vary by what the magnitude of
// their mean has lost.
func spreadWithin(k *Node) *Node {
	k = ConvertDType(k, dtypes.Float32)
	return MulScalar(OneMinus(ReduceAndKeep(Square(k), ReduceMean, 2)), 0.5)
}

// poolSums returns the sums of squares of side x side pixels of x [batch, channels,
// height, width]; beyond the lower and right edge is zero.
func poolSums(x *Node, side int) *Node {
	d := x.Shape().Dimensions
	height, width := ceilDiv(d[2], side), ceilDiv(d[3], side)
	zero := ScalarZero(x.Graph(), x.DType())
	x = Pad(x, zero, PadAxis{}, PadAxis{}, PadAxis{End: height*side - d[2]}, PadAxis{End: width*side - d[3]})
	return ReduceSum(Reshape(x, d[0], d[1], height, side, width, side), 3, 5)
}

// squarePlaces returns how many places each square has: those at the lower and right
// edge may have fewer.
func squarePlaces(height, width, side int) []float64 {
	var out []float64
	for top := 0; top < height; top += side {
		for left := 0; left < width; left += side {
			out = append(out, float64(min(side, height-top)*min(side, width-left)))
		}
	}
	return out
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
