package learn

import (
	"context"
	"math"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

func distilled(t *testing.T, tr *Trainer, teachers []*impute.Model, m Material, src Source, cfg Config) *impute.Model {
	t.Helper()
	model, _, err := tr.Distil(context.Background(), teachers, m, src, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// distances returns the mean squared difference of means in hidden cells of a
// window between models and a target.
func distanceTo(t *testing.T, want impute.Prediction, m *impute.Model, in impute.Inputs) float64 {
	t.Helper()
	got := imputetest.PredictOne(t, m, in)
	sum, n := 0.0, 0.0
	for i, sea := range in.Sea {
		if sea && !in.Visible[i] {
			d := float64(got.Mean[i] - want.Mean[i])
			sum, n = sum+d*d, n+1
		}
	}
	return sum / n
}

func TestAStudentAnswersAsItsTeachersTogether(t *testing.T) {
	tr := newTrainer(t, 4)
	s := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 12, Length: 3, Memory: 0.8, Seed: 1})
	m, src := s.examplesOf(t, 1)
	cfg := tinyConfig(16)
	cfg.Clean, cfg.Steps = 1, 60
	var teachers []*impute.Model
	for seed := range uint64(2) {
		one := cfg
		one.Seed = seed + 1
		teachers = append(teachers, trained(t, tr, m, src, one))
	}
	cfg.Steps = 240
	student := distilled(t, tr, teachers, m, src, cfg)
	in := imputetest.SomeInputs(t, 16, 5)
	both, err := impute.Group{Models: teachers}.Predict(context.Background(), []impute.Inputs{in})
	if err != nil {
		t.Fatal(err)
	}
	apart := distanceTo(t, both[0], teachers[0], in)
	if got := distanceTo(t, both[0], student, in); got > apart/2 {
		t.Errorf("the student is %.3g from what its teachers say together, the first of them %.3g", got, apart)
	}
	got := imputetest.PredictOne(t, student, in)
	sigmas, want := 0.0, 0.0
	for i, sea := range in.Sea {
		if sea && !in.Visible[i] {
			sigmas, want = sigmas+float64(got.Sigma[i]), want+float64(both[0].Sigma[i])
		}
	}
	if math.Abs(sigmas/want-1) > 0.15 {
		t.Errorf("the student's sigmas are %.2f of those of the mixture", sigmas/want)
	}
}

// A student learns from what its teachers say and not from the truth, so that
// cells that nobody observed teach it as much.
func TestAStudentNeedsNoTruth(t *testing.T) {
	tr := newTrainer(t, 4)
	s := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 12, Length: 3, Memory: 0.8, Seed: 1})
	m, src := s.examplesOf(t, 1)
	cfg := tinyConfig(16)
	cfg.Clean = 1
	teachers := []*impute.Model{trained(t, tr, m, src, cfg)}
	hidden := src
	want := distilled(t, tr, teachers, m, src, cfg)
	got := distilled(t, tr, teachers, m, unasked{hidden}, cfg)
	if want.Fingerprint() != got.Fingerprint() {
		t.Error("a student of examples without a question has other weights: it learned from the truth")
	}
	if want.Fingerprint() == teachers[0].Fingerprint() {
		t.Error("nothing was learned at all")
	}
}

// unasked is a source whose examples ask for nothing.
type unasked struct{ Source }

func (u unasked) Example(ctx context.Context, n uint64) (Example, error) {
	e, err := u.Source.Example(ctx, n)
	e.Query = make([]bool, len(e.Query))
	return e, err
}

