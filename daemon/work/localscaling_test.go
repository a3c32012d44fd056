package work

import (
	"testing"
	"time"
)

func TestKeptScalingServesUntilATenthOfItsDaysAreOthers(t *testing.T) {
	at := time.Date(2024, 4, 30, 12, 0, 0, 0, time.UTC)
	kept := keptScaling{Before: at, Days: 30}
	for _, tt := range []struct {
		away, days int
		want       bool
	}{{0, 30, true}, {3, 33, true}, {-1, 30, false}, {4, 30, false}, {1, 34, false}} {
		if got := kept.serves(at.AddDate(0, 0, tt.away), tt.days); got != tt.want {
			t.Errorf("%d days away with %d days: %v", tt.away, tt.days, got)
		}
	}
	if (keptScaling{}).serves(at, 0) {
		t.Error("nothing serves")
	}
}
