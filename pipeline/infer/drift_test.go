package infer

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/covariate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/simulate"
)

// The drift by covariates is used where the constants of the dataset are: by optimal
// interpolation and by a model of another place; a model of the dataset's own was judged
// without.
func TestADriftIsUsedWhereTheConstantsAre(t *testing.T) {
	s := basin(40, 48, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	drifting := func(elsewhere, with bool) Scene {
		scene := basin(40, 48, false)
		if elsewhere {
			scene.Scaling = &m.version.Scaling.Scaling
		}
		for k, f := range slices.Concat(scene.Frames, scene.History) {
			if !with {
				break
			}
			d := Drift{Time: f.Time, Values: make([]float32, len(f.Values))}
			for i := range d.Values {
				d.Values[i] = float32((i*(k+3))%17) / 40
			}
			scene.Drift = append(scene.Drift, d)
		}
		return scene
	}
	oi := DefaultConfig()
	oi.Method = "oi"
	for _, tt := range []struct {
		name string
		fill func(with bool) Analysis
		same bool
	}{
		{"optimal interpolation", func(with bool) Analysis { return fill(t, oi, drifting(false, with))[0] }, false},
		{"a model elsewhere", func(with bool) Analysis { return fillWith(t, m, modelConfig(Fast), drifting(true, with)) }, false},
		{"a model of the dataset", func(with bool) Analysis { return fillWith(t, m, modelConfig(Fast), drifting(false, with)) }, true},
	} {
		plain, with := tt.fill(false), tt.fill(true)
		if got := slices.EqualFunc(plain.Value, with.Value, same); got != tt.same {
			t.Errorf("%s: the same with a drift %v, want %v", tt.name, got, tt.same)
		}
		for i, flags := range with.Flags {
			if Observed(flags) && with.Value[i] != plain.Value[i] {
				t.Fatalf("%s: observed cell %d is %v, was %v", tt.name, i, with.Value[i], plain.Value[i])
			}
		}
	}
}

// Tuning uses a covariate that pays, with the scales of what it leaves, and writes nothing
// of covariates where there are none.
func TestTuningFindsTheCovariatesThatPay(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 24, Width: 36, Days: 70, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	var fields []field.Field
	for n := range 70 {
		fields = append(fields, world.Day(n).Seen)
	}
	asked := 0
	terms := func(_ context.Context, times []time.Time) ([]covariate.Term, error) {
		asked++
		term := covariate.Term{Name: "sst"}
		for _, at := range times {
			g, err := world.Companion(int(at.Sub(fields[0].Time).Hours()/24+0.5), 0.9)
			if err != nil {
				return nil, err
			}
			r, err := covariate.NewRegridder(g.Seen.Grid, world.Grid())
			if err != nil {
				return nil, err
			}
			term.Maps = append(term.Maps, r.Apply(g.Seen.Values))
		}
		return []covariate.Term{term}, nil
	}
	cfg := DefaultConfig()
	cfg.PastDays, cfg.FutureDays = 10, 0
	tr := field.Transform{Log10: true, Floor: 1e-3}
	// The configuration's own scales stay, and the covariate is used with them.
	scaled := cfg
	scaled.OI.LengthKM = 60
	own, err := Tune(t.Context(), fields, world.Sea(), tr, scaled, terms)
	if err != nil || own.Tuned() || own.Covariates.Names() != "sst" || asked != 1 {
		t.Errorf("with scales of the configuration: %+v, %v, asked %d times", own, err, asked)
	}
	if text, err := json.Marshal(Constants{LengthKM: 1}); err != nil || strings.Contains(string(text), "covariate") {
		t.Errorf("without covariates the constants are %s, %v", text, err)
	}
	if testing.Short() {
		return // tuning takes half a minute
	}
	plain, err := Tune(t.Context(), fields, world.Sea(), tr, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	with, err := Tune(t.Context(), fields, world.Sea(), tr, cfg, terms)
	if err != nil || asked != 2 {
		t.Fatalf("asked %d times, %v", asked, err)
	}
	t.Logf("%v; tuned MSE %.5f, without %.5f", with.Covariates.Judged, with.Evidence.MSE, plain.Evidence.MSE)
	if with.Covariates.Names() != "sst" || !with.Tuned() || with.Evidence.MSE > 0.9*plain.Evidence.MSE {
		t.Errorf("%+v: want sst, and an MSE below %.4f", with, plain.Evidence.MSE)
	}
}
