package impute_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
)

// A network is asked about mirror images in serving and learns from them in
// training: both must mean the same by a turn.
func TestTurnedInputsEncodeToTheTurnedImage(t *testing.T) {
	in := imputetest.SomeInputs(t, 16, 3)
	d := imputetest.TinyDesign()
	encode := func(in impute.Inputs) impute.Image {
		m := impute.Image{Data: make([]float32, d.Planes()*in.Cells()), Height: in.Height, Width: in.Width}
		d.Encode(m, &in, impute.Level{})
		return m
	}
	plain := encode(in)
	distinct := map[string]bool{}
	for _, turn := range impute.Turns() {
		want := impute.Image{Data: slices.Clone(plain.Data), Height: in.Height, Width: in.Width}
		want.Turn(turn)
		got := encode(in.Turn(turn))
		if !slices.Equal(got.Data, want.Data) {
			t.Errorf("%+v: the planes of turned inputs are not the turned planes", turn)
		}
		key := ""
		for _, v := range got.Plane(impute.MaskPlane) {
			key += string(rune('0' + int(v)))
		}
		distinct[key] = true
	}
	if len(distinct) != 8 {
		t.Errorf("%d different images, want 8", len(distinct))
	}
}

// What all turns say together does not depend on how the window lay.
func TestAGroupAnswersTheSameHoweverAWindowLies(t *testing.T) {
	runner := imputetest.NewRunner(t, 1)
	m := imputetest.BusyModel(t, runner, imputetest.TinyDesign())
	group := impute.Group{Models: []*impute.Model{m}, Turns: impute.Turns()}
	in := narrow(imputetest.SomeInputs(t, 16, 3))
	ask := func(in impute.Inputs) impute.Prediction {
		p, err := group.Predict(context.Background(), []impute.Inputs{in})
		if err != nil {
			t.Fatal(err)
		}
		return p[0]
	}
	want := ask(in)
	if equalPredictions(want, imputetest.PredictOne(t, m, in)) {
		t.Fatal("the network answers alike under every turn, so that nothing is shown")
	}
	for _, turn := range impute.Turns()[1:] {
		turned := in.Turn(turn)
		got := ask(turned)
		// The answer as a map like any other: turned as the inputs were.
		carrier := in
		carrier.Values = want.Mean
		mean := carrier.Turn(turn).Values
		carrier.Values = want.Sigma
		sigma := carrier.Turn(turn).Values
		for i := range mean {
			if math.Abs(float64(mean[i]-got.Mean[i])) > 1e-4 || math.Abs(float64(sigma[i]-got.Sigma[i])) > 1e-4 {
				t.Fatalf("%+v: cell %d is %v ± %v, want %v ± %v", turn, i, got.Mean[i], got.Sigma[i], mean[i], sigma[i])
			}
		}
	}
}

// narrow returns the upper half of a window, which is no square.
func narrow(in impute.Inputs) impute.Inputs {
	half := in.Cells() / 2
	in.Height /= 2
	in.Values, in.Visible, in.Sea = in.Values[:half], in.Visible[:half], in.Sea[:half]
	for _, c := range []*[]float32{
		&in.Last.Value, &in.Last.Freshness, &in.Next.Value, &in.Next.Freshness,
		&in.Background, &in.BackgroundSigma, &in.Analysis, &in.AnalysisSigma,
	} {
		if *c != nil {
			*c = (*c)[:half]
		}
	}
	return in
}

// The variance of a mixture holds how far its parts are from one another.
func TestAGroupIsTheMixtureOfItsNetworks(t *testing.T) {
	runner := imputetest.NewRunner(t, 1)
	d := imputetest.TinyDesign()
	one := imputetest.BusyModel(t, runner, d)
	in := imputetest.SomeInputs(t, 16, 2)
	other := in // the same network sees another window: two opinions
	other.Values = slices.Clone(in.Values)
	for i := range other.Values {
		other.Values[i] += 0.5
	}
	a, b := imputetest.PredictOne(t, one, in), imputetest.PredictOne(t, one, other)
	mixed := impute.Mixture([]impute.Prediction{a, b})
	for i := range a.Mean {
		mean := (float64(a.Mean[i]) + float64(b.Mean[i])) / 2
		apart := (float64(a.Mean[i]) - float64(b.Mean[i])) / 2
		variance := (float64(a.Sigma[i])*float64(a.Sigma[i])+float64(b.Sigma[i])*float64(b.Sigma[i]))/2 + apart*apart
		if math.Abs(float64(mixed.Mean[i])-mean) > 1e-5 || math.Abs(float64(mixed.Sigma[i])-math.Sqrt(variance)) > 1e-4 {
			t.Fatalf("cell %d: %v ± %v, want %v ± %v", i, mixed.Mean[i], mixed.Sigma[i], mean, math.Sqrt(variance))
		}
	}
}
