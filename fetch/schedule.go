package fetch

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// schedule gives the times at which an archive is listed.
type schedule struct {
	spec     cron.Schedule // nil: at a steady interval
	interval time.Duration
	zone     *time.Location
	jitter   time.Duration
	random   func(n int64) int64 // 0..n-1
}

// newSchedule reads the schedule of a configuration that was validated.
func newSchedule(c Config, random func(n int64) int64) (schedule, error) {
	s := schedule{interval: c.PollInterval, jitter: c.Jitter, random: random}
	var err error
	if s.zone, err = time.LoadLocation(c.TimeZone); err != nil {
		return schedule{}, fmt.Errorf("read time zone: %w", err)
	}
	if c.Schedule == "" {
		return s, nil
	}
	if s.spec, err = cron.ParseStandard(c.Schedule); err != nil {
		return schedule{}, fmt.Errorf("read schedule: %w", err)
	}
	return s, nil
}

// next returns when the listing after now is due. With an interval, listings
// keep their beat: due is the one that has just been made, and one that took
// longer than the interval is followed by the next beat, not by all it missed. Where
// the clock was set back, and due lies ahead, the next beat is no further away.
func (s schedule) next(due, now time.Time) time.Time {
	if s.spec != nil {
		at := s.spec.Next(now.In(s.zone))
		if s.jitter > 0 {
			at = at.Add(time.Duration(s.random(int64(s.jitter))))
		}
		return at
	}
	since := now.Sub(due)
	missed := since / s.interval
	if since%s.interval < 0 {
		missed-- // a division of whole numbers is cut towards zero
	}
	return due.Add((missed + 1) * s.interval)
}

// resume returns when a listing is due after the clock was set back to now. It was due
// when so much time had passed: an interval has nothing to do with what the clock says.
func (s schedule) resume(now time.Time, left time.Duration) time.Time {
	if s.spec != nil {
		return s.next(now, now)
	}
	return now.Add(min(max(left, 0), s.interval))
}

// lastDue returns the latest day whose granule is due at now, and since when;
// ok is false where nothing is expected.
func (e Expect) lastDue(now time.Time, zone *time.Location) (day, due time.Time, ok bool) {
	clock, err := time.Parse("15:04", e.By)
	if err != nil {
		return time.Time{}, time.Time{}, false
	}
	y, m, d := now.In(zone).Date()
	due = time.Date(y, m, d, clock.Hour(), clock.Minute(), 0, 0, zone)
	if due.After(now) {
		due = time.Date(y, m, d-1, clock.Hour(), clock.Minute(), 0, 0, zone)
	}
	y, m, d = due.Date()
	return time.Date(y, m, d-e.LagDays, 0, 0, 0, 0, time.UTC), due, true
}

// Due returns when the granule of a time is due; known is false where nothing is
// expected. The configuration was validated.
func (c Config) Due(t time.Time) (due time.Time, known bool) {
	clock, err := time.Parse("15:04", c.Expect.By)
	if err != nil {
		return t.Add(c.Expect.Within), c.Expect.Within > 0
	}
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return time.Time{}, false
	}
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d+c.Expect.LagDays, clock.Hour(), clock.Minute(), 0, 0, zone), true
}

// alarm paces the waiting for a moment of the wall clock. It looks at the
// clock at least once a minute: a clock that is set while we wait, as happens
// after a boot, must neither delay a listing by as much nor skip it.
type alarm struct {
	now  func() time.Time
	last time.Time
}

// longestNap bounds how late a jump of the clock is noticed.
const longestNap = time.Minute

// nap returns how long to sleep before looking again; none where due is now.
// back is true where the clock was set back since the last look, so that due
// must be worked out anew.
func (a *alarm) nap(due time.Time) (nap time.Duration, back bool) {
	// Round strips the monotonic reading: it is the wall clock that jumps.
	now := a.now().Round(0)
	back = now.Before(a.last)
	a.last = now
	return min(max(due.Round(0).Sub(now), 0), longestNap), back
}
