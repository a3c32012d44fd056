package infer

import (
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
)

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
