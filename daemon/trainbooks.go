package daemon

import (
	"context"
	"fmt"
	"time"

	"lacuna/daemon/covariates"
	"lacuna/daemon/retrain"
	"lacuna/daemon/work"
	"lacuna/ledger"
	"lacuna/pipeline/skill"
)

// scheduler returns the training scheduler of a dataset, nil where training is
// off.
func (d *Daemon) scheduler(set Dataset, book *ledger.Ledger) *retrain.Scheduler {
	if d.cfg.Train.Store == "" {
		return nil
	}
	return retrain.NewScheduler(retrain.Service{
		Config: d.cfg.Train, Dataset: retrain.Dataset{Name: set.Name, Options: set.granules(), SeaMask: set.SeaMask, Tests: set.Tests, SeaIce: set.SeaIce, Covariates: d.covariates(set, book)},
		Ledger: trainBooks{book, set.Name}, Program: d.parts.Program, Folder: d.cfg.state().Training(set.Name),
		Now: d.parts.Now, Log: d.log.With("dataset", set.Name),
	})
}

// covariates returns how a training of a dataset is told its covariates; nil: it has none.
func (d *Daemon) covariates(set Dataset, book *ledger.Ledger) func(ctx context.Context, from, to time.Time) ([]string, error) {
	if len(set.Covariates) == 0 {
		return nil
	}
	c := &covariates.Covariates{
		List: set.Covariates, Granules: work.Beside(book, d.cfg.readingOf),
		Log: func(text string) { d.log.Warn("covariate left out", "dataset", set.Name, "why", text) },
	}
	return c.Arguments
}

// trainBooks are the granules and scores of a dataset in the ledger, as the
// training service reads them.
type trainBooks struct {
	book    *ledger.Ledger
	dataset string
}

// Granules returns the granules that were read and not set aside.
func (b trainBooks) Granules(ctx context.Context, from, to time.Time) ([]retrain.Granule, error) {
	rows, err := b.book.Window(ctx, b.dataset, from, to)
	if err != nil {
		return nil, err
	}
	all := make([]retrain.Granule, len(rows))
	for i, g := range rows {
		all[i] = retrain.Granule{Path: g.SpoolPath, Times: []time.Time{g.First}}
		if g.Last.After(g.First) {
			if all[i].Times, err = b.book.Times(ctx, g.ID); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// SkillLoss returns the rise of the error of recent products.
func (b trainBooks) SkillLoss(ctx context.Context) (*float64, error) {
	days, err := b.book.Skills(ctx, ledger.SkillQuery{Dataset: b.dataset, Kind: ledger.Overlay, Limit: skill.DriftDays})
	if err != nil {
		return nil, fmt.Errorf("skill of recent products: %w", err)
	}
	return skillLoss(skill.DriftOf(ledger.Errors(days))), nil
}

// skillLoss returns the error of recent days over that of the days before, less
// one; nil where chance explains it, or there are too few scores.
func skillLoss(drift skill.Drift) *float64 {
	if drift.Sigmas <= skill.DriftSigmas || !(drift.Before > 0) {
		return nil
	}
	loss := drift.Recent/drift.Before - 1
	return &loss
}
