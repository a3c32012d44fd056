package ingest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"lacuna/internal/cftime"
	"lacuna/pipeline/ingest/ncfile"
)

// dateWithout finds the time of a file that has no time variable: in its
// global attributes, else in its name. The note says where.
func dateWithout(h *header, name string) (t time.Time, note string, err error) {
	for _, attr := range []string{"time_coverage_start", "start_date", "start_time", "period_start_day"} {
		text := ncfile.TextOf(h.Attrs, attr)
		if text == "" {
			continue
		}
		if t, err := cftime.ParseDate(text, true); err == nil && plausible(t) {
			return t, fmt.Sprintf("the file has no time variable: its time is taken from the attribute %s", attr), nil
		}
	}
	if t, ok := dateInName(name); ok {
		return t, "the file has no time variable: its time is taken from the file name", nil
	}
	return time.Time{}, "", bad("it has no time: no time variable, no time_coverage_start, no date in its name",
		"give the name a date as YYYYMMDD")
}

// plausible reports whether a satellite may have seen the sea at t. It keeps
// other numbers in attributes and names from being taken for dates, and a
// damaged origin of a time variable from putting a map where no window of days
// will ever find it.
func plausible(t time.Time) bool { return t.Year() >= 1950 && t.Year() <= 2100 }

var (
	isoInName  = regexp.MustCompile(`(?:^|\D)(\d{4})-(\d{2})-(\d{2})(?:\D|$)`)
	daysInName = regexp.MustCompile(`(?:^|\D)(\d{4})(\d{2})(\d{2})(?:[Tt]?(\d{2})(\d{2})(\d{2})?)?(?:\D|$)`)
	yearDay    = regexp.MustCompile(`[A-Za-z](\d{4})(\d{3})(?:\D|$)`)
)

// dateInName returns the first date in a file name: YYYYMMDD with an optional
// time, YYYY-MM-DD, or a letter and the year with the day of the year, as in
// A2018213.
func dateInName(name string) (time.Time, bool) {
	for _, form := range []*regexp.Regexp{daysInName, isoInName} {
		// Neighbouring dates share the character between them, so each search
		// begins on the last character of the match before it.
		for rest := name; ; {
			m := form.FindStringSubmatchIndex(rest)
			if m == nil {
				break
			}
			parts := make([]int, 7)
			for i := 1; 2*i < len(m) && m[2*i] >= 0; i++ {
				parts[i], _ = strconv.Atoi(rest[m[2*i]:m[2*i+1]])
			}
			if t, ok := dateOf(parts); ok {
				return t, true
			}
			rest = rest[max(m[1]-1, m[0]+1):]
		}
	}
	if m := yearDay.FindStringSubmatch(name); m != nil {
		y, _ := strconv.Atoi(m[1])
		day, _ := strconv.Atoi(strings.TrimLeft(m[2], "0"))
		t := time.Date(y, 1, day, 0, 0, 0, 0, time.UTC)
		return t, plausible(t) && t.Year() == y && day > 0
	}
	return time.Time{}, false
}

// dateOf makes a date of year, month, day, hour, minute and second at 1..6.
func dateOf(parts []int) (time.Time, bool) {
	t := time.Date(parts[1], time.Month(parts[2]), parts[3], parts[4], parts[5], parts[6], 0, time.UTC)
	ok := plausible(t) && int(t.Month()) == parts[2] && t.Day() == parts[3]
	return t, ok
}
