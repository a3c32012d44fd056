package retrain

import (
	"fmt"
	"strings"
	"time"
)

// window is the time of the day in which trainings run. The zero value is the
// whole day.
type window struct {
	from, to int            // minutes after midnight; to may be before from: it is of the next day then
	zone     *time.Location // nil: there is no window
}

// parseWindow reads a window such as "22:00-06:00" (UTC) or "22:00-06:00
// Europe/Lisbon". An empty text is the whole day.
func parseWindow(text string) (window, error) {
	if text == "" {
		return window{}, nil
	}
	hours, zone, _ := strings.Cut(strings.TrimSpace(text), " ")
	from, to, ok := strings.Cut(hours, "-")
	if !ok {
		return window{}, fmt.Errorf("no two times such as 22:00-06:00")
	}
	var w window
	var err error
	if w.from, err = minutes(from); err != nil {
		return window{}, err
	}
	if w.to, err = minutes(to); err != nil {
		return window{}, err
	}
	if w.from == w.to {
		return window{}, fmt.Errorf("it ends when it begins; leave it empty for the whole day")
	}
	if w.zone, err = time.LoadLocation(strings.TrimSpace(zone)); err != nil { // an empty zone is UTC
		return window{}, err
	}
	return w, nil
}

func minutes(text string) (int, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time such as 22:00", text)
	}
	return t.Hour()*60 + t.Minute(), nil
}

// at reports whether the window is open, and when that changes: when it closes,
// or opens. Without a window nothing changes, and the time is zero.
func (w window) at(now time.Time) (open bool, change time.Time) {
	if w.zone == nil {
		return true, time.Time{}
	}
	y, m, d := now.In(w.zone).Date()
	// The one that began yesterday may still be open, and today's may be over.
	for day := d - 1; ; day++ {
		begins, ends := time.Date(y, m, day, 0, w.from, 0, 0, w.zone), time.Date(y, m, day, 0, w.to, 0, 0, w.zone)
		if w.to < w.from {
			ends = time.Date(y, m, day+1, 0, w.to, 0, 0, w.zone)
		}
		switch {
		case now.Before(begins):
			return false, begins
		case now.Before(ends):
			return true, ends
		}
	}
}

// nextOpening returns when the window opens after it has closed the next time;
// zero without a window.
func (w window) nextOpening(now time.Time) time.Time {
	open, change := w.at(now)
	if open && !change.IsZero() {
		_, change = w.at(change)
	}
	return change
}
