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
	got := Blur(sigma, wanted, grid, 1)
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

func TestToBlurTwiceIsToBlurWhatWasBlurred(t *testing.T) {
	const h, w = 12, 24
	grid := Grid{Lat: make([]float64, h), Lon: make([]float64, w)} // around the globe
	for i := range grid.Lat {
		grid.Lat[i] = float64(i)
	}
	for j := range grid.Lon {
		grid.Lon[j] = 15 * float64(j)
	}
	values, wanted := make([]float32, h*w), make([]bool, h*w)
	for c := range values {
		values[c], wanted[c] = 1+float32(c*37%11), c%5 > 0
	}
	values[7], wanted[7] = 0, true // has no logarithm: it stays, and has no part
	once := Blur(values, wanted, grid, 1)
	want := Blur(once, wanted, grid, 1)
	got := Blur(values, wanted, grid, 2)
	for c := range want {
		if math.Abs(float64(got[c]/want[c]-1)) > 1e-5 && got[c] != want[c] {
			t.Fatalf("cell %d: %v, want %v", c, got[c], want[c])
		}
	}
	if got[7] != 0 || got[5] != values[5] {
		t.Errorf("cells that are not to change: %v and %v", got[7], got[5])
	}
	// The grid goes round: what is turned before is turned after.
	turned, mask := make([]float32, h*w), make([]bool, h*w)
	for c := range values {
		to := c/w*w + (c+9)%w
		turned[to], mask[to] = values[c], wanted[c]
	}
	for c, v := range Blur(turned, mask, grid, 2) {
		if from := c/w*w + (c%w+w-9)%w; math.Abs(float64(v-got[from])) > 1e-5 {
			t.Fatalf("cell %d of the map that was turned: %v, want %v", c, v, got[from])
		}
	}
}
