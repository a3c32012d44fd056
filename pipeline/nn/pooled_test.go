package nn

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// Where keys and values do not vary within the squares that are taken together,
// pooled attention is attention, also where the edge cuts squares.
func TestPooledAttentionIsAttentionWhereSquaresAreOfOneKind(t *testing.T) {
	const heads, depth, height, width, side = 2, 3, 5, 7, 2
	const n, third = height * width, heads * depth * height * width
	x := normals("qkv", 3*third)
	for c := range 2 * heads * depth {
		plane := x[third+c*n:][:n]
		for i := range n {
			row, col := i/width, i%width
			plane[i] = plane[row/side*side*width+col/side*side]
		}
	}
	for h := range heads { // keys have unit magnitude
		for i := range n {
			key := func(d int) *float32 { return &x[third+(h*depth+d)*n+i] }
			square := 0.0
			for d := range depth {
				square += float64(*key(d)**key(d)) / depth
			}
			for d := range depth {
				*key(d) /= float32(math.Sqrt(square))
			}
		}
	}
	got := compute(t, func(in []*Node) *Node { return attendPooled(in[0], heads, side) }, tensor(x, 1, 3*heads*depth, height, width))
	for i, want := range plainAttention(doubles(x), heads, depth, n) {
		if math.Abs(float64(got[i])-want) > 1e-5 {
			t.Errorf("number %d is %g, want %g", i, got[i], want)
		}
	}
}

func TestOnlyLargeImagesArePooled(t *testing.T) {
	for _, tt := range []struct{ height, width, want int }{
		{8, 8, 1}, {32, 32, 1}, {33, 32, 2}, {64, 64, 2}, {99, 138, 4}, {1, 4096, 4},
	} {
		if got := poolSide(tt.height, tt.width, 1024); got != tt.want {
			t.Errorf("%dx%d places are pooled in squares of %d, want %d", tt.height, tt.width, got, tt.want)
		}
	}
}

// A pooled network answers as before where an image is small, and nearly so, but not
// quite, where it is large.
func TestAPooledNetworkPoolsLargeImagesOnly(t *testing.T) {
	config, err := UNetOf(Tiny, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	network, err := NewUNet(config)
	if err != nil {
		t.Fatal(err)
	}
	weights := normals("weights", network.Layout().Size)
	answer := func(n Network, side int) []float32 {
		return compute(t, func(in []*Node) *Node { return n.Apply(Slices(in[2]), in[0], in[1]) },
			tensor(normals("image", 2*side*side), 1, 2, side, side), tensor([]float32{0.5}, 1), tensor(weights, len(weights)))
	}
	pooled := Pooled(network, 16)
	for side, same := range map[int]bool{32: true, 64: false} {
		want, got := answer(network, side), answer(pooled, side)
		size, off := 0.0, 0.0
		for i := range want {
			size += float64(want[i] * want[i])
			off += float64((got[i] - want[i]) * (got[i] - want[i]))
		}
		if share := math.Sqrt(off / size); same != (off == 0) || share > 0.2 {
			t.Errorf("%d pixels a side: the answer is off by %.3f of its magnitude, must be 0: %v", side, share, same)
		}
	}
}

// Keys that vary within a square weigh as much as they do one by one, to second order.
func TestPooledAttentionKnowsHowKeysVary(t *testing.T) {
	const heads, depth, height, width, side = 1, 32, 16, 16, 4
	const n = height * width
	x := normals("qkv", 3*depth*n)
	value := x[2*depth*n:]
	for i := range value { // the answer is the share of the left half
		value[i] = 0
		if i%n%width < width/2 {
			value[i] = 1
		}
	}
	for d := range depth { // in which all keys are the same
		plane := x[(depth+d)*n:][:n]
		for i := range plane {
			if i%width < width/2 {
				plane[i] = plane[0]
			}
		}
	}
	unit := func(in []*Node) *Node {
		return Reshape(unitMagnitude(Reshape(in[0], 1, 3, depth, n), 2), 1, 3*depth, n)
	}
	in := func() *tensors.Tensor { return tensor(x, 1, 3*depth, height, width) }
	withValues := func(in []*Node) *Node { // values keep their magnitude
		return Concatenate([]*Node{Slice(unit(in), AxisRange(), AxisRange(0, 2*depth)), Reshape(Slice(in[0], AxisRange(), AxisRange(2*depth, 3*depth)), 1, depth, n)}, 1)
	}
	want := compute(t, func(in []*Node) *Node { return attend(withValues(in), heads, unitQueryKeys) }, in())
	got := compute(t, func(in []*Node) *Node {
		return attendPooled(Reshape(withValues(in), 1, 3*depth, height, width), heads, side)
	}, in())
	wanted, found := mean(want), mean(got)
	if math.Abs(found-wanted) > 0.01 {
		t.Errorf("the share of the half whose keys are the same is %.3f, want %.3f", found, wanted)
	}
}

func mean(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	return sum / float64(len(x))
}
