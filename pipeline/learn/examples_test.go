package learn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

func TestNegatedPlanesAreThoseOfNegatedValues(t *testing.T) {
	const side, cells = 4, 16
	r := rand.New(rand.NewPCG(1, 1))
	draw := func(f func(float32) float32) []float32 {
		out := make([]float32, cells)
		for i := range out {
			out[i] = f(float32(r.NormFloat64()))
		}
		return out
	}
	same := func(v float32) float32 { return v }
	size := func(v float32) float32 { return float32(math.Abs(float64(v))) + 0.1 }
	in := impute.Inputs{
		Height: side, Width: side, Sea: make([]bool, cells), Visible: make([]bool, cells), DayOfYear: 100, Values: draw(same),
		Last:       samples.Composite{Value: draw(same), Freshness: draw(size)},
		Next:       samples.Composite{Value: draw(same), Freshness: draw(size)},
		Background: draw(same), BackgroundSigma: draw(size), Analysis: draw(same), AnalysisSigma: draw(size),
	}
	for i := range cells {
		in.Sea[i], in.Visible[i] = true, i%3 == 0
	}
	opposite := in
	for _, values := range []*[]float32{&opposite.Values, &opposite.Last.Value, &opposite.Next.Value, &opposite.Background, &opposite.Analysis} {
		negated := make([]float32, cells)
		for i, v := range *values {
			negated[i] = -v
		}
		*values = negated
	}
	for _, extras := range []impute.Extras{{}, {Last: true, Analysis: true}, {Last: true, Next: true, Background: true, Analysis: true, Season: true}} {
		d := impute.Design{Extras: extras, Departure: true}
		planes := func(in *impute.Inputs) impute.Image {
			m := impute.Image{Data: make([]float32, d.Planes()*cells), Height: side, Width: side}
			d.Encode(m, in, impute.Level{})
			return m
		}
		got := planes(&in)
		got.Scale(-1, d.Signed()...)
		if want := planes(&opposite); !slices.Equal(got.Data, want.Data) {
			t.Errorf("%+v: planes of opposite sign are others than those of opposite values", extras)
		}
	}
}

func TestHalfOfTheExamplesAreNegatedWithTheirTarget(t *testing.T) {
	s := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 12, Length: 3, Memory: 0.8, Seed: 1})
	m, src := s.examplesOf(t, 1)
	cfg := tinyConfig(16)
	cfg.Batch, cfg.Flip = 1, true
	either := cfg
	either.Negate = true
	plain, signed := newExamples(m, src, cfg), newExamples(m, src, either)
	const count = 200
	opposite := 0
	for n := range uint64(count) {
		want, got := batchOf(t, plain, n), batchOf(t, signed, n)
		if target := cfg.planes(got, targetTensor, 0).Plane(ValueOfTarget); slices.Equal(target, cfg.planes(want, targetTensor, 0).Plane(ValueOfTarget)) {
			if !slices.Equal(got.Buffers[imageTensor], want.Buffers[imageTensor]) {
				t.Fatalf("example %d is negated and its target is not", n)
			}
			continue
		}
		opposite++
		cfg.planes(want, imageTensor, 0).Scale(-1, cfg.Design.Signed()...)
		cfg.planes(want, targetTensor, 0).Scale(-1, ValueOfTarget)
		for tensor := range want.Buffers {
			if !slices.Equal(got.Buffers[tensor], want.Buffers[tensor]) {
				t.Fatalf("example %d: tensor %d is not that of the other sign", n, tensor)
			}
		}
	}
	if noise := 4 * math.Sqrt(0.25/count); math.Abs(float64(opposite)/count-0.5) > noise {
		t.Errorf("%d of %d examples are of the other sign", opposite, count)
	}
}

// batchOf returns example n in a batch of its own.
func batchOf(t *testing.T, l *imputerExamples, n uint64) *train.Batch {
	t.Helper()
	b := train.NewBatch(l.cfg.batchDims(), scratchWindows*l.cfg.Side*l.cfg.Side)
	if err := l.fill(context.Background(), b, 0, n); err != nil {
		t.Fatal(err)
	}
	return b
}
