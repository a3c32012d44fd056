package work

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lacuna/daemon/gridpin"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// checkGrid refuses a granule on another grid than the dataset's: the one that the
// configuration names, else the one that most of its first granules have. The
// first granule is filled at once, and the grid may change until it is settled.
// Granules that wait already vote first, so that no product is made on a grid that
// they outvote.
func (w *Worker) checkGrid(ctx context.Context, g ledger.Granule, granule ingest.Granule) error {
	switch {
	case g.Absent:
		return nil
	case granule.Empty():
		return w.checkEmpty(ctx, g, granule)
	}
	standing, err := w.vote(ctx, g, granule)
	if err == nil && !standing.Settled && w.set.Grid == nil {
		if err = w.canvass(ctx, g); err == nil {
			standing, err = w.vote(ctx, g, granule)
		}
	}
	if err != nil || standing.Agrees {
		return err
	}
	return w.oddGrid(granule, standing)
}

// checkEmpty refuses a granule without an observation on another grid than the
// dataset's. It has no vote: a file that a producer writes for want of data may
// have any grid.
func (w *Worker) checkEmpty(ctx context.Context, g ledger.Granule, granule ingest.Granule) error {
	grid := granule.Fields[0].Grid
	if pin := w.set.Grid; pin != nil {
		if pin.Has(grid) {
			return nil
		}
		return w.oddGrid(granule, ledger.Standing{})
	}
	current, known, err := w.Books.Grid(ctx, w.set.Name)
	if err == nil && !known {
		if err = w.canvass(ctx, g); err == nil {
			current, known, err = w.Books.Grid(ctx, w.set.Name)
		}
	}
	if err != nil || !known {
		return err
	}
	var its field.Grid
	if err := json.Unmarshal([]byte(current.JSON), &its); err != nil {
		return fmt.Errorf("decode grid of dataset %s: %w", w.set.Name, err)
	}
	if grid.Same(its) {
		return nil
	}
	return w.oddGrid(granule, ledger.Standing{Grid: current, Settled: true})
}

// vote counts the grid of a granule and returns the standing of the vote.
func (w *Worker) vote(ctx context.Context, g ledger.Granule, granule ingest.Granule) (ledger.Standing, error) {
	grid := granule.Fields[0].Grid
	text, err := json.Marshal(grid)
	if err != nil {
		return ledger.Standing{}, fmt.Errorf("encode grid: %w", err)
	}
	pin := w.set.Grid
	pinned := pin != nil && pin.Has(grid)
	standing, err := w.Books.VoteGrid(ctx, ledger.Vote{
		Dataset: g.Dataset, Name: g.Name, Granule: g.ID,
		Grid:    ledger.Grid{Fingerprint: grid.String(), JSON: string(text)},
		Settled: gridpin.SettledVotes, Pinned: pinned, Refused: pin != nil && !pinned, Sinks: w.cfg.Sinks,
		Same: func(known string) (bool, error) {
			var before field.Grid
			if err := json.Unmarshal([]byte(known), &before); err != nil {
				return false, fmt.Errorf("decode grid of dataset %s: %w", w.set.Name, err)
			}
			return grid.Same(before) || pinned && len(before.Lat) > 0 && len(before.Lon) > 0 && pin.Has(before), nil
		},
	}, w.Now())
	if standing.Changed {
		w.Log.Info("grid of the dataset", "grid", standing.Grid.Fingerprint, "why", standing.Grid.Why)
		w.Queue.Nudge()
	}
	return standing, err
}

// canvass lets the granules that wait with g vote.
func (w *Worker) canvass(ctx context.Context, g ledger.Granule) error {
	waiting, err := w.Books.FirstPending(ctx, w.set.Name, gridpin.SettledVotes)
	if err != nil {
		return err
	}
	for _, next := range waiting {
		if next.ID == g.ID || next.Absent {
			continue
		}
		granule, err := w.read(ctx, next)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || granule.Empty() {
			continue // an error is handled when its turn comes
		}
		if _, err := w.vote(ctx, next, granule); err != nil {
			return err
		}
	}
	return nil
}

// oddGrid returns the reason why a granule is refused. A rebuilt ledger recognises
// such a granule by the words "its grid is" and "but dataset".
func (w *Worker) oddGrid(granule ingest.Granule, s ledger.Standing) error {
	name, grid := w.set.Name, granule.Fields[0].Grid
	bad := &ingest.BadGranule{File: granule.Name}
	switch {
	case w.set.Grid != nil:
		bad.Problem = fmt.Sprintf("its grid is %v, but dataset %s is configured as %v", grid, name, *w.set.Grid)
		bad.Remedy = fmt.Sprintf("correct or remove grid in the configuration of the dataset and run 'lacuna grid reset --dataset %s --reason TEXT', or configure a new dataset", name)
	case !s.Settled:
		bad.Problem = fmt.Sprintf("its grid is %v, but dataset %s is %s so far", grid, name, s.Grid.Fingerprint)
		bad.Remedy = fmt.Sprintf("it is taken up by itself if most of the first granules have its grid; 'lacuna grid show --dataset %s' counts them", name)
	default:
		bad.Problem = fmt.Sprintf("its grid is %v, but dataset %s has been %s since %s", grid, name, s.Grid.Fingerprint, s.Grid.Since.Format(time.DateOnly))
		bad.Remedy = fmt.Sprintf("if the producer changed the grid, configure a new dataset, or run 'lacuna grid reset --dataset %s --reason TEXT'", name)
	}
	return bad
}

// takeUp takes up again the granules that were set aside for their grid, where
// that has become the dataset's or was reset. After a crash the next call goes on.
func (w *Worker) takeUp(ctx context.Context) error {
	rows, err := w.Books.Regained(ctx, w.set.Name)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return nil
	}
	why := "the grid of the dataset was reset"
	if grid, known, err := w.Books.Grid(ctx, w.set.Name); err != nil {
		return err
	} else if known {
		why = fmt.Sprintf("the grid of the dataset is %s: %s", grid.Fingerprint, grid.Why)
	}
	for _, g := range rows {
		err := w.aside().TakeUp(ctx, w.Books, g, why, w.Now())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			w.Log.Warn("granule stays set aside", "granule", g.Name, "err", err)
			if err := w.Books.DropVote(ctx, g.ID); err != nil {
				return err
			}
			continue
		}
		w.Log.Info("granule taken up again", "granule", g.Name, "was", g.Reason)
	}
	return nil
}
