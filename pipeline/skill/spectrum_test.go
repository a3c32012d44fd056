package skill

import (
	"math"
	"math/rand/v2"
	"testing"
)

func wave(n int, wavelength, phase float64) []float64 {
	out := make([]float64, n*n)
	for i := range out {
		out[i] = math.Sin(2*math.Pi*float64(i%n)/wavelength + phase)
	}
	return out
}

func TestWaveShowsAtItsWavelength(t *testing.T) {
	const n = 32
	s := NewSpectrometer(n)
	// Even about the middle, so that removing the plane does not change it.
	power := s.Power(wave(n, 8, math.Pi/2-2*math.Pi*(n-1)/2/8))
	for k, p := range power {
		// Hann's window spreads a wave to the next modes, no further.
		if off := math.Abs(float64(k+1) - n/8); off > 2 && p > 0.01*power[3] {
			t.Errorf("a wave of 8 cells has power %v at %d cycles against %v at 4", p, k+1, power[3])
		}
	}
}

func TestWhiteNoiseIsFlatAtItsVariance(t *testing.T) {
	const n = 16
	rng := rand.New(rand.NewPCG(5, 6))
	s := NewSpectrometer(n)
	for range 400 {
		a, b := make([]float64, n*n), make([]float64, n*n)
		for i := range a {
			a[i] = 2 * rng.NormFloat64()
			b[i] = a[i] + rng.NormFloat64()
		}
		s.Add(a, b)
	}
	got := s.Spectrum()
	for k := 2; k < n/2; k++ { // removing the plane weakened the longest waves
		near(t, "power of the truth", got.Truth[k], 4, 0.2)
		near(t, "power of the error", got.Error[k], 1, 0.05)
		near(t, "ratio", got.Ratio()[k], 5.0/4, 0.03)
	}
	if cells, known := got.ResolvedScale(); !known || cells != 2 {
		t.Errorf("an error of a quarter of the power resolves %v cells, want the 2 of the grid", cells)
	}
}

func TestResolvedScaleIsWhereTheErrorReachesHalfThePower(t *testing.T) {
	s := Spectrum{
		Wavelength: []float64{16, 8, 16.0 / 3, 4},
		Truth:      []float64{8, 4, 2, 1},
		Error:      []float64{0.8, 1.2, 1.4, 1},
	}
	// Error over truth is 0.1, 0.3, 0.7, 1: one half lies midway between 2 and
	// 3 cycles per 16 cells.
	got, known := s.ResolvedScale()
	if !known {
		t.Fatal("no resolved scale")
	}
	near(t, "resolved scale", got, 16/2.5, exact)
	s.Error[0] = 7
	if _, known := s.ResolvedScale(); known {
		t.Error("a map whose longest wave is wrong has a resolved scale")
	}
}

func TestSmoothFillLosesShortWavesOnly(t *testing.T) {
	x := halved(32)
	for c := range x.Truth {
		long := math.Sin(float64(c%32)/4 + float64(c/32)/3)
		short := 0.5 * math.Sin(0.9*math.Pi*float64(c%32)+0.4*float64(c/32))
		x.Truth[c], x.Mean[c] = float32(long+short), float32(long)
		x.Visible[c], x.Scored[c] = c%32 < 2, c%32 >= 2
	}
	s := NewSpectrometer(16)
	if n := s.AddSample(x, x.Mean); n != 4 {
		t.Fatalf("%d patches, want 4", n)
	}
	ratio := s.Spectrum().Ratio()
	if ratio[0] < 0.9 || ratio[len(ratio)-1] > 0.2 {
		t.Errorf("ratio is %v at the longest and %v at the shortest wave", ratio[0], ratio[len(ratio)-1])
	}
}

func TestPatchesWithLittleFillAreLeftOut(t *testing.T) {
	x := halved(32) // the left half is visible
	if n := NewSpectrometer(8).AddSample(x, x.Mean); n != 8 {
		// Four of them cross the middle or begin at it in each of two columns.
		t.Errorf("%d patches of 8 cells, want 8", n)
	}
}

func TestPatchesWithAGapAreLeftOut(t *testing.T) {
	x := halved(16)
	x.Scored[40], x.Visible[40] = false, false
	if n := NewSpectrometer(16).AddSample(x, x.Mean); n != 0 {
		t.Errorf("%d patches in a sample whose only patch has a gap", n)
	}
}
