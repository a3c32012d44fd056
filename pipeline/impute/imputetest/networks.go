package imputetest

import (
	"context"
	"math"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
)

// BusyModel returns a model without zero layers: the last layer of a fresh
// network is zero and would hide mistakes.
func BusyModel(t testing.TB, runner *impute.Runner, d impute.Design) *impute.Model {
	t.Helper()
	network, err := nn.New(d.Network())
	if err != nil {
		t.Fatal(err)
	}
	weights := network.Layout().Init(7)
	for i := range weights {
		weights[i] += 0.05 * float32(math.Sin(float64(i)))
	}
	m, err := impute.NewModel(runner, d, Training{16}, weights)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Training stands for the settings of a training in the file of a network.
type Training struct {
	Side int `json:"side"`
}

// TinyDesign returns the design of a network that is trained in seconds. A
// background is at hand in tests, an analyser is not.
func TinyDesign() impute.Design {
	return impute.Design{
		Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true, Departure: true,
		Extras: impute.Extras{Last: true, Next: true, Background: true},
	}
}

// SomeInputs returns the inputs of one day of a sea with everything around it.
func SomeInputs(t testing.TB, side, day int) impute.Inputs {
	t.Helper()
	sea := NewSea(t, SeaConfig{Side: side, Days: 6, Length: 3, Memory: 0.9, Seed: 3})
	data, err := sea.Series.Whole()
	if err != nil {
		t.Fatal(err)
	}
	around := impute.Surroundings{Days: data, Past: Background{0.2, 0.5}, Delayed: Background{0.3, 0.4}}
	r := samples.Ref{Day: day, Window: samples.Square(0, 0, side)}
	return around.Inputs(r, data.Cut(r).Observed(), impute.Delayed)
}

// PredictOne fills one window.
func PredictOne(t testing.TB, m *impute.Model, in impute.Inputs) impute.Prediction {
	t.Helper()
	p, err := m.Predict(context.Background(), []impute.Inputs{in})
	if err != nil {
		t.Fatal(err)
	}
	return p[0]
}
