package samples

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Train is the part of a series that may be learned from. It holds no other
// day: nothing that reads it can see a day that chooses or judges.
type Train struct{ *archive }

// HeldOut is a part of a series that is not learned from: the days that choose,
// or those that judge. Only its own days are targets. Around those that judge
// every other day is visible, as it is in operation; around those that choose
// no day that judges is.
type HeldOut struct {
	*archive
	targets []int // days of the archive that are held out, in order
}

// Sides are the three sides of series.
type Sides struct {
	Train         Train
	Choose, Judge HeldOut
	Days          []Assignment // of each series
}

// Assignment is the use that is made of the days of one series.
type Assignment struct {
	Learn, Choose, Judge []Date
	Seen                 []Date // days without a use, because an ancestor has seen them
}

// Split cuts s by time, see the function Split.
func (s Series) Split(cfg SplitConfig) (Train, HeldOut, error) { return Split([]Series{s}, cfg) }

// Split cuts several series of one variable by time, each by itself and with a
// scaling of its own, and puts them side by side: training uses all of them, and
// days are neighbours of days of the same series only. It returns the days to
// learn from and those that judge, by the calendar that cfg makes of them, for
// methods that neither have ancestors nor choose.
func Split(all []Series, cfg SplitConfig) (Train, HeldOut, error) {
	if err := cfg.Validate(); err != nil {
		return Train{}, HeldOut{}, err
	}
	calendars := make([]Calendar, len(all))
	for i, s := range all {
		calendars[i] = Extend(Calendar{}, s.Days, cfg)
	}
	sides, err := Assign(all, calendars, nil)
	return sides.Train, sides.Judge, err
}

// Assign cuts several series as Split does, each by its own calendar, which
// must have been extended to its days. Days that an ancestor learned from neither
// choose nor judge, those that chose it do not judge, and neither is learned from
// instead.
func Assign(all []Series, calendars []Calendar, seen []Seen) (Sides, error) {
	sides := newSides(&archive{})
	uses, err := Uses(all, calendars, seen)
	if err != nil {
		return sides, err
	}
	for i, s := range all {
		if err := sides.add(s, calendars[i], uses[i]); err != nil {
			return sides, fmt.Errorf("%v: %w", s.Grid, err)
		}
	}
	return sides, nil
}

// Uses returns the use that Assign makes of the days of each series, or why they
// cannot be trained and judged on.
func Uses(all []Series, calendars []Calendar, seen []Seen) ([]Assignment, error) {
	if len(all) == 0 {
		return nil, errors.New("no series to split")
	}
	uses := make([]Assignment, len(all))
	var sum Assignment
	days := 0
	for i, s := range all {
		if s.Transform != all[0].Transform {
			return nil, fmt.Errorf("%v is taken as %+v and %v as %+v: series that are learned together must be of one variable",
				all[0].Grid, all[0].Transform, s.Grid, s.Transform)
		}
		uses[i] = s.uses(calendars[i], seen)
		if n := len(uses[i].Learn); n < 2 && len(all) > 1 {
			return nil, fmt.Errorf("%v: %d days leave %d to learn from: give more days, or leave the series out", s.Grid, len(s.Days), n)
		}
		days += len(s.Days)
		sum.Learn, sum.Judge, sum.Seen = append(sum.Learn, uses[i].Learn...), append(sum.Judge, uses[i].Judge...), append(sum.Seen, uses[i].Seen...)
	}
	switch {
	case len(sum.Judge) < 2 && len(sum.Seen) > 0:
		return nil, fmt.Errorf("%w: %d days are left to judge on, and %d others may be known to it; wait for newer days, or train without it",
			ErrAllSeen, len(sum.Judge), len(sum.Seen))
	case len(sum.Learn) < 2 || len(sum.Judge) < 2:
		return nil, fmt.Errorf("%d days leave %d to learn from and %d to judge on with a gap of %d days: give more days, or a smaller gap",
			days, len(sum.Learn), len(sum.Judge), calendars[0].GapDays)
	}
	return uses, nil
}

// ErrAllSeen marks days of which none is left to judge on, because an ancestor
// has learned from them.
var ErrAllSeen = errors.New("no day is left that the version to begin with has not learned from")

