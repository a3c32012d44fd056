package samples

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Date is a UTC day.
type Date int64 // days since 1 January 1970

// DateOf returns the day of a time.
func DateOf(t time.Time) Date { return Date(dayNumber(t)) }

// Time returns midnight of d.
func (d Date) Time() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

// String returns d as 2006-01-02.
func (d Date) String() string { return d.Time().Format(time.DateOnly) }

// MarshalText implements encoding.TextMarshaler.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Date) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.DateOnly, string(text))
	*d = DateOf(t)
	return err
}

// A Role is the one use that is made of a day.
type Role string

// The roles of days.
const (
	Nothing Role = ""       // lies between days of other roles, or is not assigned yet
	Learn   Role = "learn"  // weights, mean map, spread and constants come from it
	Choose  Role = "choose" // ends trainings, calibrates and decides between settings
	Judge   Role = "judge"  // scores versions, and nothing else
)

// An Interval is a run of days of one role.
type Interval struct {
	Role Role `json:"role"`
	From Date `json:"from"`
	To   Date `json:"to"` // last day
}

// A Share is a number of consecutive days of one role.
type Share struct {
	Role Role `json:"role,omitempty"`
	Days int  `json:"days"`
}

// A Calendar gives each date of a dataset its role, once and for ever. It is
// made from the first days that are trained on (SplitConfig), and Extend only
// ever appends to it, in cycles of fixed length: the role of a date does not
// depend on when its day came in, nor on which days came in beside it. The zero
// value assigns nothing.
type Calendar struct {
	GapDays   int        `json:"gap_days"`  // days between learning and judging
	Cycle     []Share    `json:"cycle"`     // appended behind the last interval, as often as days need it
	Intervals []Interval `json:"intervals"` // in order; between them lie days of no role
}

// Role returns the role of a date. A date in a hole of the first days, or
// before them, may have come in late: it is learned from if more than GapDays
// lie between it and every day that chooses or judges. A date behind the last
// interval has no role before the calendar is extended to it.
func (c Calendar) Role(d Date) Role {
	next, inside := slices.BinarySearchFunc(c.Intervals, d, func(i Interval, d Date) int {
		switch {
		case i.To < d:
			return -1
		case i.From > d:
			return 1
		}
		return 0
	})
	switch {
	case inside:
		return c.Intervals[next].Role
	case next == len(c.Intervals):
		return Nothing
	}
	for _, i := range c.Intervals {
		if i.Role != Learn && d >= i.From-Date(c.GapDays) && d <= i.To+Date(c.GapDays) {
			return Nothing
		}
	}
	return Learn
}

// Extend returns c with a role for each of the days: as it is where it reaches
// to the last of them, with further cycles where it does not, and made by cfg
// where it is empty. It changes no interval.
func Extend(c Calendar, days []Day, cfg SplitConfig) Calendar {
	if len(days) == 0 {
		return c
	}
	if len(c.Intervals) == 0 {
		return cfg.calendar(days)
	}
	c.Intervals = slices.Clip(c.Intervals) // appending must not write into the caller's
	last := DateOf(days[len(days)-1].Time)
	for at := c.end(); at <= last; {
		for _, share := range c.Cycle {
			c.append(share.Role, at, share.Days)
			at += Date(share.Days)
		}
	}
	return c
}

// end returns the date behind the last interval.
func (c Calendar) end() Date { return c.Intervals[len(c.Intervals)-1].To + 1 }

// append adds an interval of a role behind the last.
func (c *Calendar) append(role Role, from Date, days int) {
	if role != Nothing && days > 0 {
		c.Intervals = append(c.Intervals, Interval{Role: role, From: from, To: from + Date(days) - 1})
	}
}

// Validate reports a calendar that cannot have been made here: a file may have
// been edited.
func (c Calendar) Validate() error {
	if len(c.Intervals) == 0 {
		return nil
	}
	n := len(c.Cycle)
	if n == 0 || c.Cycle[n-1].Role == Nothing || slices.ContainsFunc(c.Cycle, func(s Share) bool { return s.Days < 0 }) || c.Cycle[n-1].Days == 0 {
		return errors.New("calendar has no cycle to go on with")
	}
	for k, i := range c.Intervals {
		switch {
		case i.Role != Learn && i.Role != Choose && i.Role != Judge:
			return fmt.Errorf("calendar has the role %q from %v", i.Role, i.From)
		case i.To < i.From, k > 0 && i.From <= c.Intervals[k-1].To:
			return fmt.Errorf("calendar has an interval from %v to %v out of order", i.From, i.To)
		}
	}
	return nil
}

// Extends reports whether c gives every date of o the role that o gives it, and
// may go on behind it.
func (c Calendar) Extends(o Calendar) bool {
	return len(o.Intervals) == 0 || c.GapDays == o.GapDays && slices.Equal(c.Cycle, o.Cycle) &&
		len(c.Intervals) >= len(o.Intervals) && slices.Equal(c.Intervals[:len(o.Intervals)], o.Intervals)
}
