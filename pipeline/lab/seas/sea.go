package seas

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lacuna/pipeline/field"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
)

// A sea is a series with its days assigned.
type sea struct {
	name     string
	series   samples.Series
	calendar samples.Calendar
	judge    samples.HeldOut // judge days; scaled by all days that neither judge nor lie next to those that do
	choose   samples.HeldOut // choose days, scaled by the learn days; none where it does not teach
	place    *samples.Place  // its place among the learn days of all seas; nil: it is judged only
	refs     []samples.Ref   // its patches to learn from
	// constants of optimal interpolation on this sea; nil: the defaults.
	constants *parts.Constants
}

// teaches reports whether the sea has days to learn from.
func (s *sea) teaches() bool { return s.place != nil }

// Limits of a series.
const (
	shortDays = 40 // with fewer the calendar of a long series leaves next to nothing to judge
	leastDays = 3  // learn days; with fewer there is nothing to learn
)

// calendarOf returns the calendar of a series. The later half of a short one is
// judged, for it has too few days to judge otherwise, and the two days before, or
// a quarter of the earlier half, choose.
func calendarOf(days []samples.Day) samples.Calendar {
	if len(days) >= shortDays {
		return samples.Extend(samples.Calendar{}, days, samples.DefaultSplit())
	}
	gap := len(days) / 12 // what it can afford
	judge := len(days) / 2
	end := judge - gap
	choose := end - max(end/4, 2)
	c := samples.Calendar{GapDays: gap, Cycle: []samples.Share{{Role: samples.Judge, Days: 1}}}
	add := func(role samples.Role, first, end int) {
		if first < end {
			c.Intervals = append(c.Intervals, samples.Interval{Role: role, From: samples.DateOf(days[first].Time), To: samples.DateOf(days[end-1].Time)})
		}
	}
	if choose < leastDays { // nothing to choose for
		choose = end
	}
	add(samples.Learn, 0, choose)
	add(samples.Choose, choose, end)
	add(samples.Judge, judge, len(days))
	return c
}

// unjudged returns a calendar without a day that chooses: those are learned from.
func unjudged(c samples.Calendar) samples.Calendar {
	c.Intervals = slices.Clone(c.Intervals)
	for i := range c.Intervals {
		if c.Intervals[i].Role == samples.Choose {
			c.Intervals[i].Role = samples.Learn
		}
	}
	return c
}

// readSeas reads the packs of a folder, in the order of their names.
func readSeas(folder string) ([]*sea, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.pack"))
	if err != nil {
		return nil, err
	}
	if len(files) < 2 {
		return nil, fmt.Errorf("%d packs in %s: two are needed, one to learn from and one to judge", len(files), folder)
	}
	var out []*sea
	for _, path := range files {
		s, err := readSea(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		out = append(out, s)
	}
	return out, nil
}

func readSea(path string) (*sea, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read-only: a failed close loses nothing
	series, err := pack.Read(f)
	if err != nil {
		return nil, err
	}
	return newSea(strings.TrimSuffix(filepath.Base(path), ".pack"), series)
}

// newSea assigns the days of a series.
func newSea(name string, series samples.Series) (*sea, error) {
	s := &sea{name: name, series: series, calendar: calendarOf(series.Days)}
	sides, err := samples.Assign([]samples.Series{series}, []samples.Calendar{unjudged(s.calendar)}, nil)
	s.judge = sides.Judge
	return s, err
}

// learnDays returns how many days of a sea are learned from.
func (s *sea) learnDays() int {
	n := 0
	for _, d := range s.series.Days {
		if s.calendar.Role(samples.DateOf(d.Time)) == samples.Learn {
			n++
		}
	}
	return n
}

// together puts the learn days of all seas that teach side by side, each in its
// own scaling, and gives each its place and patches there.
func together(all []*sea, side int) (samples.Train, error) {
	var series []samples.Series
	var calendars []samples.Calendar
	var teachers []*sea
	for _, s := range all {
		if s.learnDays() < leastDays {
			continue
		}
		sides, err := samples.Assign([]samples.Series{s.series}, []samples.Calendar{s.calendar}, nil)
		if err != nil {
			return samples.Train{}, fmt.Errorf("%s: %w", s.name, err)
		}
		s.choose = sides.Choose
		own := s.series
		own.Transform = field.Transform{} // anomalies in units of their spread are alike, whatever they are of
		series, calendars, teachers = append(series, own), append(calendars, s.calendar), append(teachers, s)
	}
	if len(teachers) == 0 {
		return samples.Train{}, fmt.Errorf("none of the %d seas has %d days to learn from", len(all), leastDays)
	}
	sides, err := samples.Assign(series, calendars, nil)
	if err != nil {
		return samples.Train{}, err
	}
	bySea := map[*samples.Place][]samples.Ref{}
	for _, r := range sides.Train.Refs(side, max(side/2, 1), partition.MinObservedCells) {
		p := sides.Train.Place(r.Day)
		bySea[p] = append(bySea[p], r)
	}
	for i, s := range teachers {
		s.place = sides.Train.Places()[i]
		if s.refs = bySea[s.place]; len(s.refs) == 0 {
			s.place = nil // no window of it has observations enough
		}
	}
	return sides.Train, nil
}
