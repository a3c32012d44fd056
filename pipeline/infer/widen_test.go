package infer

import (
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// scoredDays are n days before day0 on which errors were so many times as large as
// the sigmas said.
func scoredDays(n int, times float32) []skill.ScoredDay {
	var days []skill.ScoredDay
	for d := range n {
		day := skill.ScoredDay{Day: day0.AddDate(0, 0, d-n)}
		for class := range day.Ratios {
			day.Ratios[class] = slices.Repeat([]float32{times * quantile90}, 16)
		}
		days = append(days, day)
	}
	return days
}

func TestScoredDaysWidenSigmaAndMembers(t *testing.T) {
	s := basin(40, 48, false)
	m := fakeModel(fakeNetworks{predicts: smoother(2), cleaned: smoothResidual}, s)
	cfg := modelConfig(Full)
	cfg.Network.Members, cfg.Details = spreadMembers, true
	before := fillWith(t, m, cfg, s)
	s.Widening = skill.Widen(scoredDays(60, 2), day0)
	after := fillWith(t, m, cfg, s)
	if before.Own != nil || !sameBits(after.Own, before.Sigma) && !sameWhereFilled(after.Own, before) {
		t.Error("the sigma of the method itself is lost, which the next day is scored by")
	}
	want := s.Widening.Factors(skill.Unchanged()).At(1) // the same at any distance
	if want < 1.8 || want > 2 {
		t.Fatalf("sixty days with errors twice as large make a factor of %v", want)
	}
	for i, flags := range before.Flags {
		if flags != Interpolated {
			continue
		}
		if got := float64(after.Sigma[i] / before.Sigma[i]); math.Abs(got-want) > 1e-4 {
			t.Fatalf("cell %d: sigma grew by %v, want %v", i, got, want)
		}
		off := func(a Analysis) float64 {
			return math.Log10(float64(a.Members[0][i])) - math.Log10(float64(a.Value[i]))
		}
		if a, b := off(before), off(after); math.Abs(b-want*a) > 1e-3 {
			t.Fatalf("cell %d: a member is %v off the mean, and was %v, want %v times as far", i, b, a, want)
		}
	}
}

// sameWhereFilled reports whether sigmas are those of an analysis where it filled.
func sameWhereFilled(sigma []float32, a Analysis) bool {
	for i, flags := range a.Flags {
		if flags == Interpolated && math.Abs(float64(sigma[i]/a.Sigma[i])-1) > 1e-6 {
			return false
		}
	}
	return true
}

// A model that was trained elsewhere does not know how far off it is here. Until
// days were scored, it is as sure of itself as the analysis that calibrates itself.
func TestAModelFromElsewhereIsAsSureAsInterpolationUntilItWasScored(t *testing.T) {
	s := basin(48, 56, true)
	analysed := fillWith(t, nil, DefaultConfig(), s)
	m := untrained(t, everything(), s, openDevice(t, 1))
	m.version.Calibration.Factors = [][]float32{{0.1}} // too sure of itself
	s.Scaling = &samples.Scaling{Mean: make([]float32, len(s.Sea)), Std: 0.5}
	middle := func(a Analysis) float64 {
		sum, n := 0.0, 0.0
		for i, flags := range a.Flags {
			if flags == Interpolated {
				sum, n = sum+math.Log(float64(a.Sigma[i]/analysed.Sigma[i])), n+1
			}
		}
		return math.Exp(sum / n)
	}
	if got := middle(fillWith(t, m, modelConfig(Fast), s)); got < 0.5 || got > 2 {
		t.Errorf("its sigma is %.2f times that of optimal interpolation in the middle, want about 1", got)
	}
	s.Widening = skill.Widen(scoredDays(60, 1), day0.Add(time.Hour))
	if got := middle(fillWith(t, m, modelConfig(Fast), s)); got > 0.5 {
		t.Errorf("sixty days on which its sigma was right leave it at %.2f times that of optimal interpolation", got)
	}
}
