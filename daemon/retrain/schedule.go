package retrain

import (
	"fmt"
	"time"

	"lacuna/daemon/state"

	"github.com/robfig/cron/v3"

	"lacuna/internal/figure"
)

// watchedSchedule is the schedule with the time from which on its times count.
type watchedSchedule struct {
	Schedule string    `json:"schedule"`
	Since    time.Time `json:"since"`
}

// scheduleSince returns the time from which on times of the schedule count: that of
// the first look at this schedule, or of the last time of it that passed without
// a training being possible. A schedule that is new, or was changed, begins with its
// next time.
func (s *Scheduler) scheduleSince() (since time.Time, known bool, err error) {
	var kept watchedSchedule
	known, err = state.Load(s.path(scheduleFile), &kept)
	if err != nil {
		return since, false, err
	}
	if known && kept.Schedule == s.Config.Schedule {
		return kept.Since, true, nil
	}
	return s.Now(), false, nil
}

// watchSchedule lets the times of the schedule count from now on.
func (s *Scheduler) watchSchedule() error {
	return state.Save(s.path(scheduleFile), watchedSchedule{Schedule: s.Config.Schedule, Since: s.Now()})
}

// next returns the first time of the schedule after t; zero: there is none.
func (c Config) next(t time.Time) time.Time {
	s, err := cron.ParseStandard(c.Schedule)
	if c.Schedule == "" || err != nil || t.IsZero() { // Validate reports the error
		return time.Time{}
	}
	return s.Next(t.UTC())
}

// inWords says when the schedule trains, from the times that follow now: a cron
// expression in words, whatever its form.
func (c Config) inWords(now time.Time) string {
	if c.Schedule == "" {
		return "no schedule"
	}
	var times []time.Time
	for t := c.next(now); !t.IsZero() && len(times) < 9; t = c.next(t) { // a week of days, and one more
		times = append(times, t)
	}
	if len(times) < 9 {
		return "the schedule " + c.Schedule + " has no time to come"
	}
	at := times[0].Format("15:04") + " UTC"
	switch {
	case every(times, func(t time.Time) time.Time { return t.AddDate(0, 0, 7) }):
		return "every " + times[0].Weekday().String() + " at " + at
	case every(times, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }):
		return "every day at " + at
	case every(times, func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }):
		return fmt.Sprintf("on day %d of every month at %s", times[0].Day(), at)
	case every(times, func(t time.Time) time.Time { return t.Add(times[1].Sub(times[0])) }):
		return fmt.Sprintf("every %s, next at %s", figure.Duration(times[1].Sub(times[0])), at)
	}
	return "by the schedule " + c.Schedule
}

// every reports whether each time is the one before it, one step on.
func every(times []time.Time, step func(time.Time) time.Time) bool {
	for i, t := range times[1:] {
		if !t.Equal(step(times[i])) {
			return false
		}
	}
	return true
}

// moment writes a time for people.
func moment(t time.Time) string { return t.UTC().Format("Monday 2006-01-02 15:04") + " UTC" }
