package masks

import (
	"math"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples/samplestest"
)

// roughModel is a tiny prior whose weights are all drawn at random: its masks
// look like nothing, but every part of it takes part.
func roughModel(t *testing.T) *prior.Model {
	t.Helper()
	cfg := prior.DefaultConfig()
	cfg.Size = nn.Tiny
	n, err := nn.New(cfg.Network())
	if err != nil {
		t.Fatal(err)
	}
	weights := n.Layout().Init(1)
	extra := make([]float32, len(weights))
	noise.New(1, "weights").Normals(extra, 0)
	for i := range weights {
		weights[i] += 0.05 * extra[i] // the last layer starts as zero
	}
	m, err := prior.NewModel(enginetest.Open(t), cfg, weights)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func sampling() prior.SampleConfig {
	return prior.SampleConfig{Steps: 4, Spacing: prior.LogSNR, Order: prior.SecondOrder, Batch: 4}
}

// The masks of this model are rough without any pull, many times as rough as
// the real ones, and the strength must be found all the same.
func TestStrengthReachesItsTarget(t *testing.T) {
	m := roughModel(t)
	patches := samplestest.Cloudy(8, 16)
	cfg := prior.DefaultGuidance()
	cfg.SampleConfig, cfg.Rho = sampling(), 0.9 // without guidance this model shares half
	want := Target{ContextShare: 0.65, Tolerance: 0.05, MaxRoughness: DefaultTarget().MaxRoughness}
	got, err := AutoStrength(t.Context(), m, patches, cfg, want)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Weight = got.Weight
	again, err := measureStrength(t.Context(), m, patches, cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	if again.ContextShare != got.ContextShare {
		t.Errorf("weight %g gives a context share of %g, and gave %g when it was found", got.Weight, again.ContextShare, got.ContextShare)
	}
	if !got.Reached {
		t.Errorf("found %+v, want a context share of %g", got, want.ContextShare)
	}
}

// The search itself, on an answer that is known: the share grows with the
// weight up to 1000 and masks are too rough from 200 on.
func TestStrengthStopsBeforeMasksAreTorn(t *testing.T) {
	known := func(weight float64) (Strength, error) {
		return Strength{Weight: weight, ContextShare: math.Log(weight) / 10, Roughness: weight / 100}, nil
	}
	s := strengthSearch{want: Target{ContextShare: 0.45, Tolerance: 0.005, MaxRoughness: 2}, measure: known}
	if err := s.run(); err != nil || !s.best.Reached || math.Abs(s.best.Weight-90) > 6 {
		t.Errorf("found %+v (%v), want a weight near 90", s.best, err)
	}
	s = strengthSearch{want: Target{ContextShare: 0.9, Tolerance: 0.005, MaxRoughness: 2}, measure: known}
	if err := s.run(); err != nil || s.best.Reached || s.best.Weight > 200 || s.best.Weight < 180 {
		t.Errorf("found %+v (%v), want the weight at which masks begin to be rough, 200", s.best, err)
	}
}

func TestStrengthNeedsPatches(t *testing.T) {
	if _, err := AutoStrength(t.Context(), roughModel(t), nil, prior.DefaultGuidance(), DefaultTarget()); err == nil {
		t.Error("a strength was found without patches")
	}
}
