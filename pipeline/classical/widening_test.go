package classical

import (
	"math"
	"testing"

	"lacuna/pipeline/field"
)

// covering returns the share of the truth inside the 90 % intervals of an
// estimate, over the cells for which use holds.
func covering(e Estimate, truth []float32, use func(c int) bool) float64 {
	within, all := 0.0, 0.0
	for c, v := range truth {
		if use(c) {
			all++
			if math.Abs(float64(e.Mean[c]-v)) <= ninety*float64(e.Sigma[c]) {
				within++
			}
		}
	}
	return within / all
}

// A covariance whose spread is wrong by far makes intervals that are wrong by far;
// the gaps of the frames themselves tell.
func TestOwnGapsCalibrateAnAnalysisOfTheWrongSpread(t *testing.T) {
	if testing.Short() {
		t.Skip("fills dozens of days; leave -short out to run it")
	}
	const height, width, seeds = 90, 100, 3
	for _, spread := range []float64{0.4, 3} {
		for _, frames := range []int{2, 4} {
			var plain, calibrated, factors []float64
			for seed := range uint64(seeds) {
				s, truth := cloudyOver(height, width, frames, 20+seed)
				target := frames - 1
				o := DefaultOI(s.Grid)
				o.SigmaScale = spread
				hidden := func(c int) bool { return !s.observed(target, c) }
				e := fill(t, o, s, target)
				calibrated = append(calibrated, covering(e, truth[target], hidden))
				for c := range e.Sigma {
					factors = append(factors, float64(e.Sigma[c]/e.Expected[c]))
				}
				e.Sigma = e.Expected
				plain = append(plain, covering(e, truth[target], hidden))
			}
			before, after := mean(plain), mean(calibrated)
			if math.Abs(after-0.9) > 0.09 || math.Abs(after-0.9) > math.Abs(before-0.9) {
				t.Errorf("spread %g times what it is, %d frames: 90 %% intervals cover %.3f, without calibration %.3f", spread, frames, after, before)
			}
			if f := mean(factors); (spread < 1) != (f > 1.3) || (spread > 1) != (f < 0.7) {
				t.Errorf("spread %g times what it is, %d frames: sigma is multiplied by %.2f", spread, frames, f)
			}
		}
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// A corner of a sea does not show how the rest differs from it. Sigma grows with
// the distance, to the spread of the whole and not to that of the corner.
func TestFarFromAllObservationsSigmaGrowsToTheSpreadOfTheSea(t *testing.T) {
	const side, corner = 80, 16
	within, all := 0.0, 0.0
	for seed := range uint64(12) {
		s, truth := cloudyOver(side, side, 2, 40+seed)
		for f := range s.Frames {
			for c := range s.Frames[f].Values {
				s.Frames[f].Values[c] = field.NaN()
				if c/side < corner && c%side < corner {
					s.Frames[f].Values[c] = truth[f][c]
				}
			}
		}
		// Half of the corner on the second day.
		for c := range s.Frames[1].Values {
			if c%side > corner/2 {
				s.Frames[1].Values[c] = field.NaN()
			}
		}
		e := fill(t, DefaultOI(s.Grid), s, 1)
		far := func(c int) bool { return c/side > 2*corner || c%side > 2*corner }
		within, all = within+covering(e, truth[1], far), all+1
		near, rim := e.Sigma[corner/2*side+corner/2+1], e.Sigma[side*side-1]
		if !(rim > 2*near) {
			t.Errorf("seed %d: sigma is %v in the observed corner and %v in the opposite one", seed, near, rim)
		}
	}
	if share := within / all; share < 0.75 {
		t.Errorf("90 %% intervals far from the observed corner cover %.2f", share)
	}
}

// The maps behind sigma are smooth up to the edges of the grid: no cell differs
// from the next by much more than others do, and the outermost do not differ less
// or more than those inside.
func TestMapsBehindSigmaHaveNoStepsAndNoRims(t *testing.T) {
	for _, size := range [][2]int{{61, 73}, {64, 75}, {40, 44}} {
		s := cloudy(size[0], size[1], 3, 9)
		h, w := size[0], size[1]
		b := newBackground(s, smoothCells*s.Grid.StepKM())
		for name, m := range map[string][]float32{"mean": b.mean, "spread": b.sd} {
			sum, n, largest := 0.0, 0.0, 0.0
			edge, edges := 0.0, 0.0
			for c := range m {
				if c%w == w-1 {
					continue
				}
				step := math.Abs(float64(m[c+1] - m[c]))
				sum, n, largest = sum+step, n+1, max(largest, step)
				if c%w < 2 || c%w >= w-3 {
					edge, edges = edge+step, edges+1
				}
			}
			if largest > 12*sum/n {
				t.Errorf("%d x %d: the largest step of the %s is %.1f times the mean one", h, w, name, largest*n/sum)
			}
			if ratio := edge / edges / (sum / n); ratio < 0.2 {
				t.Errorf("%d x %d: steps of the %s at the edges are %.2f of the others: it has a rim", h, w, name, ratio)
			}
		}
	}
}

func TestAWideningIsContinuous(t *testing.T) {
	w := widening{variance: []float64{0.2, 0.5, 1}, factor: []float64{0.7, 1, 1.6}}
	for v := 0.0; v < 1.5; v += 0.001 {
		if d := w.of(v+0.001) - w.of(v); d < 0 || d > 0.01 {
			t.Fatalf("the factor goes from %v to %v at a variance of %v", w.of(v), w.of(v+0.001), v)
		}
	}
	if (widening{}).of(3) != 1 {
		t.Error("without overlays sigma is changed")
	}
}
