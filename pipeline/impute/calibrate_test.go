package impute

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
)

func TestCalibratedIntervalsCoverWhatTheyClaim(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	// Errors are as claimed near observations, grow to twice that far away, and
	// are half as large again in winter.
	draw := func() Case {
		c := Case{Sigma: 0.2 + r.Float32(), DistanceCells: 20 * r.Float32(), DayOfYear: 1 + r.IntN(365)}
		scale := 1 + min(float64(c.DistanceCells)/12, 1)
		if c.DayOfYear < 91 {
			scale *= 1.5
		}
		c.Error = float32(scale * float64(c.Sigma) * r.NormFloat64())
		return c
	}
	cases := make([]Case, 60_000)
	for i := range cases {
		cases[i] = draw()
	}
	cfg := DefaultCalibration()
	cfg.Seasons, cfg.MinCases = true, 500
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
		if math.Abs(float64(k.Error)) < 1.645*float64(read.Apply(k.Sigma, k.DistanceCells, k.DayOfYear)) {
			inside[far]++
		}
	}
	for far := range all {
		if share := inside[far] / all[far]; math.Abs(share-0.9) > 0.01 {
			t.Errorf("far %v: intervals cover %.3f, want 0.90", far, share)
		}
	}
}

func TestCalibrationHasNoStepAtTheEndOfAClass(t *testing.T) {
	for _, c := range []Calibration{
		{EdgesCells: []float32{1.5, 3, 6, 12}, Factors: [][]float32{{0.8, 1, 1.3, 0.9, 1.6}}},
		{EdgesCells: []float32{4}, Factors: [][]float32{{1, 2}}},
		{Factors: [][]float32{{1.5}}},
	} {
		factors := c.Factors[0]
		before := c.Apply(1, 1, 0)
		for d := float32(1); d < 40; d += 0.01 {
			now := c.Apply(1, d, 0)
			if math.Abs(float64(now-before)) > 0.01 {
				t.Errorf("%v: the factor goes from %v to %v at %v cells", c.EdgesCells, before, now, d)
			}
			before = now
		}
		if first, last := c.Apply(1, 0.5, 0), c.Apply(1, 100, 0); first != factors[0] || last != factors[len(factors)-1] {
			t.Errorf("%v: factors at the ends are %v and %v, want %v and %v", c.EdgesCells, first, last, factors[0], factors[len(factors)-1])
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
