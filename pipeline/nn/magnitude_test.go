package nn_test

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/train"
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
func magnitudes(t *testing.T, e *engine.Engine, u *nn.UNet, weights []float32) []float64 {
	t.Helper()
	x, times, _ := seas(0)
	p, err := engine.Compile(e, "magnitudes", func(g *Graph) []*Node {
		return nn.Blocks(u, nn.Constants(g, weights), Parameter(g, "x", x.Shape()), Parameter(g, "t", times.Shape()))
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
		sum := 0.0
		for _, v := range flat {
			sum += float64(v) * float64(v)
		}
		out[i] = math.Sqrt(sum / float64(len(flat)))
	}
	return out
}

// The magnitude of images stays near one from the first block to the last, on
// the way down and up, before training and after it. Were it to grow or vanish
// by a tenth a block, the 24 blocks of this network would make a factor of ten.
func TestMagnitudesStayNearOneThroughTheWholeNetwork(t *testing.T) {
	e := enginetest.Open(t)
	u, err := nn.NewUNet(nn.UNetConfig{In: 2, Out: 1, Channels: 16, Multipliers: []int{1, 2, 2, 2}, Blocks: 3, Attention: 2})
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
	check("after training", magnitudes(t, e, u, trained(t, e, u, weights)), 0.5, 2)
}

// trained returns weights after steps in which the network has learned
// something: the loss must have fallen to less than half.
func trained(t *testing.T, e *engine.Engine, u *nn.UNet, weights []float32) []float32 {
	t.Helper()
	cfg := train.DefaultConfig()
	cfg.Steps, cfg.WarmupSteps, cfg.LearningRate = 60, 5, 3e-3
	step, err := train.NewStep(e, u.Layout(), cfg, func(w nn.Weights, in []*Node) *Node {
		return ReduceAllMean(Square(Sub(u.Apply(w, in[0], in[1]), in[2])))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer step.Close()
	if err := step.Start(weights); err != nil {
		t.Fatal(err)
	}
	var first, last float64
	for n := range cfg.Steps {
		m, err := step.Run(seas(uint64(n)))
		if err != nil {
			t.Fatal(err)
		}
		if n < 10 {
			first += m.Loss / 10
		}
		if n >= cfg.Steps-10 {
			last += m.Loss / 10
		}
	}
	t.Logf("the loss fell from %.3f to %.3f", first, last)
	if last > first/2 {
		t.Errorf("the loss went from %.3f to %.3f: the network has hardly learned", first, last)
	}
	state, err := step.State()
	if err != nil {
		t.Fatal(err)
	}
	return state.Weights
}
