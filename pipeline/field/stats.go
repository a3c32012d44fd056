package field

import (
	"fmt"
	"math"
	"slices"
)

// Stats summarises the values of one or more fields; gaps do not count.
type Stats struct {
	N         int
	Min, Max  float64
	Mean, Std float64 // Std divides by N
}

// Summarise returns the statistics of the values that are not NaN. With no
// value all but N are NaN.
func Summarise(values ...[]float32) Stats {
	s := Stats{Min: math.Inf(1), Max: math.Inf(-1)}
	m2 := 0.0
	for _, vs := range values {
		for _, v := range vs {
			x := float64(v)
			if math.IsNaN(x) {
				continue
			}
			// Welford's update: stable for fields far from zero, such as kelvin.
			s.N++
			d := x - s.Mean
			s.Mean += d / float64(s.N)
			m2 += d * (x - s.Mean)
			s.Min, s.Max = min(s.Min, x), max(s.Max, x)
		}
	}
	if s.N == 0 {
		nan := math.NaN()
		return Stats{Min: nan, Max: nan, Mean: nan, Std: nan}
	}
	s.Std = math.Sqrt(m2 / float64(s.N))
	return s
}

// Quantiles returns the qs-quantiles (each in 0..1) of the values that are not
// NaN, by linear interpolation between order statistics. With no value they
// are NaN.
func Quantiles(values []float32, qs ...float64) []float64 {
	seen := make([]float32, 0, len(values))
	for _, v := range values {
		if v == v {
			seen = append(seen, v)
		}
	}
	slices.Sort(seen)
	out := make([]float64, len(qs))
	for i, q := range qs {
		if len(seen) == 0 {
			out[i] = math.NaN()
			continue
		}
		pos := min(max(q, 0), 1) * float64(len(seen)-1)
		low := int(pos)
		high := min(low+1, len(seen)-1)
		frac := pos - float64(low)
		out[i] = float64(seen[low])*(1-frac) + float64(seen[high])*frac
	}
	return out
}

// Normalisation shifts and scales transformed values to zero mean and unit
// variance. Its statistics must come from the training window only.
type Normalisation struct {
	Mean, Std float64
}

// NormalisationOf returns the normalisation with the statistics s.
func NormalisationOf(s Stats) (Normalisation, error) {
	if s.N == 0 {
		return Normalisation{}, fmt.Errorf("there are no values to normalise by")
	}
	if !(s.Std > 0) {
		return Normalisation{}, fmt.Errorf("all %d values equal %g, so there is no spread to normalise by", s.N, s.Mean)
	}
	return Normalisation{Mean: s.Mean, Std: s.Std}, nil
}

// Forward stores (src - mean) / std in dst, which may be src.
func (n Normalisation) Forward(dst, src []float32) {
	if len(dst) != len(src) {
		panic(badLength)
	}
	for i, v := range src {
		dst[i] = float32((float64(v) - n.Mean) / n.Std)
	}
}
