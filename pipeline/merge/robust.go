package merge

import (
	"cmp"
	"math"
	"slices"
)

// madToSigma is the standard deviation of a normal variable by its median absolute
// deviation.
const madToSigma = 1.4826

// centre returns the median of x and its robust standard deviation about it. x is
// sorted.
func centre(x []float64) (median, sigma float64) {
	slices.Sort(x)
	median = middle(x)
	off := make([]float64, len(x))
	for i, v := range x {
		off[i] = math.Abs(v - median)
	}
	slices.Sort(off)
	return median, madToSigma * middle(off)
}

// middle returns the median of sorted numbers.
func middle(x []float64) float64 {
	n := len(x)
	if n%2 == 1 {
		return x[n/2]
	}
	return (x[n/2-1] + x[n/2]) / 2
}

// weighed is a number with its weight.
type weighed struct{ x, w float64 }

// weightedMedian returns the number with half of the weight on either side; NaN
// where there is no weight.
func weightedMedian(all []weighed) float64 {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b weighed) int { return cmp.Compare(a.x, b.x) })
	total := 0.0
	for _, a := range all {
		total += a.w
	}
	sum := 0.0
	for i, a := range all {
		sum += a.w
		switch {
		case sum > total/2:
			return a.x
		case sum == total/2 && total > 0 && i+1 < len(all):
			return (a.x + all[i+1].x) / 2
		}
	}
	return math.NaN()
}
