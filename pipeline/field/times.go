package field

import (
	"slices"
	"time"
)

// Span returns the times of the earliest and the latest of fields, of which
// there must be one.
func Span(fields []Field) (first, last time.Time) {
	first, last = fields[0].Time, fields[0].Time
	for _, f := range fields[1:] {
		if f.Time.Before(first) {
			first = f.Time
		}
		if f.Time.After(last) {
			last = f.Time
		}
	}
	return first, last
}

// Times returns the times of fields, in their order.
func Times(fields []Field) []time.Time {
	all := make([]time.Time, len(fields))
	for i, f := range fields {
		all[i] = f.Time
	}
	return all
}

// Step returns the time from one field of a series to the next: the median of
// the distances between times that follow one another, in any order and each
// counted once. Where holes are so many that the median is one, a part of it
// that more than a fifth of the distances have, and that nearly all are multiples of. It is
// 0 where there are fewer than two times.
func Step(times []time.Time) time.Duration {
	sorted := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	sorted = slices.CompactFunc(sorted, time.Time.Equal)
	if len(sorted) < 2 {
		return 0
	}
	apart := make([]time.Duration, len(sorted)-1)
	for i := range apart {
		apart[i] = sorted[i+1].Sub(sorted[i])
	}
	slices.Sort(apart)
	// The lower of two in the middle: a hole makes a distance longer, never shorter.
	median := apart[(len(apart)-1)/2]
	for i, part := range apart {
		if 4*part > 3*median {
			break
		}
		if i > 0 && part == apart[i-1] {
			continue
		}
		same, multiple := 0, 0
		for _, d := range apart {
			off := (d - (d+part/2)/part*part).Abs()
			if d < 3*part/2 && 10*off <= part {
				same++
			}
			if 10*off <= part {
				multiple++
			}
		}
		if 5*same > len(apart) && 10*multiple >= 9*len(apart) {
			return part
		}
	}
	return median
}
