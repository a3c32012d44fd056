package field

import (
	"fmt"
	"math"
)

// A Transform maps physical values to the space in which errors are additive
// and Gaussian enough to average, and back. The zero value is the identity.
type Transform struct {
	// Log10 takes the decimal logarithm: concentrations are log-normal.
	Log10 bool
	// Floor is the smallest physical value whose logarithm is taken;
	// smaller ones count as Floor. It must be positive for Log10.
	Floor float32
}

// ParseTransform returns the transform that a config names: "identity", or
// "log10" with the given floor.
func ParseTransform(name string, floor float64) (Transform, error) {
	switch name {
	case "", "identity":
		return Transform{}, nil
	case "log10":
		if !(floor > 0) {
			return Transform{}, fmt.Errorf("transform log10 needs a positive floor, not %g", floor)
		}
		return Transform{Log10: true, Floor: float32(floor)}, nil
	}
	return Transform{}, fmt.Errorf("unknown transform %q: use identity or log10", name)
}

// String returns the name that ParseTransform takes.
func (t Transform) String() string {
	if t.Log10 {
		return "log10"
	}
	return "identity"
}

// Forward stores the transformed src in dst, which may be src. NaN stays NaN.
func (t Transform) Forward(dst, src []float32) {
	if len(dst) != len(src) {
		panic(badLength)
	}
	if !t.Log10 {
		copy(dst, src)
		return
	}
	for i, v := range src {
		dst[i] = float32(math.Log10(float64(max(v, t.Floor))))
	}
}

// Inverse stores the physical values of src in dst, which may be src.
func (t Transform) Inverse(dst, src []float32) {
	if len(dst) != len(src) {
		panic(badLength)
	}
	if !t.Log10 {
		copy(dst, src)
		return
	}
	for i, v := range src { // math.Pow takes several times as long, for the same 32 bits
		dst[i] = float32(math.Exp(math.Ln10 * float64(v)))
	}
}
