package operate

import (
	"slices"
	"testing"
	"time"
)

func TestTheUsualDelayIsTheLongestOfARegularSeries(t *testing.T) {
	const day = 24 * time.Hour
	regular := slices.Repeat([]time.Duration{26 * time.Hour, 30 * time.Hour, 27 * time.Hour}, 5)
	first := make([]time.Duration, 15) // fetched all at once, the oldest first
	for i := range first {
		first[i] = time.Duration(15-i) * day
	}
	for _, tt := range []struct {
		name   string
		delays []time.Duration
		step   time.Duration
		want   time.Duration
		known  bool
	}{
		{"every day, at about the same time", regular, day, 30 * time.Hour, true},
		{"too few", regular[:fewestDelays-1], day, 0, false},
		{"an archive that was fetched for the first time", first, day, 0, false},
		{"one that came a week late", append([]time.Duration{9 * day}, regular...), day, 0, false},
		{"a step that is not known", regular, 0, 0, false},
	} {
		got, known := usual(tt.delays, tt.step)
		if known != tt.known || known && got != tt.want {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, known, tt.want, tt.known)
		}
	}
}
