package classical

import (
	"math"
	"time"
)

// Persistence estimates each cell by its last observation at or before the
// target and not older than maxAge, and by Climatology where there is none.
//
// Sigma is the root mean square change from one observation of a cell to its
// next, as the series itself shows it for each age in whole days, made to grow
// with age. For a cell observed at the target it is that of the youngest pairs
// divided by √2, because both ends of a pair have errors. Where no cell was
// seen twice it is the sigma of Climatology.
func Persistence(s Series, target int, maxAge time.Duration) Estimate {
	e := Climatology(s, target)
	change, known := changeByAge(s, maxAge)
	now := s.Frames[target].Time
	for c := range e.Mean {
		for f := target; f >= 0 && now.Sub(s.Frames[f].Time) <= maxAge; f-- {
			if !s.observed(f, c) {
				continue
			}
			e.Mean[c] = s.Frames[f].Values[c]
			if known {
				e.Sigma[c] = change[wholeDays(now.Sub(s.Frames[f].Time))]
			}
			break
		}
	}
	return e
}

// wholeDays rounds to the nearest day: overpasses of one satellite shift by
// minutes from day to day.
func wholeDays(age time.Duration) int {
	return int(math.Round(age.Hours() / 24))
}

// changeByAge returns, for ages of 0, 1, ... days, the root mean square
// difference between successive observations of a cell; known is false without
// any pair.
func changeByAge(s Series, maxAge time.Duration) (change []float32, known bool) {
	n := wholeDays(maxAge) + 1
	squares, pairs := make([]float64, n), make([]float64, n)
	for c := range s.Grid.Len() {
		last := -1
		for f := range s.Frames {
			if !s.observed(f, c) {
				continue
			}
			if last >= 0 && s.Frames[f].Time.Sub(s.Frames[last].Time) <= maxAge {
				age := wholeDays(s.Frames[f].Time.Sub(s.Frames[last].Time))
				d := float64(s.Frames[f].Values[c]) - float64(s.Frames[last].Values[c])
				squares[age] += d * d
				pairs[age]++
			}
			last = f
		}
	}
	return growing(squares, pairs)
}

// growing turns sums into root mean squares that do not fall with age. An age
// without pairs takes the value of the next younger one that has some, and
// the youngest ages that of the first.
func growing(squares, pairs []float64) (change []float32, known bool) {
	change = make([]float32, len(squares))
	most, first := 0.0, len(squares)
	for k := range change {
		if pairs[k] > 0 {
			most = max(most, math.Sqrt(squares[k]/pairs[k]))
			first = min(first, k)
		}
		change[k] = float32(most)
	}
	if first == len(squares) {
		return nil, false
	}
	for k := range first {
		change[k] = change[first]
	}
	change[0] /= math.Sqrt2
	return change, true
}
