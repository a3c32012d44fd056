package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"lacuna/ledger/layout"
)

// SetGrid sets the grid of a dataset, from the journal when a ledger is
// rebuilt.
func (l *Ledger) SetGrid(ctx context.Context, dataset string, g Grid) error {
	err := transact(ctx, l.db, func(tx *sql.Tx) error {
		v := Vote{Dataset: dataset, Grid: g, Same: func(json string) (bool, error) { return json == g.JSON, nil }}
		seen, err := seenGrid(ctx, tx, v)
		if err != nil {
			return err
		}
		return putGrid(ctx, tx, dataset, knownGrid{Grid: g, seen: seen})
	})
	if err != nil {
		return fmt.Errorf("record grid of %s: %w", dataset, err)
	}
	return nil
}

// RecallVotes counts granules with a product for the grid of their dataset, up
// to as many as settle it, and has those that were set aside for their grid
// read again: after a ledger was rebuilt.
func (l *Ledger) RecallVotes(ctx context.Context) error {
	err := transact(ctx, l.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, layout.VotesOfProducts+`
INSERT OR IGNORE INTO grid_vote (dataset, name, granule, seen) SELECT dataset, name, max(id), NULL FROM granule
	WHERE state = 'quarantined' AND reason LIKE '%: its grid is %, but dataset %' GROUP BY dataset, name;`)
		return err
	})
	if err != nil {
		return fmt.Errorf("count grids of products: %w", err)
	}
	return nil
}

// Grid returns the grid of a dataset; ok is false where it has none yet.
func (l *Ledger) Grid(ctx context.Context, dataset string) (g Grid, ok bool, err error) {
	var seen int64
	err = l.db.QueryRowContext(ctx, gridQuery, dataset).Scan(&g.Fingerprint, &g.JSON, (*moment)(&g.Since), &g.Why, &seen)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Grid{}, false, nil
	case err != nil:
		return Grid{}, false, fmt.Errorf("look up grid of %s: %w", dataset, err)
	}
	return g, true, nil
}

// GridVotes is the number of granules on a grid. For the grid of the dataset,
// no more are counted than settle it.
type GridVotes struct {
	Fingerprint string
	Granules    int
	Current     bool // grid of the dataset
}

// GridVotes returns the grids that were seen of a dataset, the dataset's first,
// then those with most granules.
func (l *Ledger) GridVotes(ctx context.Context, dataset string) ([]GridVotes, error) {
	all, err := query(ctx, l.db, func(row scanner) (v GridVotes, err error) {
		return v, row.Scan(&v.Fingerprint, &v.Granules, &v.Current)
	}, `SELECT s.fingerprint, count(v.name), s.id = coalesce((SELECT seen FROM grid WHERE grid.dataset = s.dataset), 0) AS now
		FROM grid_seen AS s LEFT JOIN grid_vote AS v ON v.dataset = s.dataset AND v.seen = s.id
		WHERE s.dataset = ? GROUP BY s.id HAVING count(v.name) > 0 OR now ORDER BY now DESC, count(v.name) DESC, s.id`, dataset)
	if err != nil {
		return nil, fmt.Errorf("count grids of %s: %w", dataset, err)
	}
	return all, nil
}

// GridChanges returns the changes of a dataset's grid, the latest first. One
// without a fingerprint is a reset.
func (l *Ledger) GridChanges(ctx context.Context, dataset string, limit int) ([]Grid, error) {
	all, err := query(ctx, l.db, func(row scanner) (g Grid, err error) {
		return g, row.Scan(&g.Fingerprint, (*moment)(&g.Since), &g.Why)
	}, "SELECT fingerprint, at, why FROM grid_change WHERE dataset = ? ORDER BY id DESC LIMIT ?", dataset, limit)
	if err != nil {
		return nil, fmt.Errorf("list grids of %s: %w", dataset, err)
	}
	return all, nil
}

// ForgetGrid forgets the grid of a dataset and its votes, and returns the
// number of granules that were set aside for their grid: they are to be read
// again, see Regained. Products stay as they are. It is one transaction and may
// be called through Join: the worker of the dataset takes them up.
func (l *Ledger) ForgetGrid(ctx context.Context, dataset, why string, now time.Time) (again int, err error) {
	if why == "" {
		return 0, fmt.Errorf("forget grid of %s: no reason is given; say why", dataset)
	}
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		for _, step := range []string{
			"DELETE FROM grid WHERE dataset = ?",
			"UPDATE grid_vote SET seen = NULL WHERE dataset = ?",
			"DELETE FROM grid_vote WHERE dataset = ? AND (SELECT state FROM granule WHERE id = grid_vote.granule) <> 'quarantined'",
			"DELETE FROM grid_seen WHERE dataset = ?",
		} {
			if _, err := tx.ExecContext(ctx, step, dataset); err != nil {
				return err
			}
		}
		if err := addGridChange(ctx, tx, dataset, Grid{Since: now, Why: why}); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT count(*) FROM grid_vote WHERE dataset = ?", dataset).Scan(&again)
	})
	if err != nil {
		return 0, fmt.Errorf("forget grid of %s: %w", dataset, err)
	}
	return again, nil
}

// Regained returns the granules that are set aside for a grid that is now the
// dataset's, or that was forgotten.
func (l *Ledger) Regained(ctx context.Context, dataset string) ([]Granule, error) {
	// The plus keeps SQLite from scanning all granules that are set aside.
	gs, err := l.granules(ctx, `WHERE +state = 'quarantined' AND id IN (SELECT granule FROM grid_vote WHERE dataset = ?1 AND seen IS NULL
		UNION SELECT granule FROM grid_vote WHERE dataset = ?1 AND seen = (SELECT seen FROM grid WHERE dataset = ?1)) ORDER BY name`, dataset)
	if err != nil {
		return nil, fmt.Errorf("list granules of %s to be read again: %w", dataset, err)
	}
	return gs, nil
}

// DropVote forgets the grid of a granule: it cannot be read again.
func (l *Ledger) DropVote(ctx context.Context, granule int64) error {
	if _, err := l.db.ExecContext(ctx, "DELETE FROM grid_vote WHERE granule = ?", granule); err != nil {
		return fmt.Errorf("forget grid of granule %d: %w", granule, err)
	}
	return nil
}
