package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Revision asks for a product to be made anew from the same bytes.
type Revision struct {
	Dataset string
	Granule string
	Cause   Cause // Reanalysis or Redo
	Why     string
	Lane    Lane    // empty: that of the revision before
	Change  float64 // with Reanalysis: how far the product moves, in standard deviations
}

// Revise makes the next revision of a granule, in state Fetched, from its
// newest content that was not set aside, and ends its open reopening. A
// revision that is unfinished already is returned as it is: it will see
// everything that this one would. It is one transaction, and may be asked for
// through Join: the worker of the dataset takes it up.
func (l *Ledger) Revise(ctx context.Context, r Revision, now time.Time) (g Granule, err error) {
	if r.Why == "" || r.Cause != Reanalysis && r.Cause != Redo {
		return Granule{}, fmt.Errorf("revise %s: cause is %q and reason %q", r.Granule, r.Cause, r.Why)
	}
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		g, err = revise(ctx, tx, r, now)
		return err
	})
	if err != nil {
		return Granule{}, fmt.Errorf("revise %s: %w", r.Granule, err)
	}
	return g, nil
}

func revise(ctx context.Context, tx *sql.Tx, r Revision, now time.Time) (Granule, error) {
	newest, known, err := newest(ctx, tx, r.Dataset, r.Granule)
	if err != nil {
		return Granule{}, err
	}
	if !known {
		return Granule{}, ErrNothingToRevise
	}
	outcome := Revised
	if r.Cause == Redo {
		outcome = Overtaken
	}
	end := Reopening{Dataset: r.Dataset, Granule: r.Granule, Outcome: outcome, Change: r.Change}
	if err := closeReopening(ctx, tx, end, now); err != nil {
		return Granule{}, err
	}
	if newest.State == Fetched || newest.State == Filled {
		return newest, nil
	}
	good, err := lastGood(ctx, tx, r.Dataset, r.Granule)
	if err != nil {
		return Granule{}, err
	}
	number, err := nextRevision(ctx, tx, newest)
	if err != nil {
		return Granule{}, err
	}
	next := Granule{Arrival: good.Arrival, Revision: number, Cause: r.Cause, Why: r.Why, Absent: good.Absent}
	if r.Lane != "" {
		next.Lane = r.Lane
	}
	if next, err = insert(ctx, tx, next, now); err != nil {
		return Granule{}, err
	}
	times, err := timesOf(ctx, tx, "granule = ?", good.ID)
	if err == nil && len(times) > 0 {
		err = setTimes(ctx, tx, next.ID, times)
		next.First, next.Last = good.First, good.Last
	}
	if err != nil {
		return Granule{}, err
	}
	return step(ctx, tx, next, move{to: Fetched, at: now})
}

// lastGood returns the newest revision of a granule that was not set aside.
func lastGood(ctx context.Context, tx *sql.Tx, dataset, name string) (Granule, error) {
	gs, err := query(ctx, tx, scanGranule, "SELECT "+granuleColumns+` FROM granule
		WHERE dataset = ? AND name = ? AND state <> 'quarantined' ORDER BY revision DESC LIMIT 1`, dataset, name)
	return onlyOne(gs, err)
}

// LastGood returns the newest revision of a granule that was not set aside; ok
// is false where there is none.
func (l *Ledger) LastGood(ctx context.Context, dataset, name string) (g Granule, ok bool, err error) {
	gs, err := l.granules(ctx, "WHERE dataset = ? AND name = ? AND state <> 'quarantined' ORDER BY revision DESC LIMIT 1", dataset, name)
	g, err = onlyOne(gs, err)
	if errors.Is(err, ErrNothingToRevise) {
		return Granule{}, false, nil
	}
	if err != nil {
		return Granule{}, false, fmt.Errorf("look up granule %s: %w", name, err)
	}
	return g, true, nil
}

func onlyOne(gs []Granule, err error) (Granule, error) {
	if err == nil && len(gs) == 0 {
		err = ErrNothingToRevise
	}
	if err != nil {
		return Granule{}, err
	}
	return gs[0], nil
}
