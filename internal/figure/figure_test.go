package figure

import (
	"math"
	"regexp"
	"testing"
	"time"
)

func TestFiguresAreWhatAPersonWouldSay(t *testing.T) {
	now := time.Date(2024, 4, 9, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ got, want string }{
		{Duration(0), "0 s"},
		{Duration(300 * time.Microsecond), "below 1 ms"},
		{Duration(350 * time.Millisecond), "350 ms"},
		{Duration(999999 * time.Microsecond), "1 s"},
		{Seconds(1.8599999999999999), "1.9 s"},
		{Seconds(9.96), "10 s"},
		{Duration(90*time.Second + 123456*time.Microsecond), "90 s"},
		{Duration(-2 * time.Minute), "-2 min"},
		{Duration(-90 * time.Second), "-90 s"},
		{Duration(12 * time.Minute), "12 min"},
		{Duration(100 * time.Minute), "1.7 h"},
		{Duration(31 * time.Hour), "31 h"},
		{Duration(72 * time.Hour), "3 days"},
		{Seconds(math.NaN()), None},
		{Seconds(1e12), None},
		{Ago(now, time.Time{}), "never"},
		{Ago(now, now.Add(time.Hour)), "just now"},
		{Ago(now, now.Add(-5*time.Minute)), "5 min ago"},
		{Bytes(999), "999 B"},
		{Bytes(999_999), "1 MB"},
		{Bytes(12_345), "12.3 kB"},
		{Bytes(4_560_000_000), "4.56 GB"},
		{Percent(0.99996), "99.9 %"},
		{Percent(0.00001), "below 0.1 %"},
		{Percent(0), "0.0 %"},
		{Percent(1), "100.0 %"},
		{Percent(math.NaN()), None},
		{Change(-0.0312), "-3.1 %"},
		{Change(math.Inf(1)), None},
		{ChangeWithin(0.939, 0.5, 1.3), "+93.9 % [+50.0, +130.0]"},
		{Number(0.123456), "0.123"},
		{Number(math.NaN()), None},
		{Count(-1234567), "-1\u202f234\u202f567"},
		{Count(-123), "-123"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

// Whatever the span, nobody reads a Go duration or a dozen digits.
func TestNoDurationHasMoreThanThreeDigits(t *testing.T) {
	short := regexp.MustCompile(`^(below 1 ms|\d{1,3} ms|\d{1,2}(\.\d)? s|\d{1,2} min|\d{1,2}(\.\d)? h|\d+ days)$`)
	for d := time.Duration(1); d < 100*365*24*time.Hour; d = d/5*7 + 13 {
		if got := Duration(d); !short.MatchString(got) && got != "100 s" && got != "100 min" {
			t.Errorf("Duration(%v) = %q", d, got)
		}
	}
}
