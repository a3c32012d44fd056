package operate

import (
	"testing"
	"time"

	"lacuna/daemon/state"
)

// At a rate, an hour has so many products and a minute at most a minute's more; what
// nobody used in a pause is not made up for.
func TestABackfillKeepsToItsRate(t *testing.T) {
	now := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	s := Station{Settings: Settings{State: state.Dir(t.TempDir()), Datasets: make([]Dataset, 1)}, Now: func() time.Time { return now }}
	s.Datasets[0].Name = "sea"
	throttle := s.Throttle("sea", s.Now)
	begun := func(lasts time.Duration) (n int) {
		for end := now.Add(lasts); now.Before(end); now = now.Add(5 * time.Second) {
			for range 1000 { // as many as it may
				if throttle.Rests() {
					break
				}
				throttle.Begun()
				n++
			}
		}
		return n
	}
	if n := begun(10 * time.Second); n != 2000 {
		t.Errorf("%d without a rate, want all", n)
	}
	for _, anHour := range []float64{30, 3600} {
		if err := s.SetBackfillRate("sea", anHour); err != nil {
			t.Fatal(err)
		}
		if n := float64(begun(time.Hour)); n < 0.99*anHour-1 || n > anHour+1 { // the last look is five seconds before the end
			t.Errorf("%.0f products in an hour at a rate of %.0f", n, anHour)
		}
	}
	if err := s.PauseBackfill("sea", true); err != nil {
		t.Fatal(err)
	}
	if n := begun(time.Hour); n != 0 {
		t.Errorf("%d products while it is paused", n)
	}
	if err := s.PauseBackfill("sea", false); err != nil {
		t.Fatal(err)
	}
	if n := begun(time.Minute); n > 125 {
		t.Errorf("%d products in the minute after a pause of an hour, at 60 a minute", n)
	}
	if err := s.SetBackfillRate("sea", -1); err == nil {
		t.Error("a negative rate is taken")
	}
	if err := s.SetBackfillRate("sea", 0); err != nil || throttle.Rests() {
		t.Errorf("without a rate it still rests, %v", err)
	}
}

// The time left is that of the machines, or that of the rate where it is slower.
func TestARateMakesABackfillTakeLonger(t *testing.T) {
	for _, tt := range []struct {
		each   time.Duration
		anHour float64
		want   time.Duration
	}{{time.Minute, 0, time.Minute}, {time.Minute, 30, 2 * time.Minute}, {time.Minute, 600, time.Minute}, {0, 60, time.Minute}} {
		if got := slower(tt.each, tt.anHour); got != tt.want {
			t.Errorf("slower(%v, %v) = %v, want %v", tt.each, tt.anHour, got, tt.want)
		}
	}
}
