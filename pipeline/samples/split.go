package samples

import (
	"errors"
	"fmt"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// SplitConfig says how a series is cut in two.
type SplitConfig struct {
	HeldOut float64 `json:"held_out" yaml:"held_out"` // share of each block that is kept from training
	GapDays int     `json:"gap_days" yaml:"gap_days"` // days between training and held-out days that belong to neither
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
	targets []int // days of the archive that are held out
}

// Split cuts s by time.
func (s Series) Split(cfg SplitConfig) (Train, HeldOut, error) {
	if err := cfg.Validate(); err != nil {
		return Train{}, HeldOut{}, err
	}
	roles := cfg.roles(s.Days)
	var train []Day
	var targets []int
	for i, r := range roles {
		switch r {
		case forTraining:
			train = append(train, s.Days[i])
		case forJudging:
			targets = append(targets, i)
		}
	}
	if len(train) < 2 || len(targets) < 2 {
		return Train{}, HeldOut{}, fmt.Errorf("%d days leave %d for training and %d held out with a gap of %d days and %d blocks: give more days, or a smaller gap",
			len(s.Days), len(train), len(targets), cfg.GapDays, cfg.Blocks)
	}
	scaling, err := scalingOf(s, train)
	if err != nil {
		return Train{}, HeldOut{}, err
	}
	return Train{newArchive(s, train, scaling)}, HeldOut{newArchive(s, s.Days, scaling), targets}, nil
}

// Whole returns all of s for training, for a model whose score does not have
// to be known, with the scaling of all days.
func (s Series) Whole() (Train, error) {
	scaling, err := scalingOf(s, s.Days)
	if err != nil {
		return Train{}, err
	}
	return Train{newArchive(s, s.Days, scaling)}, nil
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

// blocks returns how many blocks a stretch of n days is cut into: fewer than
// asked for where gaps would otherwise eat most of it.
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

// Scaling maps transformed values to normalised anomalies and back.
type Scaling struct {
	Mean []float32 // per cell, in the space of the transform: the smooth mean map
	Std  float64   // of all training values about their common mean
}

func scalingOf(s Series, train []Day) (Scaling, error) {
	frames := make([]classical.Frame, len(train))
	values := make([][]float32, len(train))
	for i, d := range train {
		frames[i] = classical.Frame{Time: d.Time, Values: d.Values}
		values[i] = d.Values
	}
	norm, err := field.NormalisationOf(field.Summarise(values...))
	if err != nil {
		return Scaling{}, fmt.Errorf("scale the training days: %w", err)
	}
	mean := classical.Climatology(classical.Series{Grid: s.Grid, Sea: s.Sea, Frames: frames}, 0).Mean
	for i, m := range mean {
		if m != m { // sea that no training day reaches: the common mean
			mean[i] = float32(norm.Mean)
		}
	}
	return Scaling{Mean: mean, Std: norm.Std}, nil
}

// Forward returns the normalised anomaly of a transformed value in a cell.
func (s Scaling) Forward(v float32, cell int) float32 {
	return float32((float64(v) - float64(s.Mean[cell])) / s.Std)
}

// Inverse returns the transformed value of a normalised anomaly in a cell.
func (s Scaling) Inverse(a float32, cell int) float32 {
	return float32(float64(a)*s.Std + float64(s.Mean[cell]))
}
