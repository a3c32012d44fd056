package version

import (
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
)

// A seaShift is a change from one year to the next.
type seaShift struct {
	sensor func(v float64) float64 // reads v as something else
	stripe int                     // cells: every second stripe so wide is dark for ten days; 0: none
}

// shiftedSea returns a simulated sea after a shift.
func shiftedSea(t *testing.T, c seaShift) samples.Series {
	t.Helper()
	const days = 120
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 32, Width: 48, Days: days, Seed: 17})
	if err != nil {
		t.Fatal(err)
	}
	fields := make([]field.Field, days)
	for d := range fields {
		fields[d] = world.Day(d).Seen
		for i, v := range fields[d].Values {
			fields[d].Values[i] = float32(c.sensor(float64(v)))
			if c.stripe > 0 && (i%48+3*(d/10))/c.stripe%2 == 0 {
				fields[d].Values[i] = field.NaN()
			}
		}
	}
	s, err := samples.New(fields, world.Sea(), field.Transform{Log10: true, Floor: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scoreOn returns the mean squared error of a version on held-out days of a sea.
func scoreOn(t *testing.T, version Parts, sea samples.Series, s Settings, b backends.Backend) float64 {
	t.Helper()
	_, held, err := sea.Split(s.Split)
	if err != nil {
		t.Fatal(err)
	}
	cfg := samples.DefaultOverlays(s.Imputer.Side)
	cfg.Count = 60
	overlays, err := held.Overlays(cfg)
	if err != nil {
		t.Fatal(err)
	}
	exam, err := evaluate.NewExam(held, impute.Surroundings{Days: held}, overlays, s.Judging.Mode)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := impute.NewRunner(b, s.Runner)
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	c, err := LoadCandidate(version, runner, held)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := exam.Judge(t.Context(), c.Method("version", exam, held), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return *v.Summary.MSE
}

// After a shift of level, contrast and gaps a fine-tune wins back at least half of
// the loss of the champion.
func TestFineTuningRecoversFromAShift(t *testing.T) {
	if testing.Short() {
		t.Skip("trains twice")
	}
	backend, s := enginetest.Open(t), shortSettings()
	s.Strategy, s.Members.Steps, s.Reliability.Steps = "empirical", 0, 0
	s.Imputer.Steps = 120
	same := seaShift{sensor: func(v float64) float64 { return v }}
	// A new sensor reads twenty times as much with twice the contrast, and one of
	// two satellites is lost.
	other := seaShift{stripe: 8, sensor: func(v float64) float64 { return 20 * v * v }}
	usual, later := shiftedSea(t, same), shiftedSea(t, other)
	champion, err := Make(t.Context(), Request{Series: []samples.Series{series(t)}, Settings: s, Backend: backend}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	tune := s
	if err := tune.From(champion.Parts); err != nil {
		t.Fatal(err)
	}
	req := Request{Series: []samples.Series{later}, Settings: tune, Backend: backend, Parent: champion.Parts, Champion: champion.Parts}
	out, err := Make(t.Context(), req, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	moved, err := DriftOf(t.Context(), backend, champion.Parts, later, s.Imputer.Side)
	if err != nil {
		t.Fatal(err)
	}
	// Errors are shares of the variance, so those of both regimes compare.
	before := scoreOn(t, champion.Parts, usual, s, backend)
	after := scoreOn(t, champion.Parts, later, s, backend)
	tuned := scoreOn(t, out.Parts, later, s, backend)
	recovered := (after - tuned) / (after - before)
	t.Logf("MSE %.3f before the shift, %.3f after it, %.3f fine-tuned: %.0f %% of the loss recovered; drift of masks %s, of values %s",
		before, after, tuned, 100*recovered, number(moved.Masks), number(moved.Values))
	if after < 1.2*before {
		t.Fatal("the shift cost nothing: this test shows nothing")
	}
	if recovered < 0.5 {
		t.Errorf("%.2f of the lost skill was recovered, want half at least", recovered)
	}
	for _, reason := range Against(out.Decision) {
		if strings.HasPrefix(reason, "MSE") {
			t.Errorf("the gate sees no gain: %s", reason)
		}
	}
}

// number formats one that may not be known.
func number(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}
