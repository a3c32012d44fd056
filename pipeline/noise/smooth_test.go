package noise

import (
	"math"
	"testing"
)

func TestSmoothFieldHasItsCorrelationLength(t *testing.T) {
	const side, length = 64, 8
	var product, square float64
	for s := range uint64(40) {
		f := SmoothField(side, side, length, New(s, "smooth"))
		for i := range side {
			for j := range side - length {
				product += float64(f[i*side+j]) * float64(f[i*side+j+length])
				square += float64(f[i*side+j]) * float64(f[i*side+j])
			}
		}
	}
	if got := product / square; math.Abs(got-1/math.E) > 0.06 {
		t.Errorf("correlation at %d cells is %.3f, want %.3f", length, got, 1/math.E)
	}
}
