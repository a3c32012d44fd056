package baselines

import (
	"fmt"
	"math"
)

// A schedule says at which time of impute.AlphaSigma, on which networks are
// trained, a walk has come when a part of its way is left. All keep the variance:
// they differ in how fast the noise falls, and a network serves any of them.
type schedule func(left float32) float32

// Names of the schedules.
const (
	cosineSchedule = "vp-cosine" // that of the networks
	linearSchedule = "vp-linear" // β grows in a straight line, as in the earlier code of the method's authors
)

// scheduleOf returns the schedule of a name; empty: vp-cosine.
func scheduleOf(name string) (schedule, error) {
	switch name {
	case "", cosineSchedule:
		return func(left float32) float32 { return left }, nil
	case linearSchedule:
		return linearBeta, nil
	}
	return nil, fmt.Errorf("schedule is %q, must be %s or %s", name, cosineSchedule, linearSchedule)
}

// linearBeta is the time at which α is exp(-∫β/2) with β from 0.1 to 20. At its end
// α is 0.007, which is taken for none, as a walk begins with noise alone.
func linearBeta(left float32) float32 {
	const first, last = 0.1, 20
	if left <= 0 || left >= 1 {
		return min(max(left, 0), 1)
	}
	s := float64(left)
	alpha := math.Exp(-first*s/2 - (last-first)*s*s/4)
	return float32(2 / math.Pi * math.Acos(alpha))
}
