package nn

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/noise"
)

const (
	side   = 16
	batch  = 4
	cells  = side * side
	length = 3 // of the fields, in cells
)

// seas returns a batch of smooth fields with gaps: values where they are seen and
// the mask, [batch, 2, side, side], their times, and the fields.
func seas(n uint64) (x, times, fields *tensors.Tensor) {
	images, truth := make([]float32, 0, 2*batch*cells), make([]float32, 0, batch*cells)
	for i := range uint64(batch) {
		s := noise.New(n, "seas").Sub(i)
		field, clouds := noise.SmoothField(side, side, length, s.Sub(0)), noise.SmoothField(side, side, length, s.Sub(1))
		values, mask := make([]float32, cells), make([]float32, cells)
		for c, v := range field {
			field[c] = v / length // its variance is about the square of the length
			if clouds[c] < 0.3 {
				values[c], mask[c] = field[c], 1
			}
		}
		images = append(append(images, values...), mask...)
		truth = append(truth, field...)
	}
	return tensors.FromFlatDataAndDimensions(images, batch, 2, side, side),
		tensors.FromFlatDataAndDimensions([]float32{0, 0.1, 0.5, 0.9}, batch),
		tensors.FromFlatDataAndDimensions(truth, batch, 1, side, side)
}

// magnitudes returns the root mean square of the image after each block.
func magnitudes(t *testing.T, e *engine.Engine, u *UNet, weights []float32) []float64 {
	t.Helper()
	x, times, _ := seas(0)
	p, err := engine.Compile(e, "magnitudes", func(g *Graph) []*Node {
		return u.blocks(Constants(g, weights), Parameter(g, "x", x.Shape()), Parameter(g, "t", times.Shape()))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	answers, err := p.Run(x, times)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(answers))
	for i, a := range answers {
		flat, err := tensors.CopyFlatData[float32](a)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = rms(flat)
	}
	return out
}

// The magnitude of images stays near one from the first block to the last, on
// the way down and up, before training and after it. Were it to grow or vanish
// by a tenth a block, the 24 blocks of this network would make a factor of ten.
func TestMagnitudesStayNearOneThroughTheWholeNetwork(t *testing.T) {
	e := enginetest.Open(t)
	u, err := NewUNet(UNetConfig{In: 2, Out: 1, Channels: 16, Multipliers: []int{1, 2, 2, 2}, Blocks: 3, Attention: 2})
	if err != nil {
		t.Fatal(err)
	}
	weights := u.Layout().Init(1)
	check := func(when string, got []float64, low, high float64) {
		t.Helper()
		t.Logf("%s: %.2f", when, got)
		for i, m := range got {
			if m < low || m > high {
				t.Errorf("%s the image after block %d of %d has the magnitude %.2f, want %g to %g", when, i+1, len(got), m, low, high)
			}
		}
	}
	check("before training", magnitudes(t, e, u, weights), 0.7, 1.2)
	if testing.Short() {
		t.Skip("training takes seconds")
	}
	check("after training", magnitudes(t, e, u, trained(t, e, u, weights)), 0.5, 3)
}

// trained returns weights after steps of Adam in which the network has learned
// something: the loss must have fallen by a third.
func trained(t *testing.T, e *engine.Engine, u *UNet, weights []float32) []float32 {
	t.Helper()
	const steps, rate = 60, 5e-3 // several times the usual rate: filters that may grow do, and images with them, ninefold
	x, times, fields := seas(0)
	vector := shapes.Make(dtypes.Float32, len(weights))
	p, err := engine.Compile(e, "adam", func(g *Graph) []*Node {
		w, mean, variance := Parameter(g, "w", vector), Parameter(g, "mean", vector), Parameter(g, "variance", vector)
		step := Parameter(g, "rate", shapes.Make(dtypes.Float32))
		answer := u.Apply(Slices(w), Parameter(g, "x", x.Shape()), Parameter(g, "t", times.Shape()))
		loss := ReduceAllMean(Square(Sub(answer, Parameter(g, "fields", fields.Shape()))))
		gradient := Gradient(loss, w)[0]
		mean = Add(MulScalar(mean, 0.9), MulScalar(gradient, 0.1))
		variance = Add(MulScalar(variance, 0.999), MulScalar(Square(gradient), 0.001))
		return []*Node{Sub(w, Mul(step, Div(mean, AddScalar(Sqrt(variance), 1e-8)))), mean, variance, loss}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	state := []*tensors.Tensor{tensor(weights, len(weights)), tensor(make([]float32, len(weights)), len(weights)), tensor(make([]float32, len(weights)), len(weights))}
	var first, last float64
	for n := range steps {
		x, times, fields := seas(uint64(n))
		k := float64(n + 1)
		unbiased := rate * math.Sqrt(1-math.Pow(0.999, k)) / (1 - math.Pow(0.9, k))
		out, err := p.Run(state[0], state[1], state[2], tensors.FromValue(float32(unbiased)), x, times, fields)
		if err != nil {
			t.Fatal(err)
		}
		state = out[:3]
		loss := float64(tensors.ToScalar[float32](out[3]))
		if n < 10 {
			first += loss / 10
		}
		if n >= steps-10 {
			last += loss / 10
		}
	}
	t.Logf("the loss fell from %.3f to %.3f", first, last)
	if last > first*2/3 {
		t.Errorf("the loss went from %.3f to %.3f: the network has hardly learned", first, last)
	}
	flat, err := tensors.CopyFlatData[float32](state[0])
	if err != nil {
		t.Fatal(err)
	}
	return flat
}
