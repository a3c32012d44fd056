package retrain

import (
	"strings"
	"testing"
	"time"
)

func TestAWindowIsOpenAtItsHours(t *testing.T) {
	for _, tt := range []struct{ window, now, change string }{
		{"22:00-06:00", "2026-03-01T21:59:00Z", "opens 2026-03-01T22:00:00Z"},
		{"22:00-06:00", "2026-03-01T22:00:00Z", "closes 2026-03-02T06:00:00Z"},
		{"22:00-06:00", "2026-03-02T05:59:00Z", "closes 2026-03-02T06:00:00Z"},
		{"22:00-06:00", "2026-03-02T06:00:00Z", "opens 2026-03-02T22:00:00Z"},
		{"01:00-05:30", "2026-03-01T00:00:00Z", "opens 2026-03-01T01:00:00Z"},
		{"01:00-05:30", "2026-03-01T12:00:00Z", "opens 2026-03-02T01:00:00Z"},
		{"01:00-05:30", "2026-12-31T05:00:00Z", "closes 2026-12-31T05:30:00Z"},
		// In Lisbon clocks went forward in the night to 2026-03-29: the night is an hour shorter.
		{"22:00-06:00 Europe/Lisbon", "2026-03-28T22:00:00Z", "closes 2026-03-29T05:00:00Z"},
		{"22:00-06:00 Europe/Lisbon", "2026-07-01T20:59:00Z", "opens 2026-07-01T21:00:00Z"},
	} {
		w, err := parseWindow(tt.window)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		open, change := w.at(now)
		if got := map[bool]string{true: "closes ", false: "opens "}[open] + change.UTC().Format(time.RFC3339); got != tt.change {
			t.Errorf("%s at %s %s, want %s", tt.window, tt.now, got, tt.change)
		}
	}
	if open, change := (window{}).at(time.Now()); !open || !change.IsZero() {
		t.Error("without a window trainings do not run all day")
	}
	for text, want := range map[string]string{
		"22:00": "two times", "22:00-24:30": `"24:30" is no time`, "06:00-06:00": "ends when it begins", "22:00-06:00 Atlantis/Poseidonis": "Atlantis",
	} {
		if _, err := parseWindow(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

func TestAScheduleIsReadOutInWords(t *testing.T) {
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC) // a Monday
	for schedule, want := range map[string]string{
		"0 2 * * 0":                    "every Sunday at 02:00 UTC",
		"30 1 * * *":                   "every day at 01:30 UTC",
		"0 3 1 * *":                    "on day 1 of every month at 03:00 UTC",
		"0 */6 * * *":                  "every 6 h, next at 18:00 UTC",
		"CRON_TZ=Asia/Tokyo 0 2 * * 6": "every Friday at 17:00 UTC",
		"0 2 * * 1,4":                  "by the schedule 0 2 * * 1,4",
		"0 0 30 2 *":                   "has no time to come",
		"":                             "no schedule",
	} {
		if got := (Config{Schedule: schedule}).inWords(now); !strings.Contains(got, want) {
			t.Errorf("%q is %q, want %q", schedule, got, want)
		}
	}
}
