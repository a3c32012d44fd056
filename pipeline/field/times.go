package field

import "time"

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
