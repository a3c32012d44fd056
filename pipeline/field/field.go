package field

import (
	"math"
	"time"
)

const badLength = "field: slices of different length"

// A Mask is true or false for each cell of a grid.
type Mask []bool

// Count returns the number of cells that are true.
func (m Mask) Count() int {
	n := 0
	for _, b := range m {
		if b {
			n++
		}
	}
	return n
}

// A Field is one map: physical values on a grid at one time.
type Field struct {
	Grid   Grid
	Time   time.Time
	Values []float32 // NaN: a gap
	Sea    Mask      // nil: unknown
	// Errors are the standard errors of the observations in the space of the
	// transform, where they are to be weighed by them: several sensors had a part in
	// the field. NaN: not known; nil: all weigh alike.
	Errors []float32
}

// Observed reports whether cell i holds a value.
func (f Field) Observed(i int) bool {
	v := f.Values[i]
	return v == v
}

// ObservedMask returns the cells that hold a value.
func (f Field) ObservedMask() Mask {
	m := make(Mask, len(f.Values))
	for i := range m {
		m[i] = f.Observed(i)
	}
	return m
}

// Coverage returns the number of observed cells, the number of sea cells and
// their ratio. Values on land do not count. Where the sea is not known, every
// cell counts as sea. A field without sea has coverage 0.
func (f Field) Coverage() (observed, sea int, share float64) {
	for i := range f.Values {
		if f.Sea != nil && !f.Sea[i] {
			continue
		}
		sea++
		if f.Observed(i) {
			observed++
		}
	}
	if sea == 0 {
		return 0, 0, 0
	}
	return observed, sea, float64(observed) / float64(sea)
}

// NaN returns the value of a gap.
func NaN() float32 { return float32(math.NaN()) }

// EverObserved returns the cells with a value in at least one of the fields: a
// sea mask learned from data. All fields must have the length n.
func EverObserved(n int, fields ...Field) Mask {
	m := make(Mask, n)
	for _, f := range fields {
		if len(f.Values) != n {
			panic(badLength)
		}
		for i := range m {
			m[i] = m[i] || f.Observed(i)
		}
	}
	return m
}
