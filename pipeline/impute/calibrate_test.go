package impute

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
)

func TestCalibratedIntervalsCoverWhatTheyClaim(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	// Errors are as claimed near observations, and twice that far away.
	draw := func() Case {
		c := Case{Sigma: 0.2 + r.Float32(), DistanceCells: 20 * r.Float32()}
		scale := 1.0
		if c.DistanceCells > 6 {
			scale = 2
		}
		c.Error = float32(scale * float64(c.Sigma) * r.NormFloat64())
		return c
	}
	cases := make([]Case, 60_000)
	for i := range cases {
		cases[i] = draw()
	}
	cfg := DefaultCalibration()
	cfg.MinCases = 500
	c, err := Calibrate(cases, cfg)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var read Calibration
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if err := read.Validate(); err != nil {
		t.Fatal(err)
	}
	inside, all := map[bool]float64{}, map[bool]float64{}
	for range 60_000 {
		k := draw()
		far := k.DistanceCells > 6
		all[far]++
		if math.Abs(float64(k.Error)) < 1.645*float64(read.Apply(k.Sigma, k.DistanceCells, 0)) {
			inside[far]++
		}
	}
	for far := range all {
		if share := inside[far] / all[far]; math.Abs(share-0.9) > 0.01 {
			t.Errorf("far %v: intervals cover %.3f, want 0.90", far, share)
		}
	}
}

// Versions of before had factors by season, and go on to serve with them.
func TestACalibrationBySeasonIsStillApplied(t *testing.T) {
	var c Calibration
	if err := json.Unmarshal([]byte(`{"edges_cells": [], "factors": [[1], [2], [3], [4]], "cases": 1}`), &c); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for day, want := range map[int]float32{1: 1, 91: 1, 93: 2, 200: 3, 366: 4, 0: 1} {
		if got := c.Apply(1, 5, day); got != want {
			t.Errorf("the factor on day %d is %g, want %g", day, got, want)
		}
	}
}

func TestFewCasesDoNotMakeAFactorOfTheirOwn(t *testing.T) {
	var cases []Case
	for i := range 5000 {
		cases = append(cases, Case{Error: float32(i%100) / 50, Sigma: 1, DistanceCells: 1})
	}
	cases = append(cases, Case{Error: 1000, Sigma: 1, DistanceCells: 100})
	c, err := Calibrate(cases, DefaultCalibration())
	if err != nil {
		t.Fatal(err)
	}
	if near, far := c.Apply(1, 1, 0), c.Apply(1, 100, 0); far > 2*near {
		t.Errorf("one cell far away makes the factor there %v, near it is %v", far, near)
	}
	if got := (Calibration{}).Apply(0.7, 3, 5); got != 0.7 {
		t.Errorf("the zero calibration turns 0.7 into %v", got)
	}
	if _, err := Calibrate(nil, DefaultCalibration()); err == nil {
		t.Error("no error without cases")
	}
}

// Sigma is a map: a factor that changed from one class of distance to the next
// would draw a disc around every observation.
func TestACalibrationHasNoStepsByDistance(t *testing.T) {
	c := Calibration{EdgesCells: []float32{1.5, 3, 6, 12}, Factors: [][]float32{{0.5, 0.6, 0.7, 0.8, 1.2}}}
	const step = 0.01
	for d := float32(0.5); d < 40; d += step {
		if a, b := c.Apply(1, d, 0), c.Apply(1, d+step, 0); b < a || b-a > 0.01 {
			t.Fatalf("the factor goes from %v to %v between %v and %v cells", a, b, d, d+step)
		}
	}
	if near, far := c.Apply(1, 1, 0), c.Apply(1, 30, 0); math.Abs(float64(near)-0.5) > 0.02 || math.Abs(float64(far)-1.2) > 1e-6 {
		t.Errorf("factors are %v beside an observation and %v far from any, want 0.5 and 1.2", near, far)
	}
}
