package field

import (
	"math"
	"testing"
)

func TestABlurredMapHasNoLatticeAndKeepsItsSize(t *testing.T) {
	const side = 32
	grid := Grid{Lat: make([]float64, side), Lon: make([]float64, side)}
	for i := range side {
		grid.Lat[i], grid.Lon[i] = 40+float64(i)/20, 3+float64(i)/20
	}
	sigma, wanted := make([]float32, side*side), make([]bool, side*side)
	for c := range sigma {
		wanted[c] = c%side > 1 // two columns were observed
		sigma[c] = 0.3
		if c%side%4 == 0 {
			sigma[c] *= 1.1
		}
		if !wanted[c] {
			sigma[c] = 1e6 // whatever a network says there
		}
	}
	got := Blur(sigma, wanted, grid)
	low, high := math.Inf(1), 0.0
	for c, s := range got {
		if !wanted[c] {
			if s != sigma[c] {
				t.Fatalf("cell %d, which was observed, has %v", c, s)
			}
			continue
		}
		if c%side > 3 && c%side < side-3 { // beside an edge fewer cells are averaged
			low, high = min(low, float64(s)), max(high, float64(s))
		}
		if s < 0.29 || s > 0.34 {
			t.Fatalf("cell %d has %v: an observed cell has leaked into it", c, s)
		}
	}
	if high/low > 1.03 {
		t.Errorf("it goes from %v to %v where it went from 0.3 to 0.33", low, high)
	}
}