// An example of another size is the example of a sea with another spread.
func TestResizedPlanesAreThoseOfResizedValues(t *testing.T) {
	in := imputetest.SomeInputs(t, 16, 3)
	cells := in.Cells()
	analysis, sigma := make([]float32, cells), make([]float32, cells)
	for i := range analysis {
		analysis[i], sigma[i] = float32(math.Sin(float64(i))), 0.2+float32(i%7)/10
	}
	in.Analysis, in.AnalysisSigma = analysis, sigma
	d := impute.Design{Extras: impute.Extras{Last: true, Next: true, Analysis: true}, Departure: true}
	const factor = -1.7
	times := func(values []float32, f float32) []float32 {
		out := make([]float32, len(values))
		for i, v := range values {
			out[i] = f * v
		}
		return out
	}
	resized := in
	resized.Values = times(in.Values, factor)
	resized.Last = samples.Composite{Value: times(in.Last.Value, factor), Freshness: in.Last.Freshness}
	resized.Next = samples.Composite{Value: times(in.Next.Value, factor), Freshness: in.Next.Freshness}
	resized.Analysis, resized.AnalysisSigma = times(analysis, factor), times(sigma, -factor)
	got := impute.Image{Data: make([]float32, d.Planes()*cells), Height: in.Height, Width: in.Width}
	want := impute.Image{Data: make([]float32, d.Planes()*cells), Height: in.Height, Width: in.Width}
	d.EncodeTimes(got, &in, impute.Level{}, factor)
	d.Encode(want, &resized, impute.Level{})
	for i := range want.Data {
		if math.Abs(float64(got.Data[i]-want.Data[i])) > 1e-5 {
			t.Fatalf("plane %d cell %d is %v, want %v", i/cells, i%cells, got.Data[i], want.Data[i])
		}
	}
}

// Turns and sizes change an example and its target alike, as often as they should.
func TestExamplesAreTurnedAndResizedWithTheirTarget(t *testing.T) {
	s := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 12, Length: 3, Memory: 0.8, Seed: 1})
	m, src := s.examplesOf(t, 1)
	cfg := tinyConfig(16)
	cfg.Batch, cfg.Clean = 1, 1
	varied := cfg
	varied.Transpose, varied.Size = true, 0.35
	plain, other := newExamples(m, src, cfg), newExamples(m, src, varied)
	const count = 300
	turned, logs := 0.0, []float64{}
	for n := range uint64(count) {
		want, got := batchOf(t, plain, n), batchOf(t, other, n)
		target, image := cfg.planes(got, targetTensor, 0), cfg.planes(got, imageTensor, 0)
		back := cfg.planes(want, targetTensor, 0)
		if mask := cfg.planes(want, imageTensor, 0).Plane(impute.MaskPlane); !equal(image.Plane(impute.MaskPlane), mask, 1) {
			turned++
			back.Turn(impute.Turn{Transpose: true})
			x := cfg.planes(want, imageTensor, 0)
			x.Turn(impute.Turn{Transpose: true})
			if !equal(image.Plane(impute.MaskPlane), x.Plane(impute.MaskPlane), 1) {
				t.Fatalf("example %d is neither as it was nor transposed", n)
			}
		}
		factor := ratio(target.Plane(ValueOfTarget), back.Plane(ValueOfTarget))
		if !equal(target.Plane(ValueOfTarget), back.Plane(ValueOfTarget), factor) {
			t.Fatalf("example %d: the target is not the plain one times %v", n, factor)
		}
		if !equal(image.Plane(impute.ValuePlane), cfg.planes(want, imageTensor, 0).Plane(impute.ValuePlane), factor) {
			t.Fatalf("example %d: the context is not the plain one times the factor of the target, %v", n, factor)
		}
		logs = append(logs, math.Log(float64(factor)))
	}
	if noise := 4 * math.Sqrt(0.25/count); math.Abs(turned/count-0.5) > noise {
		t.Errorf("%v of %d examples are transposed", turned, count)
	}
	mean, square := 0.0, 0.0
	for _, v := range logs {
		mean, square = mean+v/count, square+v*v/count
	}
	if sd := math.Sqrt(square - mean*mean); math.Abs(mean) > 0.1 || math.Abs(sd-0.35) > 0.06 {
		t.Errorf("the logarithm of the size has mean %.3f and deviation %.3f, want 0 and 0.35", mean, sd)
	}
}

// ratio returns the factor from b to a at the largest value.
func ratio(a, b []float32) float32 {
	at := 0
	for i, v := range b {
		if v*v > b[at]*b[at] {
			at = i
		}
	}
	return a[at] / b[at]
}

func equal(a, b []float32, factor float32) bool {
	for i := range a {
		if math.Abs(float64(a[i]-factor*b[i])) > 1e-4 {
			return false
		}
	}
	return true
}
