package operate

import (
	"testing"
	"time"
)

// A chunk of a coarse series holds as many granules as that of a daily one.
func TestABackfillIsFetchedBySteps(t *testing.T) {
	const day = 24 * time.Hour
	for step, want := range map[time.Duration]int{
		0: 31, time.Hour: 31, 12 * time.Hour: 31, day: 31, 25 * time.Hour: 31, 8 * day: 248, 30 * day: 930,
	} {
		if got := chunkDays(step); got != want {
			t.Errorf("of a series of %v %d days are fetched at a time, want %d", step, got, want)
		}
	}
}
