package fetch

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Days is a range of days in UTC, both ends included. A zero end is open. In
// text it is 2020-01-01..2020-12-31, with an open end left out.
type Days struct{ From, To time.Time }

// UnmarshalText reads a range.
func (d *Days) UnmarshalText(text []byte) error {
	from, to, found := strings.Cut(string(text), "..")
	if !found {
		to = from // a single day, or nothing
	}
	first, firstErr := parseDay(from)
	last, lastErr := parseDay(to)
	if firstErr != nil || lastErr != nil {
		return fmt.Errorf("days are %q, must be like 2020-01-01..2020-12-31", text)
	}
	*d = Days{From: first, To: last}
	return nil
}

func parseDay(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.DateOnly, text)
}

// String writes the form that UnmarshalText reads.
func (d Days) String() string {
	text := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.DateOnly)
	}
	if d.IsZero() {
		return ""
	}
	return text(d.From) + ".." + text(d.To)
}

// MarshalText writes the form that UnmarshalText reads.
func (d Days) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// IsZero reports whether the range is open at both ends.
func (d Days) IsZero() bool { return d.From.IsZero() && d.To.IsZero() }

// Holds reports whether t lies on a day of the range.
func (d Days) Holds(t time.Time) bool {
	day := dayOf(t)
	return (d.From.IsZero() || !day.Before(dayOf(d.From))) && (d.To.IsZero() || !day.After(dayOf(d.To)))
}

// dayOf is midnight UTC of the day of t.
func dayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// datePattern finds dates as producers write them into file names: 20240517,
// also with a time behind it, 2024-05-17, 2024_05_17, and the day of the year
// 2024138. Digits around it mean that it is some other number.
var datePattern = regexp.MustCompile(`(?:^|[^0-9])(?:(\d{4})([-_]?)(\d{2})([-_]?)(\d{2})(?:\d{2}|\d{4}|\d{6})?|(\d{4})(\d{3}))(?:[^0-9]|$)`)

// DayInName returns the day of a granule by its name: the first date in the
// last part of the path, else the one that its folders spell.
func DayInName(name string) (day time.Time, ok bool) {
	if day, ok := firstDate(path.Base(name)); ok {
		return day, true
	}
	return firstDate(strings.ReplaceAll(path.Dir(name), "/", "-"))
}

func firstDate(text string) (time.Time, bool) {
	for text != "" {
		at := datePattern.FindStringSubmatchIndex(text)
		if at == nil {
			return time.Time{}, false
		}
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return text[at[2*i]:at[2*i+1]]
		}
		if group(2) == group(4) {
			if day, ok := calendarDay(group(1)+group(6), group(3), group(5), group(7)); ok {
				return day, true
			}
		}
		text = text[at[0]+1:]
	}
	return time.Time{}, false
}

// calendarDay reads a year with a month and a day, or with a day of the year.
// Numbers outside the satellite age are not dates.
func calendarDay(year, month, day, yearDay string) (time.Time, bool) {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n } // digits, or empty
	y, m, d := number(year), number(month), number(day)
	if y < 1970 || y > 2100 {
		return time.Time{}, false
	}
	if yearDay != "" {
		t := time.Date(y, 1, number(yearDay), 0, 0, 0, 0, time.UTC)
		return t, t.Year() == y && number(yearDay) > 0
	}
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	return t, t.Month() == time.Month(m) && t.Day() == d
}

// day is the day of an object: by its name, else by when it was modified, else
// unknown.
func (o Object) day() (time.Time, bool) {
	if day, ok := DayInName(o.Name); ok {
		return day, true
	}
	return dayOf(o.ModTime), !o.ModTime.IsZero()
}

// RecentScope returns the scope of a listing that shows the days from through
// to of an archive with these prefixes.
func RecentScope(prefixes []string, from, to time.Time) Scope {
	return Scope{Prefixes: expand(prefixes, Days{From: from, To: to}, to), Since: dayOf(from)}
}

// expand returns the prefixes that templates make over days, each once. In a
// template {year}, {month}, {day} and {yearday} stand for the digits of a day.
// Where a template names days and the range has no beginning, the part before
// the first placeholder is the prefix.
func expand(templates []string, days Days, today time.Time) []string {
	var prefixes []string
	for _, template := range templates {
		first := strings.IndexByte(template, '{')
		switch {
		case first < 0:
			prefixes = append(prefixes, template)
			continue
		case days.From.IsZero():
			prefixes = append(prefixes, template[:first])
			continue
		}
		to := days.To
		if to.IsZero() || to.After(today) {
			to = today
		}
		for day := dayOf(days.From); !day.After(dayOf(to)); day = day.AddDate(0, 0, 1) {
			prefix := strings.NewReplacer("{year}", day.Format("2006"), "{month}", day.Format("01"),
				"{day}", day.Format("02"), "{yearday}", day.Format("002")).Replace(template)
			prefixes = append(prefixes, prefix)
		}
	}
	slices.Sort(prefixes)
	return slices.Compact(prefixes)
}
