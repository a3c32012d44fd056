package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// Without a terminal somebody who reads the log hears every half minute how far a
// long run is and how long it still takes; of a short one nothing.
func TestLongWorkSaysEveryHalfMinuteHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := NewProgress(&log, "reading", 10)
		time.Sleep(20 * time.Second)
		p.Finish()
		if log.Len() > 0 {
			t.Errorf("20 s of work wrote %q", log.String())
		}

		p = NewProgress(&log, "filling", 0)
		time.Sleep(40 * time.Second)
		p.Set(1, 4)
		time.Sleep(40 * time.Second)
		p.Step()
		time.Sleep(20*time.Second + time.Millisecond)
		p.Finish()
		want := "filling: at it for 30 s\nfilling: 1 of 4, about 2 min left\nfilling: 2 of 4, about 70 s left\n"
		if got := log.String(); got != want {
			t.Errorf("wrote\n%swant\n%s", got, want)
		}
	})
}
