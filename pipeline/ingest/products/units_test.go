package products

import (
	"math"
	"testing"
)

func TestUnitsAreConverted(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		x, want  float64
		ok       bool
	}{
		{"K", "degC", 293.15, 20, true},
		{"celsius", "kelvin", 20, 293.15, true},
		{"degF", "degC", 50, 10, true},
		{"kg m-3", "mg m-3", 2e-6, 2, true},
		{"mg m^-3", "mg/m3", 3, 3, true},
		{"", "mg m-3", 3, 3, true},
		{"furlong", "furlong", 3, 3, true},
		{"furlong", "mg m-3", 0, 0, false},
		{"degC", "mg m-3", 0, 0, false},
	} {
		scale, zero, ok := Between(tt.from, tt.to)
		if ok != tt.ok || ok && math.Abs(scale*tt.x+zero-tt.want) > 1e-9 {
			t.Errorf("%v %q is %v %q, want %v (known: %v)", tt.x, tt.from, scale*tt.x+zero, tt.to, tt.want, tt.ok)
		}
	}
}
