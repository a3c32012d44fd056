package nn

import (
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
)

func TestHalveTakesMeansAndDoubleRepeats(t *testing.T) {
	x := tensor([]float32{
		1, 3, 10, 10,
		5, 7, 20, 20,
	}, 1, 1, 2, 4)
	if got := compute(t, func(in []*Node) *Node { return halve(in[0]) }, x); !slices.Equal(got, []float32{4, 15}) {
		t.Errorf("halve gives %v, want [4 15]", got)
	}
	y := tensor([]float32{1, 2}, 1, 1, 1, 2)
	want := []float32{1, 1, 2, 2, 1, 1, 2, 2}
	if got := compute(t, func(in []*Node) *Node { return double(in[0]) }, y); !slices.Equal(got, want) {
		t.Errorf("double gives %v, want %v", got, want)
	}
}

// plainAttention is attention in plain arithmetic; x is [3*heads*depth, n] of one sample.
func plainAttention(x []float64, heads, depth, n int) []float64 {
	third := heads * depth * n
	q, k, v := x[:third], x[third:2*third], x[2*third:]
	out := make([]float64, third)
	for h := range heads {
		at := func(x []float64, d, i int) float64 { return x[(h*depth+d)*n+i] }
		for i := range n {
			share, total := make([]float64, n), 0.0
			for j := range n {
				score := 0.0
				for d := range depth {
					score += at(q, d, i) * at(k, d, j)
				}
				share[j] = math.Exp(score / math.Sqrt(float64(depth)))
				total += share[j]
			}
			for d := range depth {
				for j := range n {
					out[(h*depth+d)*n+i] += share[j] / total * at(v, d, j)
				}
			}
		}
	}
	return out
}

func TestAttentionIsASoftmaxOverPositions(t *testing.T) {
	const heads, depth, n = 2, 3, 5
	x := normals("qkv", 3*heads*depth*n)
	for _, of := range []magnitude{anyMagnitude, unitQueryKeys} {
		got := compute(t, func(in []*Node) *Node { return attend(in[0], heads, of) }, tensor(x, 1, 3*heads*depth, n))
		for i, want := range plainAttention(doubles(x), heads, depth, n) {
			if math.Abs(float64(got[i])-want) > 1e-5 {
				t.Errorf("magnitude %d: number %d is %g, want %g", of, i, got[i], want)
			}
		}
	}
}

func TestGradientOfAttentionAgreesWithFiniteDifferences(t *testing.T) {
	const heads, depth, n = 2, 3, 4
	x, weight := normals("qkv", 3*heads*depth*n), normals("weight", heads*depth*n)
	loss := func(x []float64) float64 {
		sum := 0.0
		for i, v := range plainAttention(x, heads, depth, n) {
			sum += v * float64(weight[i])
		}
		return sum
	}
	for _, of := range []magnitude{anyMagnitude, unitQueryKeys} {
		got := compute(t, func(in []*Node) *Node {
			return Gradient(ReduceAllSum(Mul(attend(in[0], heads, of), in[1])), in[0])[0]
		}, tensor(x, 1, 3*heads*depth, n), tensor(weight, 1, heads*depth, n))
		const h = 1e-5
		for i := range x {
			up, down := doubles(x), doubles(x)
			up[i] += h
			down[i] -= h
			want := (loss(up) - loss(down)) / (2 * h)
			if math.Abs(float64(got[i])-want) > 1e-4 {
				t.Errorf("magnitude %d: gradient %d is %g, want %g", of, i, got[i], want)
			}
		}
	}
}

func doubles(x []float32) []float64 {
	d := make([]float64, len(x))
	for i, v := range x {
		d[i] = float64(v)
	}
	return d
}

func TestAttentionSurvivesLargeScores(t *testing.T) {
	// One channel, two places: the first query agrees with the first key alone.
	qkv := tensor([]float32{1e4, -1e4, 1, -1, 3, 5}, 1, 3, 2)
	got := compute(t, func(in []*Node) *Node { return attend(in[0], 1, anyMagnitude) }, qkv)
	if want := []float32{3, 5}; !slices.Equal(got, want) {
		t.Errorf("the answer is %v, want %v", got, want)
	}
}

// A block must keep the magnitude of its input, or that of a deep network would
// grow or vanish.
func TestResidualBlockKeepsTheMagnitude(t *testing.T) {
	for _, shape := range []residualShape{
		{in: 32, out: 32, time: 8},
		{in: 32, out: 64, time: 8},
		{in: 32, out: 32, time: 8, attention: true},
	} {
		var l Layout
		block := newResidual(scope{layout: &l}, shape)
		weights := l.Init(5)
		out := compute(t, func(in []*Node) *Node {
			return block.apply(Constants(in[0].Graph(), weights), in[0], in[1])
		}, tensor(normals("x", 32*24*24), 1, 32, 24, 24), tensor(make([]float32, 8), 1, 8, 1, 1))
		// Zeros outside the image and the attention's averaging lose a little.
		if r := rms(out); r < 0.85 || r > 1.1 {
			t.Errorf("%+v gives magnitude %.3f for 1", shape, r)
		}
	}
}

func TestFiltersHaveTheSameLengthWhateverTheWeights(t *testing.T) {
	var l Layout
	c := newConv(scope{layout: &l}, 4, 8, 3).withGain(2)
	weights, x := l.Init(5), normals("x", 4*8*8)
	run := func(w []float32) []float32 {
		return compute(t, func(in []*Node) *Node { return c.apply(Constants(in[0].Graph(), w), in[0]) }, tensor(x, 1, 4, 8, 8))
	}
	plain := run(weights)
	for i := range weights {
		weights[i] *= 8
	}
	if d := largestDifference(plain, run(weights)); d > 1e-5 {
		t.Errorf("weights eight times as large change the answer by %g", d)
	}
	if r := rms(plain); r < 1.5 || r > 2.2 {
		t.Errorf("a gain of 2 gives magnitude %.3f for 1", r)
	}
}

func TestPlacesAreAllDifferent(t *testing.T) {
	const rows, columns, width = 32, 64, 64
	const tokens = rows * columns
	flat := compute(t, func(in []*Node) *Node { return Add(places(in[0].Graph(), rows, columns, width), in[0]) }, tensor([]float32{0}, 1, 1, 1, 1))
	for a := 0; a < tokens; a += 7 {
		for b := range a {
			d := 0.0
			for k := range width {
				d = max(d, math.Abs(float64(flat[k*tokens+a]-flat[k*tokens+b])))
			}
			if d < 1e-3 {
				t.Fatalf("patches %d and %d are %g apart", a, b, d)
			}
		}
	}
}

func TestTimesThatDifferALittleAreToldApart(t *testing.T) {
	flat := compute(t, func(in []*Node) *Node { return waves(in[0]) }, tensor([]float32{0, 1e-3, 1}, 3))
	width := len(flat) / 3
	if d := largestDifference(flat[:width], flat[width:2*width]); d < 0.1 {
		t.Errorf("t=0 and t=0.001 are %g apart", d)
	}
	if d := largestDifference(flat[:width], flat[2*width:]); d < 1 {
		t.Errorf("t=0 and t=1 are %g apart", d)
	}
	if r := rms(flat); math.Abs(r-1) > 0.2 {
		t.Errorf("magnitude of the waves is %.3f, want 1", r)
	}
}
