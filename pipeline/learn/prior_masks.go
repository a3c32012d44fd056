package learn

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// ErrNothingToLearn marks training data whose masks say nothing about gaps.
var ErrNothingToLearn = errors.New("nothing to learn about gaps")

// maskWindows returns the windows that a prior learns from, or why there are
// none.
func maskWindows(data samples.Train, cfg PriorConfig) ([]samples.Ref, error) {
	if !slices.ContainsFunc(data.Places(), func(p *samples.Place) bool { return p.Sea.Count() > 0 }) {
		return nil, fmt.Errorf("%w: the sea mask has no sea: give another mask, or learn it from the data", ErrNothingToLearn)
	}
	if cfg.Model.Frequency && len(data.Places()) > 1 {
		return nil, fmt.Errorf("a map of frequencies is of one grid, and there are %d series: learn without it, or from one", len(data.Places()))
	}
	refs := data.Refs(cfg.Side, cfg.Stride, cfg.MinObserved)
	days := fmt.Sprintf("%d days from %s to %s", data.Days(), day(data.Time(0)), day(data.Time(data.Days()-1)))
	switch len(refs) {
	case 0:
		return nil, fmt.Errorf("%w: no window of %d cells in %s has %d observed cells: give days with more data, or smaller windows",
			ErrNothingToLearn, cfg.Side, days, cfg.MinObserved)
	case 1:
		return nil, fmt.Errorf("%w: there is a single window with data, on %s: give more days", ErrNothingToLearn, day(data.Time(refs[0].Day)))
	}
	full, empty := 0, 0
	for _, r := range refs {
		p := data.Cut(r)
		switch sea, seen := field.Mask(p.Sea).Count(), field.Mask(p.Observed()).Count(); {
		case seen == 0:
			empty++
		case seen >= sea:
			full++
		}
	}
	switch {
	case full == len(refs):
		return nil, fmt.Errorf("%w: all %d windows of %s are observed everywhere: give Level-3 files, not a gap-filled product", ErrNothingToLearn, full, days)
	case empty == len(refs):
		return nil, fmt.Errorf("%w: all %d windows of %s are empty: check the variable and the sea mask", ErrNothingToLearn, empty, days)
	case full+empty == len(refs):
		return nil, fmt.Errorf("%w: each of the %d windows of %s is either full or empty: use larger windows than %d cells",
			ErrNothingToLearn, len(refs), days, cfg.Side)
	}
	return refs, nil
}

func day(t time.Time) string { return t.Format(time.DateOnly) }

// heldOutMasks returns the masks that evaluations compare with, and those at
// whose places masks are drawn for it: a sample of them. All are compared with,
// because they cost nothing, and the spread of a sample is known to a tenth.
func heldOutMasks(held samples.HeldOut, cfg PriorConfig) (all, sample []prior.Mask, err error) {
	refs := held.Refs(cfg.Side, cfg.Stride, max(cfg.MinObserved, 1))
	if len(refs) < 2 {
		return nil, nil, fmt.Errorf("%d held-out windows of %d cells have data, two are needed to say when to stop: hold out more days, or do not evaluate", len(refs), cfg.Side)
	}
	order := noise.New(cfg.Seed, "prior", "held-out").Rand(0).Perm(len(refs))
	const most = 4096 // more are no better known, and take memory
	for _, k := range order[:min(most, len(refs))] {
		all = append(all, prior.MaskOf(held.Cut(refs[k])))
	}
	return all, all[:min(cfg.EvaluateMasks, len(all))], nil
}
