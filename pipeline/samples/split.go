package samples

import (
	"errors"
	"fmt"
	"math"
	"time"

	"lacuna/pipeline/field"
)

// SplitConfig holds the settings of the first calendar of a dataset.
type SplitConfig struct {
	HeldOut float64 `json:"held_out" yaml:"held_out"` // judging share of each block
	GapDays int     `json:"gap_days" yaml:"gap_days"` // least number of days between learning and judging; two maps of a series coarser than daily
	Blocks  int     `json:"blocks" yaml:"blocks"`     // judging periods in each uninterrupted stretch of days
}

// DefaultSplit judges on the last quarter of each half of an uninterrupted
// stretch, so that every side sees more than one season. Twelve days is longer
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

// calendar returns the first calendar of a dataset. Stretches of days without a
// hole longer than the gap are cut into blocks. A block is
//
//	learn, half a gap, choose, half a gap, judge
//
// and the next one begins with a gap, as do the cycles behind the last.
func (c SplitConfig) calendar(days []Day) Calendar {
	between := stepOf(days)
	c = c.forStep(between)
	step := max(int(math.Round(between.Hours()/24)), 1)
	out := Calendar{GapDays: c.GapDays, Cycle: c.cycle(step)}
	for first := 0; first < len(days); {
		last := first
		for last+1 < len(days) && DateOf(days[last+1].Time)-DateOf(days[last].Time) <= Date(max(c.GapDays, 1)) {
			last++
		}
		start := DateOf(days[first].Time)
		n := int(DateOf(days[last].Time) - start + 1)
		blocks := c.blocks(n)
		for block := range blocks {
			from, end := ceilDiv(block*n, blocks), ceilDiv((block+1)*n, blocks)
			at := start + Date(from)
			for _, share := range c.block(end-from, block > 0, step) {
				out.append(share.Role, at, share.Days)
				at += Date(share.Days)
			}
		}
		first = last + 1
	}
	return out
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// block returns the shares of a block of so many days. One that is too short for
// a gap and for days to learn from has days that judge and no others.
func (c SplitConfig) block(days int, gapFirst bool, step int) []Share {
	judge := min(max(int(c.HeldOut*float64(days)+0.5), 1), days)
	lead := 0
	if gapFirst {
		lead = min(c.GapDays, days-judge)
	}
	left := days - judge - lead // for learning, choosing and the gaps before judging
	learn, half := left-c.GapDays, ceilDiv(c.GapDays, 2)
	if learn <= 0 {
		return []Share{{Days: days - judge}, {Judge, judge}}
	}
	choose := chooseDays(learn, step)
	if learn = left - 2*half - choose; choose == 0 || learn <= 0 {
		return []Share{{Days: lead}, {Learn, left - c.GapDays}, {Days: c.GapDays}, {Judge, judge}}
	}
	return []Share{{Days: lead}, {Learn, learn}, {Days: half}, {Choose, choose}, {Days: half}, {Judge, judge}}
}

// chooseDays returns how many of the last days before a judging period choose:
// an eighth, and nine maps where that is fewer and a quarter allows it, since
// fewer hardly calibrate.
func chooseDays(learn, step int) int {
	const share, least, most = 0.12, 9, 0.25
	return max(int(share*float64(learn)+0.5), min(least*step, int(most*float64(learn))))
}

// cycle returns the shares of the cycles behind the last day of the first
// calendar. Ten gaps make a cycle: a fifth of its days is lost to them.
func (c SplitConfig) cycle(step int) []Share {
	const gaps, maps = 10, 40
	for days := max(gaps*c.GapDays, maps*step); ; days *= 2 {
		// Most of the days may judge, so that only a longer cycle has some of
		// every role.
		if shares := c.block(days, true, step); len(shares) == 6 {
			return shares
		}
	}
}

// stepOf returns the time between two maps of a series.
func stepOf(days []Day) time.Duration {
	times := make([]time.Time, len(days))
	for i, d := range days {
		times[i] = d.Time
	}
	return field.Step(times)
}

// forStep returns c for the step of a series. A gap of twelve days would lie
// between no two maps of a monthly one, and end its stretch at every map: of a
// series coarser than a day two maps belong to neither side, and one may be
// missing.
func (c SplitConfig) forStep(step time.Duration) SplitConfig {
	if c.GapDays > 0 && step > 36*time.Hour {
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
