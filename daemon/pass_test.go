package daemon

import (
	"testing"
	"time"
)

func TestAPassSaysHowLongItStillTakes(t *testing.T) {
	for _, tt := range []struct {
		since         time.Duration
		done, waiting int
		want          string
	}{
		{30 * time.Second, 0, 20, "not known before the first is filled"},
		{time.Minute, 6, 30, "about 5 min"},
		{time.Hour, 30, 0, "scores, deliveries and tidying"},
	} {
		if got := timeLeft(tt.since, tt.done, tt.waiting); got != tt.want {
			t.Errorf("after %v, %d filled and %d waiting: %q, want %q", tt.since, tt.done, tt.waiting, got, tt.want)
		}
	}
}
