package baselines

import (
	"math"
	"testing"

	"lacuna/pipeline/impute"
)

// α² falls as the exponential of the integral of β, by hand.
func TestLinearScheduleHasItsNoise(t *testing.T) {
	timeOf, err := scheduleOf(linearSchedule)
	if err != nil {
		t.Fatal(err)
	}
	for left, want := range map[float32]float64{0: 1, 0.1: math.Exp(-0.01 - 0.0995), 0.5: math.Exp(-0.05 - 2.4875), 0.9: math.Exp(-0.09 - 8.0595), 1: 0} {
		alpha, sigma := impute.AlphaSigma(timeOf(left))
		if got := float64(alpha * alpha); math.Abs(got-want) > 1e-5 {
			t.Errorf("α² is %.6f with %g of the way left, want %.6f", got, left, want)
		}
		if v := alpha*alpha + sigma*sigma; math.Abs(float64(v)-1) > 1e-5 {
			t.Errorf("the variance is %g with %g of the way left", v, left)
		}
	}
	cfg := DefaultSampler()
	cfg.Schedule = "linear"
	if err := cfg.Validate(); err == nil {
		t.Error("a schedule that does not exist was accepted")
	}
}

// Another schedule is another way to the same posterior: mean and spread of the
// members stay as they were.
func TestSwappingTheScheduleLeavesToyBAsItWas(t *testing.T) {
	cfg := DefaultSampler()
	cfg.Members, cfg.Draws, cfg.Steps = 60, 0, 40
	was, _ := toyVerdict(t, IterativeConditioning, cfg)
	cfg.Schedule = linearSchedule
	is, _ := toyVerdict(t, IterativeConditioning, cfg)
	t.Logf("mean off by %.3f and %.3f, spread %.3f and %.3f of the posterior's", was.meanError(), is.meanError(), was.spread(), is.spread())
	if was == is {
		t.Fatal("the schedule makes no difference at all")
	}
	if math.Abs(is.meanError()-was.meanError()) > 0.02 || math.Abs(is.spread()-was.spread()) > 0.05 {
		t.Errorf("the mean is off by %.3f, was %.3f; the spread is %.3f of the posterior's, was %.3f",
			is.meanError(), was.meanError(), is.spread(), was.spread())
	}
}
