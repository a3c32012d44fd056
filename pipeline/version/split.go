package version

import (
	"fmt"
	"strings"

	"lacuna/pipeline/samples"
)

// split is the use of the days of a request.
type split struct {
	samples.Sides
	calendars []samples.Calendar
	beside    []samples.Assignment
}

// calendars returns those of the series of q, extended to their days.
func (q Request) calendars() []samples.Calendar {
	all := make([]samples.Calendar, len(q.Series))
	for i, series := range q.Series {
		var known samples.Calendar
		if i < len(q.Calendars) {
			known = q.Calendars[i]
		}
		all[i] = samples.Extend(known, series.Days, q.Settings.Split)
	}
	return all
}

// split puts the days of q on their sides.
func (q Request) split() (split, error) {
	s := split{calendars: q.calendars()}
	var err error
	s.Sides, err = samples.Assign(q.Series, s.calendars, q.Seen)
	return s, err
}

// describe says how many days have which use, and how many were left out.
func (s split) describe() string {
	var learn, choose, judge, seen int
	for _, a := range s.Days {
		learn, choose, judge, seen = learn+len(a.Learn), choose+len(a.Choose), judge+len(a.Judge), seen+len(a.Seen)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d days to learn from, %d to choose by, %d to judge on", learn, choose, judge)
	if seen > 0 {
		fmt.Fprintf(&b, ", and %d that are not used because the version to begin with may have learned from them", seen)
	}
	return b.String()
}
