package ops

import (
	"fmt"
	"strconv"
	"time"
)

// calendar is the layout of the days of a dataset: a year is a row of months.
type calendar struct {
	Dataset       string
	Years         []calendarYear // newest first
	Older, Newer  int            // year of the next page; 0: none
	First, Last   time.Time
	Counts        []stateDays // days of the shown years, by state
	KnownDays     int
	CompletedDays int
}

type calendarYear struct {
	Year   int
	Months []calendarMonth
}

type calendarMonth struct {
	Name  string // January
	Lead  int    // empty cells before the first day: the week begins on Monday
	Days  []calendarDay
	Known bool // the month has a day with a state
}

type calendarDay struct {
	Number int
	State  DayState // empty: before the first or after the last day
	Path   string
	Label  string // the state in words, for those who do not see the colour
	Latest bool   // the last day with a state
}

// stateDays is the number of days in a state.
type stateDays struct {
	State DayState
	Days  int
}

// calendarYears is the number of years on a page: more would be slow to load
// and hardly read.
const calendarYears = 4

// newCalendar lays out the years up to last; days before first have no state.
func newCalendar(dataset string, first, last time.Time, days []Day) calendar {
	c := calendar{Dataset: dataset, First: first, Last: last}
	states := map[time.Time]DayState{}
	for _, d := range days {
		states[d.Date.UTC().Truncate(day)] = d.State
	}
	counts := map[DayState]int{}
	for year := last.Year(); year >= first.Year() && year > last.Year()-calendarYears; year-- {
		row := calendarYear{Year: year}
		for month := time.January; month <= time.December; month++ {
			row.Months = append(row.Months, c.month(year, month, states, counts))
		}
		c.Years = append(c.Years, row)
	}
	for _, state := range dayStates() {
		if counts[state] > 0 {
			c.Counts = append(c.Counts, stateDays{State: state, Days: counts[state]})
		}
		c.KnownDays += counts[state]
	}
	c.CompletedDays = counts[DayNearRealTime] + counts[DayDelayed] + counts[DayCloudedOut] + counts[DayNoGranule]
	return c
}

// month lays out one month and counts its days.
func (c *calendar) month(year int, month time.Month, states map[time.Time]DayState, counts map[DayState]int) calendarMonth {
	begin := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	m := calendarMonth{Name: month.String(), Lead: (int(begin.Weekday()) + 6) % 7}
	for date := begin; date.Month() == month; date = date.AddDate(0, 0, 1) {
		one := calendarDay{Number: date.Day()}
		if !date.Before(c.First.Truncate(day)) && !date.After(c.Last) {
			one.State = states[date]
			if one.State == "" {
				one.State = DayMissing
			}
			counts[one.State]++
			m.Known = true
			one.Path = dayPath(c.Dataset, date)
			one.Label = date.Format("2 January 2006") + ": " + one.State.words()
			one.Latest = date.Equal(c.Last.Truncate(day))
		}
		m.Days = append(m.Days, one)
	}
	return m
}

// dayStates returns the states in the order in which they are explained.
func dayStates() []DayState {
	return []DayState{DayDelayed, DayNearRealTime, DayCloudedOut, DayNoGranule, DayWaiting, DayQuarantined, DayMissing}
}

// words explains a state.
func (s DayState) words() string {
	switch s {
	case DayMissing:
		return "missing, nothing was delivered"
	case DayWaiting:
		return "delivered, waiting to be filled"
	case DayNearRealTime:
		return "filled, near-real-time"
	case DayDelayed:
		return "filled, delayed mode"
	case DayCloudedOut:
		return "clouded out, filled from other days"
	case DayNoGranule:
		return "no granule, filled from other days"
	case DayQuarantined:
		return "set aside, needs a look"
	}
	return "nothing is known"
}

// strip is the row of the last days of a dataset on the overview.
type strip struct {
	Cells []stripCell
	Label string
}

type stripCell struct {
	X     int
	State DayState
}

// stripDays is the number of days in a strip.
const stripDays = 45

// newStrip lays out the days up to last.
func newStrip(first, last time.Time, days []Day) *strip {
	if last.IsZero() {
		return nil
	}
	states := map[time.Time]DayState{}
	for _, d := range days {
		states[d.Date.UTC().Truncate(day)] = d.State
	}
	s := &strip{}
	counts := map[DayState]int{}
	begin := last.Truncate(day).AddDate(0, 0, 1-stripDays)
	for i := range stripDays {
		date := begin.AddDate(0, 0, i)
		if date.Before(first.Truncate(day)) {
			continue
		}
		state := states[date]
		if state == "" {
			state = DayMissing
		}
		counts[state]++
		s.Cells = append(s.Cells, stripCell{X: i * stripStep, State: state})
	}
	s.Label = fmt.Sprintf("the %d days to %s:", len(s.Cells), last.Format(time.DateOnly))
	for _, state := range dayStates() {
		if counts[state] > 0 {
			s.Label += " " + strconv.Itoa(counts[state]) + " " + string(state) + ","
		}
	}
	s.Label = s.Label[:len(s.Label)-1]
	return s
}

// stripStep is the width of a day of a strip, in units of its drawing.
const stripStep = 5
