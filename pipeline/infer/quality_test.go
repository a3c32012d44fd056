package infer

import (
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
)

// calm is a map of noise of standard deviation 0.05 about a front: a step of
// one between two halves.
func calm(height, width int) []float32 {
	out := make([]float32, height*width)
	noise.New(1, "calm").Normals(out, 0)
	for i := range out {
		out[i] *= 0.05
		if i%width >= width/2 {
			out[i]++
		}
	}
	return out
}

func TestASpikeIsFoundAndAFrontIsNot(t *testing.T) {
	const height, width, at = 40, 40, 10*40 + 8
	values := calm(height, width)
	values[at] += 1
	found := Spikes(values, nil, width, 6)
	for i, spike := range found {
		row, col := i/width, i%width
		corner := (row < 2 || row > height-3) && (col < 2 || col > width-3)
		if spike != (i == at) && !corner {
			t.Errorf("cell %d, %d: spike is %v", row, col, spike)
		}
	}
	// The day before has the same value: it is a feature, not a spike.
	near := slices.Clone(values)
	if Spikes(values, near, width, 6)[at] {
		t.Error("a value that the day before confirms is taken for a spike")
	}
	near[at] -= 1
	if !Spikes(values, near, width, 6)[at] {
		t.Error("a value that the day before denies is not taken for a spike")
	}
}

func TestFewObservationsMakeNoSpike(t *testing.T) {
	values := make([]float32, 400)
	for i := range values {
		values[i] = nan
	}
	values[0], values[1], values[20] = 1, 1, 100
	if n := Spikes(values, nil, 20, 5).Count(); n != 0 {
		t.Errorf("%d spikes among three observations", n)
	}
}

func TestRejectedSpikesAreFilledAndFlaggedAndOthersKept(t *testing.T) {
	const side, at = 30, 12*30 + 14
	axis := make([]float64, side)
	for i := range axis {
		axis[i] = 40 + 0.05*float64(i)
	}
	values := calm(side, side)
	for i := range values {
		values[i] += 10
	}
	values[at] = 30
	s := Scene{Frames: []field.Field{{Grid: field.Grid{Lat: axis, Lon: axis}, Time: day0, Values: values}}, Sea: slices.Repeat(field.Mask{true}, len(values))}
	keep := fill(t, DefaultConfig(), s)[0]
	if keep.Flags[at] != 0 || !sameBits(keep.Value, values) {
		t.Error("by default an observation was changed")
	}
	cfg := DefaultConfig()
	cfg.Quality = Quality{Reject: true, Sigmas: 10}
	a := fill(t, cfg, s)[0]
	if a.Flags[at] != Rejected|Interpolated || math.Abs(float64(a.Value[at])-10) > 1 {
		t.Errorf("the spike has flags %b and became %g", a.Flags[at], a.Value[at])
	}
	if values[at] != 30 {
		t.Error("the caller's field was changed")
	}
	values[at] = 1e6
	if worse := fill(t, cfg, s)[0]; !sameBits(worse.Value, a.Value) || !sameBits(worse.Sigma, a.Sigma) {
		t.Error("a rejected observation still changes the analysis")
	}
	values[at] = 30
	for i, flags := range a.Flags {
		if flags == 0 && math.Float32bits(a.Value[i]) != math.Float32bits(values[i]) {
			t.Fatalf("cell %d was changed without a flag", i)
		}
	}
}

// On a smooth sea with noise on every cell the published values must be closer
// to the truth than the observations, and be flagged.
func TestBlendAndDenoiseComeCloserToTheTruth(t *testing.T) {
	const side = 24
	axis := make([]float64, side)
	for i := range axis {
		axis[i] = 40 + 0.05*float64(i)
	}
	noisy, truth := make([]float32, side*side), make([]float32, side*side)
	noise.New(2, "noisy").Normals(noisy, 0)
	for i := range noisy {
		truth[i] = float32(10 + math.Sin(float64(i/side)/6) + math.Cos(float64(i%side)/6))
		noisy[i] = truth[i] + 0.2*noisy[i]
	}
	noisy[77] = nan
	s := Scene{Frames: []field.Field{{Grid: field.Grid{Lat: axis, Lon: axis}, Time: day0, Values: noisy}}, Sea: slices.Repeat(field.Mask{true}, len(noisy))}
	s.Sea[5] = false
	rms := func(values []float32) float64 {
		sum, n := 0.0, 0.0
		for i, v := range values {
			if d := float64(v - truth[i]); !math.IsNaN(d) && i != 77 {
				sum, n = sum+d*d, n+1
			}
		}
		return math.Sqrt(sum / n)
	}
	for _, mode := range []string{Keep, Blend, Denoise} {
		cfg := DefaultConfig()
		cfg.Quality.Observed = mode
		a := fill(t, cfg, s)[0]
		t.Logf("%s: error %.3f, seen with %.3f", mode, rms(a.Value), rms(noisy))
		switch {
		case mode == Keep && (a.Flags[0] != 0 || math.Float32bits(a.Value[0]) != math.Float32bits(noisy[0])):
			t.Error("keep changed an observation")
		case mode != Keep && (a.Flags[0] != Interpolated || !(a.Sigma[0] > 0) || rms(a.Value) > 0.9*rms(noisy)):
			t.Errorf("%s: error %.3f, seen with %.3f; flags %b, sigma %g", mode, rms(a.Value), rms(noisy), a.Flags[0], a.Sigma[0])
		case a.Flags[5] != 0 || a.Value[5] != noisy[5]:
			t.Errorf("%s: an observation on land was changed", mode)
		}
	}
}
