package version

import (
	"math"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
)

// besideSea returns the simulated sea with a temperature that goes with its truth, by a
// correlation of anomalies of about 0.8, and with that of another sea, which does not.
func besideSea(t *testing.T) samples.Series {
	t.Helper()
	s := series(t)
	truths := func(seed uint64) [][]float32 {
		world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 32, Width: 48, Days: 140, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		out := make([][]float32, world.Days())
		for d := range out {
			values := world.Day(d).Truth.Values
			out[d] = make([]float32, len(values))
			s.Transform.Forward(out[d], values)
		}
		return out
	}
	own, other := truths(3), truths(8)
	s.Covariates = []samples.Covariate{{Name: "sst", Units: "kelvin"}, {Name: "other", Units: "kelvin"}}
	days := make([]samples.Day, len(s.Days))
	first := s.Days[0].Time
	for i, d := range s.Days {
		n := int(math.Round(d.Time.Sub(first).Hours() / 24))
		sst := make([]float32, len(d.Values))
		for c := range sst {
			sst[c] = 290 + 4*(0.8*own[n][c]+0.6*other[(n+40)%len(other)][c])
		}
		d.Covariates = [][]float32{sst, other[n]}
		days[i] = d
	}
	s.Days = days
	return s
}

func TestProbe(t *testing.T) {
	s := besideSea(t)
	settings := shortSettings()
	settings.Strategy = "empirical"
	settings.Imputer.Design.Extras.Analysis, settings.Imputer.Design.Departure = true, true
	settings.Imputer.Steps = 300
	settings.Imputer.Clean = 1
	settings.ScoreEvery, settings.Patience = 50, 0
	settings.Members.Steps, settings.Reliability.Steps = 0, 0
	settings.Judging.Choosing, settings.Judging.Overlays = 200, 200
	settings = settings.WithCovariates(s.Covariates)
	out, err := Make(t.Context(), Request{Series: []samples.Series{s}, Settings: settings, Backend: enginetest.Open(t)}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range out.Evaluation.Covariates.Judged {
		t.Log(v)
	}
	t.Log(out.Evaluation.Covariates.Gain)
	r := out.Evaluation.Ruling
	t.Log(*r.Challenger.Verdict.Summary.MSE, *r.Interpolation.Verdict.Summary.MSE)
	for _, x := range r.Decision.Reasons {
		t.Log(x)
	}
	_ = field.NaN
}
