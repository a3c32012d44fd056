package operate

import (
	"context"
	"errors"
	"fmt"

	"lacuna/daemon/intake"
	"lacuna/fetch"
	"lacuna/internal/convert"
)

// Fetch is a request to fetch granules.
type Fetch struct {
	Dataset string     // empty: all datasets
	Days    fetch.Days // zero: the look-back of the dataset
	// Backfill puts the granules into the backfill lane: they are filled when no
	// granule of the live lane waits.
	Backfill bool
	// Progress returns the progress display of a dataset; may be nil.
	Progress func(dataset string) fetch.Progress
}

// Fetched counts the granules of a dataset that were fetched.
type Fetched struct {
	Dataset string `json:"dataset"`
	fetch.Summary
}

// Fetch brings the new granules of the archives into the spool, without filling
// them: the next run does that. Where some could not be fetched, the error names
// them and the others are in the spool.
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

// FetchPlan lists the objects of a dataset that would be fetched now.
type FetchPlan struct {
	Dataset string
	Actions []fetch.Action
	Notices []string // announcements of the archive, such as the end of a version
}

// PlanFetch returns the actions of Fetch with their reasons, without taking them.
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
		all = append(all, FetchPlan{Dataset: dataset, Actions: actions, Notices: texts(notices)})
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

// texts returns what an archive announces, for people.
func texts(all []intake.News) []string {
	return convert.Each(all, func(n intake.News) string { return n.Text })
}
