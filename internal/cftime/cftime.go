// Package cftime turns the numbers of a time coordinate into times, by the
// units and calendars of the CF conventions.
//
// It knows the calendars in which real days exist, and nothing of files.
package cftime

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ErrUnits marks units that are none of time; ErrCalendar a calendar in which
// real days do not exist or repeat.
var (
	ErrUnits    = errors.New("not units of time")
	ErrCalendar = errors.New("not a calendar of real days")
)

// Clock tells the times of numbers.
type Clock struct {
	origin time.Time
	step   float64 // seconds, or month or year
}

// New returns the clock of units such as "days since 1970-01-01" in a calendar,
// "" for the standard one. The notes state the assumptions.
func New(units, calendar string) (c Clock, notes []string, err error) {
	unit, since, ok := strings.Cut(units, " since ")
	step, known := unitSeconds(unit)
	if !ok || !known {
		return Clock{}, nil, fmt.Errorf("%w: %.80q", ErrUnits, units)
	}
	calendar = strings.ToLower(calendar)
	switch {
	case calendar == "", calendar == "standard", calendar == "gregorian", calendar == "proleptic_gregorian":
	case calendar == "360_day" && (step == month || step == year):
		// Months and years are whole in every calendar; this one is the only
		// in which other tools let a file count them.
	default:
		return Clock{}, nil, fmt.Errorf("%w: %.80q", ErrCalendar, calendar)
	}
	origin, err := ParseDate(since, calendar != "proleptic_gregorian")
	if err != nil {
		origin = time.Unix(0, 0).UTC()
		notes = append(notes, fmt.Sprintf("the time units %q name no date: times count from 1970-01-01", units))
	}
	if step == month || step == year {
		notes = append(notes, fmt.Sprintf("the time units %q are taken as calendar months or years", units))
	}
	return Clock{origin: origin, step: step}, notes, nil
}

// At returns the time of a number, to the microsecond. It returns false for
// dates outside the years 1..9999.
func (c Clock) At(x float64) (time.Time, bool) { return later(c.origin, x, c.step) }

// Calendar steps have no length in seconds.
const month, year = -1, -12

// unitSeconds returns the length of a CF time unit, or month or year.
func unitSeconds(unit string) (step float64, ok bool) {
	switch strings.ToLower(strings.TrimSpace(unit)) {
	case "nanosecond", "nanoseconds", "ns":
		return 1e-9, true
	case "microsecond", "microseconds", "us":
		return 1e-6, true
	case "millisecond", "milliseconds", "msec", "msecs", "ms":
		return 1e-3, true
	case "second", "seconds", "sec", "secs", "s":
		return 1, true
	case "minute", "minutes", "min", "mins":
		return 60, true
	case "hour", "hours", "hr", "hrs", "h":
		return 3600, true
	case "day", "days", "d":
		return 86400, true
	case "week", "weeks":
		return 7 * 86400, true
	case "month", "months":
		return month, true
	case "year", "years", "yr", "yrs":
		return year, true
	}
	return 0, false
}

// later returns origin plus x steps, to the microsecond, the precision of a
// double x. It returns false for dates outside the years 1..9999.
func later(origin time.Time, x, step float64) (time.Time, bool) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return time.Time{}, false
	}
	if step < 0 {
		return monthsLater(origin, x*-step)
	}
	seconds := x * step
	if math.Abs(seconds) > 1e12 { // 30 000 years
		return time.Time{}, false
	}
	whole := math.Floor(seconds)
	micros := math.Round((seconds - whole) * 1e6)
	t := time.Unix(origin.Unix()+int64(whole), int64(origin.Nanosecond())+int64(micros)*1000).UTC()
	return t, t.Year() >= 1 && t.Year() <= 9999
}

// monthsLater adds calendar months. A day that the month does not have
// becomes its last, and a fraction is a share of that month.
func monthsLater(origin time.Time, months float64) (time.Time, bool) {
	whole := math.Floor(months)
	if math.Abs(whole) > 12*10000 {
		return time.Time{}, false
	}
	at := func(n int) time.Time {
		first := time.Date(origin.Year(), origin.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
		lastDay := first.AddDate(0, 1, -1).Day()
		return time.Date(first.Year(), first.Month(), min(origin.Day(), lastDay), origin.Hour(), origin.Minute(),
			origin.Second(), origin.Nanosecond(), time.UTC)
	}
	t := at(int(whole))
	if frac := months - whole; frac > 0 {
		span := at(int(whole) + 1).Sub(t)
		t = t.Add(time.Duration(frac * float64(span)).Round(time.Microsecond))
	}
	return t, t.Year() >= 1 && t.Year() <= 9999
}

var dateForm = regexp.MustCompile(`^(\d{1,4})(?:[-/](\d{1,2})(?:[-/](\d{1,2}))?|(\d{2})(\d{2}))?` +
	`(?:(?:T|t|\s+)(\d{1,2})(?::?(\d{1,2})(?::?(\d{1,2})(?:[.,](\d+))?)?)?)?` +
	`\s*(?:Z|z|UTC|GMT|([+-])(\d{1,2})(?::?(\d{2}))?)?$`)

// ParseDate understands the ways in which dates are written in units and
// attributes: 1981-01-01, 1981-1-1 0:0:0.0, 19810101T000000Z, with zone.
// Dates before the reform of 1582 are Julian if mixed is set, as CF's
// standard calendar has it.
func ParseDate(text string, mixed bool) (time.Time, error) {
	m := dateForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return time.Time{}, fmt.Errorf("%q is not a date", text)
	}
	num := func(s string, missing int) int {
		if s == "" {
			return missing
		}
		n, _ := strconv.Atoi(s) // the form admits digits only
		return n
	}
	y, mon, day := num(m[1], 0), num(m[2]+m[4], 1), num(m[3]+m[5], 1)
	hour, minute, second := num(m[6], 0), num(m[7], 0), num(m[8], 0)
	if mon < 1 || mon > 12 || day < 1 || day > 31 || hour > 24 || minute > 59 || second > 60 {
		return time.Time{}, fmt.Errorf("%q is not a date", text)
	}
	frac := 0.0
	if m[9] != "" {
		frac, _ = strconv.ParseFloat("0."+m[9], 64)
	}
	t := time.Date(y, time.Month(mon), day, hour, minute, second, int(frac*1e9), time.UTC)
	if mixed && (y < 1582 || y == 1582 && (mon < 10 || mon == 10 && day < 15)) {
		t = t.AddDate(0, 0, julianLag(y, mon))
	}
	zone := time.Duration(num(m[11], 0))*time.Hour + time.Duration(num(m[12], 0))*time.Minute
	if m[10] == "-" {
		zone = -zone
	}
	return t.Add(-zone), nil
}

// julianLag returns by how many days the Gregorian calendar, run backwards,
// differs from the Julian one in a month. A Julian date y-m-d is the
// Gregorian y-m-d plus that many days.
func julianLag(y, mon int) int {
	if mon <= 2 {
		y-- // a leap day that comes later in the year does not count yet
	}
	return int(math.Floor(float64(y)/100)) - int(math.Floor(float64(y)/400)) - 2
}
