package field

import (
	"testing"
	"time"
)

func TestStepIsThatOfTheSeriesWhateverIsMissing(t *testing.T) {
	start := time.Date(2024, 2, 27, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	series := func(step time.Duration, at ...int) []time.Time {
		var all []time.Time
		for _, n := range at {
			all = append(all, start.Add(time.Duration(n)*step))
		}
		return all
	}
	for _, tt := range []struct {
		name  string
		times []time.Time
		want  time.Duration
	}{
		{"no field", nil, 0},
		{"one field", series(day, 4), 0},
		{"one field twice", series(day, 4, 4), 0},
		{"days", series(day, 0, 1, 2, 3), day},
		{"in any order, one of them twice", series(day, 3, 0, 2, 2, 1), day},
		{"a long outage", series(day, 0, 1, 2, 90, 91), day},
		{"every third day missing", series(day, 0, 1, 3, 4, 6, 7, 9, 10), day},
		{"more holes than not", series(day, 0, 1, 3, 5, 7), day},
		{"a second file of one day", series(time.Hour, 0, 24, 27, 48, 96, 144, 192, 240, 288, 336), 48 * time.Hour},
		{"every second day, but once", series(day, 0, 2, 4, 5, 6, 8, 10, 12, 14, 16, 18), 2 * day},
		{"one hole of two distances", series(day, 0, 1, 3), day},
		{"hours", series(time.Hour, 0, 1, 2, 26, 27), time.Hour},
		{"eight days", series(8*day, 0, 1, 3, 4), 8 * day},
		{"times of day that differ", []time.Time{start, start.Add(23 * time.Hour), start.Add(49 * time.Hour), start.Add(73 * time.Hour)}, day},
	} {
		if got := Step(tt.times); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
