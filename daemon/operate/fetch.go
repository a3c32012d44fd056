package operate

import (
	"context"
	"errors"
	"fmt"

	"lacuna/daemon/intake"
	"lacuna/fetch"
)

// Fetch is what is to be fetched.
type Fetch struct {
	Dataset string     // empty: all
	Days    fetch.Days // open: what the look-back of the dataset says
	// Backfill says that what comes is not urgent: it is filled when nothing
	// live is to be done.
	Backfill bool
	// Progress returns who hears how a dataset comes along; may be nil.
	Progress func(dataset string) fetch.Progress
}

// Fetched is what was fetched of a dataset.
type Fetched struct {
	Dataset string `json:"dataset"`
	fetch.Summary
}

// Fetch brings what is new on the archives into the spool, without filling it:
// the next run does that. Where something could not be had, the rest is in and
// the error tells.
func (s Station) Fetch(ctx context.Context, ask Fetch) ([]Fetched, error) {
	var all []Fetched
	var errs []error
	err := s.eachIntake(ctx, ask, func(dataset string, in *intake.Intake) {
		var progress fetch.Progress
		if ask.Progress != nil {
			progress = ask.Progress(dataset)
		}
		sum, err := in.Sync(ctx, ask.Days, progress)
		if err != nil {
			errs = append(errs, fmt.Errorf("dataset %s: %w", dataset, err))
		}
		all = append(all, Fetched{Dataset: dataset, Summary: sum})
	})
	return all, errors.Join(append(errs, err)...)
}

// FetchPlan is what would be fetched of a dataset now.
type FetchPlan struct {
	Dataset string
	Actions []fetch.Action
	Notices []string // what the archive has to say, such as a version that is about to end
}

// PlanFetch returns what Fetch would do, and why, without doing it.
func (s Station) PlanFetch(ctx context.Context, ask Fetch) ([]FetchPlan, error) {
	var all []FetchPlan
	var errs []error
	err := s.eachIntake(ctx, ask, func(dataset string, in *intake.Intake) {
		actions, err := in.Plan(ctx, ask.Days)
		if err != nil {
			errs = append(errs, fmt.Errorf("dataset %s: %w", dataset, err))
		}
		notices, err := in.Notices(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("dataset %s: %w", dataset, err))
		}
		all = append(all, FetchPlan{Dataset: dataset, Actions: actions, Notices: notices})
	})
	return all, errors.Join(append(errs, err)...)
}

// eachIntake calls work with the intake of one dataset, or of each.
func (s Station) eachIntake(ctx context.Context, ask Fetch, work func(dataset string, in *intake.Intake)) error {
	sets, err := s.named(ask.Dataset)
	if err != nil {
		return err
	}
	book, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close(ctx, book)
	for _, set := range sets {
		in, err := s.Archives.Intake(set.Dataset, book, ask.Backfill)
		if err != nil {
			return err
		}
		work(set.Name, in)
		if err := in.Close(); err != nil {
			s.Log.Debug("archive not closed", "dataset", set.Name, "err", err)
		}
	}
	return nil
}
