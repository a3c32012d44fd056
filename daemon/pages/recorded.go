package pages

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"lacuna/daemon/operate"
	"lacuna/daemon/sources"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/pipeline/skill"
)

// records are the rows of datasets as the ledger tells them, kept until it changes:
// every page shows the status, most of it is the same as a moment ago, and a dataset
// costs seven queries and more.
type records struct {
	read func(ctx context.Context, book *ledger.Ledger, set operate.Dataset) (ops.Dataset, error)

	mu    sync.Mutex // guards the fields below; pages that ask at the same time wait for one answer
	stamp int64
	rows  []ops.Dataset
}

// readers is the number of datasets that are read at a time, as many as a look
// answers.
const readers = 2

// of returns the rows of datasets, which are the same at each call and in their
// order. Nobody changes what a row points to.
func (r *records) of(ctx context.Context, book *ledger.Ledger, sets []operate.Dataset) ([]ops.Dataset, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamp, unknown := book.Stamp(ctx) // before the rows: a change meanwhile makes them old
	if unknown == nil && r.rows != nil && stamp == r.stamp {
		return r.rows, nil
	}
	rows := make([]ops.Dataset, len(sets))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, set := range sets {
		g.Go(func() (err error) {
			rows[i], err = r.read(ctx, book, set)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if unknown == nil { // else no look: a command, which asks once
		r.stamp, r.rows = stamp, rows
	}
	return rows, nil
}

// recorded returns what the ledger tells of a dataset.
func (p Pages) recorded(ctx context.Context, book *ledger.Ledger, set operate.Dataset) (ops.Dataset, error) {
	row := ops.Dataset{Name: set.Name, Title: set.Options.Product}
	newest, _, err := book.Newest(ctx, set.Name)
	if err != nil {
		return row, err
	}
	row.NewestField = newest.Last
	if row.LastPoll, err = book.LastPoll(ctx, set.Name); err != nil {
		return row, err
	}
	return row, errors.Join(noteUnseen(ctx, book, &row), noteStep(ctx, book, set, &row), noteSkill(ctx, book, &row), p.recordSources(ctx, book, set, &row))
}

// recordSources adds the sources of a dataset that has several.
func (p Pages) recordSources(ctx context.Context, book *ledger.Ledger, set operate.Dataset, row *ops.Dataset) error {
	for _, s := range set.Sources {
		series := sources.Series(set.Name, s.Name)
		newest, _, err := book.Newest(ctx, series)
		if err != nil {
			return err
		}
		one := ops.Source{Name: s.Name, NewestField: newest.Last, SilentSeconds: cmp.Or(s.Silent, p.Limits.Lag).Seconds()}
		if one.LastPoll, err = book.LastPoll(ctx, series); err != nil {
			return err
		}
		row.Sources = append(row.Sources, one)
	}
	return nil
}

// noteUnseen adds the products without an observation to the row of a dataset:
// those of the month up to its newest field, and whether it ever had any other.
func noteUnseen(ctx context.Context, book *ledger.Ledger, row *ops.Dataset) error {
	const month = 30 * 24 * time.Hour
	if row.NewestField.IsZero() {
		return nil
	}
	recent, err := book.Unseen(ctx, row.Name, row.NewestField.Add(-month))
	if err != nil {
		return err
	}
	row.CloudedOut, row.NoGranule = recent.CloudedOut, recent.NoGranule
	if recent.CloudedOut == 0 {
		return nil
	}
	seen, err := book.EverSeen(ctx, row.Name)
	if err != nil || seen {
		return err
	}
	all, err := book.Unseen(ctx, row.Name, time.Time{})
	row.Blank = all.CloudedOut
	return err
}

// noteStep adds the step of a dataset, and when its next field is late.
func noteStep(ctx context.Context, book *ledger.Ledger, set operate.Dataset, row *ops.Dataset) error {
	step, err := operate.Step(ctx, book, set.Name)
	if err != nil {
		return err
	}
	row.StepSeconds = step.Seconds()
	expect := set.Archive.Expect
	row.Finished = expect.Nothing
	switch {
	case step == 0, expect.Nothing:
	case expect.Within > 0:
		row.Due = row.NewestField.Add(step + expect.Within)
	case expect.By == "" && expect.Usual && set.Clock == nil: // a simulated sea has a clock of its own
		delay, known, err := operate.UsualDelay(ctx, book, set.Name, row.NewestField, step)
		if err != nil {
			return err
		}
		if known {
			row.Due = row.NewestField.Add(step + delay + max(step/2, leastSlack))
		}
	}
	return nil
}

// leastSlack is how much later than ever a field may come before it is late, of a
// series of any step.
const leastSlack = 6 * time.Hour

// noteSkill adds the last score of a dataset and its drift to its row.
func noteSkill(ctx context.Context, book *ledger.Ledger, row *ops.Dataset) error {
	last, err := book.Skills(ctx, ledger.SkillQuery{Dataset: row.Name, Kind: ledger.Overlay, Limit: 1})
	if err != nil {
		return err
	}
	if len(last) == 1 {
		s := skillRow(last[0])
		row.Skill = &s
	}
	errors, err := book.LatestErrors(ctx, row.Name, skill.DriftDays)
	if err != nil {
		return err
	}
	drift := skill.DriftOf(errors)
	row.Drift, row.RecentMSE = drift.Alarm, drift.Recent
	return nil
}
