package simulate

import (
	"math"
	"testing"
)

// Another sensor looks at the same sea, elsewhere and otherwise.
func TestAnotherSensorSeesTheSameSea(t *testing.T) {
	base := Config{Product: "blk-chl", Height: 40, Width: 60, Seed: 5}
	usual, err := New(base)
	if err != nil {
		t.Fatal(err)
	}
	base.Sensor = Sensor{Number: 1, Bias: 0.2, Noise: 0.1}
	other, err := New(base)
	if err != nil {
		t.Fatal(err)
	}
	var sum, square, n float64
	alone := 0
	for day := range 20 {
		a, b := usual.Day(day), other.Day(day)
		for i, v := range b.Seen.Values {
			if a.Truth.Values[i] != b.Truth.Values[i] && usual.Sea()[i] {
				t.Fatalf("cell %d of day %d is %v to one and %v to the other", i, day, a.Truth.Values[i], b.Truth.Values[i])
			}
			if v != v {
				continue
			}
			d := math.Log10(float64(v) / float64(b.Truth.Values[i]))
			sum, square, n = sum+d, square+d*d, n+1
			if !a.Seen.Observed(i) {
				alone++
			}
		}
	}
	mean := sum / n
	if sd := math.Sqrt(square/n - mean*mean); math.Abs(mean-0.2) > 0.01 || math.Abs(sd-math.Hypot(0.1, 0.07/math.Ln10)) > 0.01 {
		t.Errorf("it reads %.3f too much with a noise of %.3f", mean, sd)
	}
	if float64(alone) < 0.1*n {
		t.Errorf("of %.0f cells that it sees, %d are hidden from the usual sensors", n, alone)
	}
}
