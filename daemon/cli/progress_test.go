package cli

import (
	"bytes"
	"io"
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

// slowly gives a MiB every nine seconds.
type slowly struct{ left int }

func (s *slowly) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(9 * time.Second)
	n := min(len(p), 1<<20, s.left)
	s.left -= n
	return n, nil
}

func TestAReadingTellsHowManyMiBAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		const size = 5<<20 + 7
		r := NewReading(&log, "import, MiB", &slowly{left: size}, size)
		n, err := io.ReadAtLeast(r, make([]byte, size), size)
		r.Finish()
		if n != size || err != nil {
			t.Errorf("%d bytes were read, want %d: %v", n, size, err)
		}
		if got, want := log.String(), "import, MiB: 3 of 5, about 15 s left\n"; got != want {
			t.Errorf("wrote %q, want %q", got, want)
		}
	})
}
