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
// counted once. Holes do not move it while fewer than half of the distances
// have one. It is 0 where there are fewer than two times.
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
	return apart[(len(apart)-1)/2]
}
