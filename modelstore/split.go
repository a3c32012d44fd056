package modelstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Split lists the days of a version by the one use that is made of each, as
// 2006-01-02. A version of a Lacuna before there were calendars has counts only:
// which days it learned from is not known.
type Split struct {
	Rule      string `json:"rule,omitempty"` // in words or as a setting
	TrainDays int    `json:"train_days,omitempty"`
	CheckDays int    `json:"check_days,omitempty"` // days that choose
	TestDays  int    `json:"test_days,omitempty"`  // days that judge

	// The days of all seas together.
	Learn  []string `json:"learn,omitempty"`  // weights, mean map and constants come from them
	Choose []string `json:"choose,omitempty"` // ended trainings and calibrated
	Judge  []string `json:"judge,omitempty"`  // scored the version, and nothing else

	Seas map[string]Sea `json:"seas,omitempty"` // each sea, by a name made of its place
	// Seen are days that the weights owe something to and that are not among
	// those of Seas: days of ancestors, and of other series learned beside.
	Seen []Seen `json:"seen,omitempty"`
}

// Sea is the days of one sea.
type Sea struct {
	Variable string   `json:"variable,omitempty"`
	Box      Box      `json:"box"`
	Learn    []string `json:"learn,omitempty"`
	Choose   []string `json:"choose,omitempty"`
	Judge    []string `json:"judge,omitempty"`
	// Calendar is the calendar of the dataset at that time, as the program that
	// trains wrote it.
	Calendar json.RawMessage `json:"calendar,omitempty"`
}

// Seen are days of a place that were learned from or chosen by.
type Seen struct {
	Variable string   `json:"variable,omitempty"`
	Box      *Box     `json:"box,omitempty"` // nil: the place is not known
	Learn    []string `json:"learn,omitempty"`
	Choose   []string `json:"choose,omitempty"`
	Until    string   `json:"until,omitempty"` // which days up to this one is not known; empty: Learn and Choose are all
}

// Box is the extent of a grid in degrees.
type Box struct {
	South float64 `json:"south"`
	North float64 `json:"north"`
	West  float64 `json:"west"`
	East  float64 `json:"east"`
}

// String returns the extent in words.
func (b Box) String() string {
	return fmt.Sprintf("%.5g..%.5g°N, %.5g..%.5g°E", b.South, b.North, b.West, b.East)
}

// Known reports whether the split says which days were learned from.
func (s Split) Known() bool { return len(s.Seas) > 0 }

// lists calls f with every list of days.
func (s Split) lists(f func(days []string)) {
	for _, days := range [][]string{s.Learn, s.Choose, s.Judge} {
		f(days)
	}
	for _, sea := range s.Seas {
		for _, days := range [][]string{sea.Learn, sea.Choose, sea.Judge} {
			f(days)
		}
	}
	for _, seen := range s.Seen {
		f(seen.Learn)
		f(seen.Choose)
		if seen.Until != "" {
			f([]string{seen.Until})
		}
	}
}

// validate reports a day that is no date: a card may come from elsewhere.
func (s Split) validate() error {
	var err error
	s.lists(func(days []string) {
		for _, day := range days {
			if _, bad := time.Parse(time.DateOnly, day); bad != nil && err == nil {
				err = fmt.Errorf("split: %q is not a date as 2006-01-02", day)
			}
		}
	})
	for name, sea := range s.Seas {
		if !finite(sea.Box.South, sea.Box.North, sea.Box.West, sea.Box.East) {
			return fmt.Errorf("split: the place of %s is not finite", name)
		}
	}
	return err
}

// counted returns s with lists of days as their number and ends, for a
// comparison: which days came in says less than how many.
func (s Split) counted() map[string]string {
	out := map[string]string{}
	add := func(path string, days []string) {
		if len(days) > 0 {
			out[path] = fmt.Sprintf("%d days from %s to %s", len(days), slices.Min(days), slices.Max(days))
		}
	}
	add("split.learn", s.Learn)
	add("split.choose", s.Choose)
	add("split.judge", s.Judge)
	if len(s.Seas) > 1 {
		for _, name := range slices.Sorted(maps.Keys(s.Seas)) {
			sea, path := s.Seas[name], "split.seas."+name
			add(path+".learn", sea.Learn)
			add(path+".choose", sea.Choose)
			add(path+".judge", sea.Judge)
		}
	}
	return out
}

// text describes the split in one line.
func (s Split) text() string {
	parts := []string{
		fmt.Sprintf("%d days to learn from, %d to choose by, %d to judge on", s.TrainDays, s.CheckDays, s.TestDays),
	}
	if n := len(s.Seas); n > 1 {
		parts[0] += fmt.Sprintf(", of %d seas", n)
	}
	switch seen, until := s.inherited(); {
	case until != "":
		parts = append(parts, "which days up to "+until+" its ancestors learned from is not known")
	case seen > 0:
		parts = append(parts, fmt.Sprintf("%d days were learned from by ancestors or beside", seen))
	}
	if !s.Known() {
		parts = append(parts, "which days is not known: the version is older than their lists")
	}
	if s.Rule != "" {
		parts = append(parts, s.Rule)
	}
	return strings.Join(parts, "; ")
}

// inherited returns the number of days that were seen elsewhere, and the last
// date up to which they are not known.
func (s Split) inherited() (days int, until string) {
	for _, seen := range s.Seen {
		days, until = days+len(seen.Learn), max(until, seen.Until)
	}
	return days, until
}
