package samples

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"lacuna/pipeline/field"
)

// SplitConfig holds the settings of a split.
type SplitConfig struct {
	HeldOut float64 `json:"held_out" yaml:"held_out"` // held-out share of each block
	GapDays int     `json:"gap_days" yaml:"gap_days"` // days between training and held-out days that belong to neither; two maps of a series coarser than daily
	Blocks  int     `json:"blocks" yaml:"blocks"`     // held-out periods in each uninterrupted stretch of days
}

// DefaultSplit holds out the last quarter of each half of an uninterrupted
// stretch, so that both sides see more than one season. Twelve days is longer
// than the ten that a delayed-mode analysis looks ahead.
func DefaultSplit() SplitConfig {
	return SplitConfig{HeldOut: 0.25, GapDays: 12, Blocks: 2}
}

// Validate reports everything wrong with c.
func (c SplitConfig) Validate() error {
	var errs []error
	if c.HeldOut <= 0 || c.HeldOut >= 1 {
		errs = append(errs, fmt.Errorf("held_out is %g, must lie between 0 and 1", c.HeldOut))
	}
	if c.GapDays < 0 {
		errs = append(errs, fmt.Errorf("gap_days is %d, must not be negative", c.GapDays))
	}
	if c.Blocks < 1 {
		errs = append(errs, fmt.Errorf("blocks is %d, must be at least 1", c.Blocks))
	}
	return errors.Join(errs...)
}

// Train is the part of a series that may be learned from. It holds no other
// day: nothing that reads it can see the held-out side.
type Train struct{ *archive }

// HeldOut is the part of a series that methods are judged on. Around its days
// every other day is visible, as it is in operation; but only its own days are
// targets.
type HeldOut struct {
	*archive
	targets []int // days of the archive that are held out, in order
}

// Split cuts s by time.
func (s Series) Split(cfg SplitConfig) (Train, HeldOut, error) { return Split([]Series{s}, cfg) }

// Split cuts several series of one variable by time, each by itself and with a
// scaling of its own, and puts them side by side: training uses all of them, and
// days are neighbours of days of the same series only.
func Split(all []Series, cfg SplitConfig) (Train, HeldOut, error) {
	train, held := Train{&archive{}}, HeldOut{archive: &archive{}}
	if err := cfg.Validate(); err != nil {
		return train, held, err
	}
	if len(all) == 0 {
		return train, held, errors.New("no series to split")
	}
	for _, s := range all {
		if s.Transform != all[0].Transform {
			return train, held, fmt.Errorf("%v is taken as %+v and %v as %+v: series that are learned together must be of one variable",
				all[0].Grid, all[0].Transform, s.Grid, s.Transform)
		}
		if err := s.split(cfg, train, &held); err != nil {
			if len(all) > 1 {
				err = fmt.Errorf("%v: %w", s.Grid, err)
			}
			return train, held, err
		}
	}
	return train, held, nil
}

// split adds the two sides of s to train and held.
func (s Series) split(cfg SplitConfig, train Train, held *HeldOut) error {
	var learned []Day
	var targets []int
	for i, r := range cfg.roles(s.Days) {
		switch r {
		case forTraining:
			learned = append(learned, s.Days[i])
		case forJudging:
			targets = append(targets, held.Days()+i)
		}
	}
	if len(learned) < 2 || len(targets) < 2 {
		return fmt.Errorf("%d days leave %d for training and %d held out with a gap of %d days and %d blocks: give more days, or a smaller gap",
			len(s.Days), len(learned), len(targets), cfg.GapDays, cfg.Blocks)
	}
	scaling, err := scalingOf(s, learned)
	if err != nil {
		return err
	}
	train.add(s, learned, scaling)
	held.add(s, s.Days, scaling)
	held.targets = append(held.targets, targets...)
	return nil
}

// Beside returns t with the training days of other series after its own, for
// training only: none of them is judged. They may be of another variable,
// because anomalies in units of their spread are alike. The days of t keep their
// numbers.
func (t Train) Beside(others []Series, cfg SplitConfig) (Train, error) {
	all := *t.archive
	all.places, all.placeOf = slices.Clip(all.places), slices.Clip(all.placeOf)
	all.days, all.numbers = slices.Clip(all.days), slices.Clip(all.numbers)
	unused := HeldOut{archive: &archive{}}
	for _, s := range others {
		if err := s.split(cfg, Train{&all}, &unused); err != nil {
			return Train{}, fmt.Errorf("%v: %w", s.Grid, err)
		}
	}
	all.transform = t.transform
	return Train{&all}, nil
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

type role byte

const (
	forNothing role = iota
	forTraining
	forJudging
)

// roles gives each day its side. Stretches of days without a hole longer than
// the gap are cut into blocks; a block is training, gap, held out, and the
// next one begins with a gap.
func (c SplitConfig) roles(days []Day) []role {
	c = c.forStep(days)
	out := make([]role, len(days))
	for first := 0; first < len(days); {
		last := first
		for last+1 < len(days) && dayNumber(days[last+1].Time)-dayNumber(days[last].Time) <= int64(max(c.GapDays, 1)) {
			last++
		}
		start, end := dayNumber(days[first].Time), dayNumber(days[last].Time)+1
		blocks := int64(c.blocks(int(end - start)))
		for i := first; i <= last; i++ {
			at := dayNumber(days[i].Time) - start
			block := at * blocks / (end - start)
			from := (block*(end-start) + blocks - 1) / blocks
			length := ((block+1)*(end-start)+blocks-1)/blocks - from
			out[i] = c.roleIn(int(at-from), int(length), block > 0)
		}
		first = last + 1
	}
	return out
}

// forStep returns c for the step of a series. A gap of twelve days would lie
// between no two maps of a monthly one, and end its stretch at every map: of a
// series coarser than a day two maps belong to neither side, and one may be
// missing.
func (c SplitConfig) forStep(days []Day) SplitConfig {
	times := make([]time.Time, len(days))
	for i, d := range days {
		times[i] = d.Time
	}
	if step := field.Step(times); c.GapDays > 0 && step > 36*time.Hour {
		c.GapDays = max(c.GapDays, int(math.Ceil(2.5*step.Hours()/24)))
	}
	return c
}

// blocks returns the number of blocks for a stretch of n days: fewer than
// requested if gaps would otherwise take most of it.
func (c SplitConfig) blocks(n int) int {
	blocks := c.Blocks
	for blocks > 1 && n/blocks < 5*c.GapDays {
		blocks--
	}
	return blocks
}

func (c SplitConfig) roleIn(at, length int, gapFirst bool) role {
	held := max(int(c.HeldOut*float64(length)+0.5), 1)
	switch {
	case at >= length-held:
		return forJudging
	case at >= length-held-c.GapDays, gapFirst && at < c.GapDays:
		return forNothing
	default:
		return forTraining
	}
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