// uses returns the use of the days of s.
func (s Series) uses(c Calendar, seen []Seen) Assignment {
	var a Assignment
	for _, d := range s.Days {
		date := DateOf(d.Time)
		switch role := c.Role(date); {
		case role == Nothing:
		case role == Learn:
			a.Learn = append(a.Learn, date)
		case barred(seen, s.Grid, date, role):
			a.Seen = append(a.Seen, date)
		case role == Choose:
			a.Choose = append(a.Choose, date)
		default:
			a.Judge = append(a.Judge, date)
		}
	}
	return a
}

// newSides returns sides without days, of which train may have some.
func newSides(train *archive) Sides {
	return Sides{Train: Train{train}, Choose: HeldOut{archive: &archive{}}, Judge: HeldOut{archive: &archive{}}}
}

// add puts the days of s on their sides.
func (sides *Sides) add(s Series, c Calendar, a Assignment) error {
	left := map[Date]bool{}
	for _, date := range a.Seen {
		left[date] = true
	}
	var learned, unjudged []Day
	var choose, judge []int // indices of targets in unjudged and in s.Days
	for i, d := range s.Days {
		date := DateOf(d.Time)
		role := c.Role(date)
		if role != Judge {
			unjudged = append(unjudged, d)
		}
		switch {
		case role == Learn:
			learned = append(learned, d)
		case left[date]:
		case role == Choose:
			choose = append(choose, len(unjudged)-1)
		case role == Judge:
			judge = append(judge, i)
		}
	}
	scaling, err := scalingOf(s, learned)
	if err != nil {
		return err
	}
	sides.Train.add(s, learned, scaling)
	sides.Choose.addTargets(s, unjudged, choose, scaling)
	sides.Judge.addTargets(s, s.Days, judge, scaling)
	sides.Days = append(sides.Days, a)
	return nil
}

// addTargets appends days of s as a place of their own, of which some are
// targets.
func (h *HeldOut) addTargets(s Series, days []Day, targets []int, scaling Scaling) {
	for _, i := range targets {
		h.targets = append(h.targets, h.Days()+i)
	}
	h.add(s, days, scaling)
}

// Undrifted returns h without what covariates explain of its days.
func (h HeldOut) Undrifted() HeldOut {
	plain := *h.archive
	plain.days = slices.Clone(plain.days)
	for i := range plain.days {
		plain.days[i].Drift = nil
	}
	h.archive = &plain
	return h
}

// Targets returns the number of days that are held out.
func (h HeldOut) Targets() int { return len(h.targets) }

// Beside returns t with the training days of other series after its own, for
// training only: none of them is judged. They may be of another variable,
// because anomalies in units of their spread are alike. The days of t keep their
// numbers.
func (t Train) Beside(others []Series, cfg SplitConfig) (Train, []Assignment, error) {
	all := *t.archive
	all.places, all.placeOf = slices.Clip(all.places), slices.Clip(all.placeOf)
	all.days, all.numbers = slices.Clip(all.days), slices.Clip(all.numbers)
	sides := newSides(&all)
	for _, s := range others {
		c := Extend(Calendar{}, s.Days, cfg)
		if err := sides.add(s, c, s.uses(c, nil)); err != nil {
			return Train{}, nil, fmt.Errorf("%v: %w", s.Grid, err)
		}
	}
	all.transform = t.transform
	return Train{&all}, sides.Days, nil
}

// Whole returns all of s for training, with the scaling of all days, for a model
// that needs no score.
func (s Series) Whole() (Train, error) {
	scaling, err := scalingOf(s, s.Days)
	if err != nil {
		return Train{}, err
	}
	train := Train{&archive{}}
	train.add(s, s.Days, scaling)
	return train, nil
}

// Since returns s with the days from a time on as targets, which are new to
// every version made before. The scaling is that of the days before.
func (s Series) Since(t time.Time) (HeldOut, error) {
	first := slices.IndexFunc(s.Days, func(d Day) bool { return !d.Time.Before(t) })
	if first < 0 || len(s.Days)-first < 2 {
		return HeldOut{}, fmt.Errorf("fewer than two days since %s: wait for more", t.Format(time.DateOnly))
	}
	before := s
	before.Days = s.Days[:first]
	scaling, err := LearnScaling(before)
	if err != nil {
		return HeldOut{}, fmt.Errorf("days before %s: %w", t.Format(time.DateOnly), err)
	}
	held := HeldOut{archive: &archive{}}
	held.add(s, s.Days, scaling)
	for day := first; day < len(s.Days); day++ {
		held.targets = append(held.targets, day)
	}
	return held, nil
}
