package infer

import (
	"fmt"
	"slices"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

const day = 24 * time.Hour

// Models are trained and judged with this window of days: the past alone, for what
// is made at once, and with the days after it, for what is made later. Optimal
// interpolation beside them is judged with the same.
const (
	JudgedPastDays   = samples.LastDays
	JudgedFutureDays = samples.NextDays
)

// Unjudged says in a sentence that the window is another than that with which
// models were judged; empty: it is the same.
func (c Config) Unjudged() string {
	if c.Back == 0 && c.Ahead == 0 && c.PastDays == JudgedPastDays && (c.FutureDays == 0 || c.FutureDays == JudgedFutureDays) {
		return ""
	}
	back, ahead := c.Window()
	return fmt.Sprintf("the scores of models do not hold for this window, %s back and %s ahead: they were measured with %d days back and 0 or %d ahead",
		back, ahead, JudgedPastDays, JudgedFutureDays)
}

// Window returns the two sides of the window in words.
func (c Config) Window() (back, ahead string) {
	side := func(given time.Duration, days int) string {
		if given > 0 {
			return fmt.Sprintf("%gh", given.Hours())
		}
		return fmt.Sprintf("%d days", days)
	}
	return side(c.Back, c.PastDays), side(c.Ahead, c.FutureDays)
}

// mostFrames bounds the fields before one, and those after it, of a series finer
// than a day: the cost of an analysis grows with them, and the fields of the
// last hours are nearly the same.
const mostFrames = 48

// StepOf returns the step of a series with fields at these times, for Config.Step;
// 0, not known, for fewer than four of them: a hole would pass for a step.
func StepOf(times []time.Time) time.Duration {
	distinct := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	distinct = slices.CompactFunc(distinct, time.Time.Equal)
	if len(distinct) < 4 {
		return 0
	}
	return field.Step(distinct)
}

// Daily reports whether a series of this step has about one field a day, which is
// what networks learned from; also where the step is not known.
func Daily(step time.Duration) bool { return step == 0 || step >= 18*time.Hour && step <= 36*time.Hour }

// Interval returns the step of the series, an exact day where it is about one or
// not known.
func (c Config) Interval() time.Duration {
	if Daily(c.Step) {
		return day
	}
	return c.Step
}

// span returns the length of one side of the window: given outright, or as a
// number of days, of a coarser series steps. It is half a step wider, because
// fields rarely are exactly a step apart.
func (c Config) span(given time.Duration, days int) time.Duration {
	if given == 0 {
		given = time.Duration(days) * max(c.Interval(), day)
	}
	return given + c.Interval()/2
}

// Past returns how far before a field the window begins.
func (c Config) Past() time.Duration { return c.span(c.Back, c.PastDays) }

// Future returns how far after a field the window ends.
func (c Config) Future() time.Duration {
	if c.FutureDays == 0 && c.Ahead == 0 {
		return 0
	}
	return c.span(c.Ahead, c.FutureDays)
}

// Within returns the indices of the times that are in the window around a time,
// in their order. times must not descend. Of a series finer than a day it leaves
// some out where there are more than mostFrames on a side: it keeps the nearest
// half of that number, and of the others the first of every so many hours, as far
// as the window reaches. Those hours are the same for all fields, so that
// successive ones share most of their neighbours.
func (c Config) Within(times []time.Time, at time.Time) []int {
	var before, same, after []int
	for i, t := range times {
		switch away := t.Sub(at); {
		case away == 0:
			same = append(same, i)
		case away < 0 && -away <= c.Past():
			before = append(before, i)
		case away > 0 && away <= c.Future():
			after = append(after, i)
		}
	}
	if c.Interval() < day {
		near := min(mostFrames/2, len(before))
		split := len(before) - near
		before = append(c.thin(before[:split], times, c.Past()), before[split:]...)
		near = min(mostFrames/2, len(after))
		after = append(after[:near:near], c.thin(after[near:], times, c.Future())...)
	}
	return slices.Concat(before, same, after)
}

// thin returns the far frames of one side of a window that reaches so far, the
// first of each interval of time.
func (c Config) thin(far []int, times []time.Time, reach time.Duration) []int {
	const near = mostFrames / 2
	every := max((reach-near*c.Interval())/(mostFrames-near), c.Interval())
	var kept []int
	last := int64(-1)
	for _, i := range far {
		if interval := times[i].UnixNano() / int64(every); interval != last {
			kept, last = append(kept, i), interval
		}
	}
	return kept
}

// window returns the frames that the analysis of a target may use, and the index
// of the target among them. It shares the frames with s.
func (c Config) window(s classical.Series, target int) (classical.Series, int) {
	times := make([]time.Time, len(s.Frames))
	for i, f := range s.Frames {
		times[i] = f.Time
	}
	chosen := c.Within(times, s.Frames[target].Time)
	frames := make([]classical.Frame, len(chosen))
	for k, i := range chosen {
		frames[k] = s.Frames[i]
	}
	return classical.Series{Grid: s.Grid, Sea: s.Sea, Frames: frames}, slices.Index(chosen, target)
}
