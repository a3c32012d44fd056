package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Grid is a dataset's grid as text. The caller decides whether two grids are
// the same.
type Grid struct {
	Fingerprint string
	JSON        string
	Since       time.Time
	Why         string // reason for the choice
}

// Vote is the grid of a granule that was read, with settings of its dataset.
type Vote struct {
	Dataset string
	Name    string // name of the granule, which has one vote whatever its revision
	Granule int64  // id of the revision that was read
	Grid    Grid
	// Same reports whether a grid that was seen before is that of the granule.
	Same func(json string) (bool, error)
	// Settled is the number of votes that settle the grid: later ones do not
	// change it.
	Settled int
	// Pinned says that the configuration names this grid, and Refused that it
	// names another: then nothing is counted.
	Pinned, Refused bool
	Sinks           []string // sinks to tell of retractions
}

// Standing is the result of a vote.
type Standing struct {
	Grid    Grid // grid of the dataset; zero: none yet
	Agrees  bool // the granule is on it
	Votes   int  // votes for it, at most as many as settle it
	Settled bool
	Changed bool // the vote changed the grid of the dataset
}

// VoteGrid counts the grid of a granule. The first becomes the grid of its
// dataset; until it is settled, another that more granules have takes its
// place: products on the former are retracted, and their granules are to be
// read again, as are those that were set aside and turn out to be on it, see
// Regained. It is one transaction; voting again changes nothing.
func (l *Ledger) VoteGrid(ctx context.Context, v Vote, now time.Time) (s Standing, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		s, err = voteGrid(ctx, tx, v, now)
		return err
	})
	if err != nil {
		return Standing{}, fmt.Errorf("count grid of %s: %w", v.Name, err)
	}
	return s, nil
}

func voteGrid(ctx context.Context, tx *sql.Tx, v Vote, now time.Time) (Standing, error) {
	current, err := currentGrid(ctx, tx, v.Dataset)
	if err != nil {
		return Standing{}, err
	}
	agrees, err := current.is(v)
	if err != nil {
		return Standing{}, err
	}
	votes, err := votesFor(ctx, tx, v.Dataset, current.seen)
	if err != nil {
		return Standing{}, err
	}
	if agrees && votes >= v.Settled {
		return Standing{Grid: current.Grid, Agrees: true, Votes: votes, Settled: true}, nil
	}
	mine := current.seen
	if !agrees {
		if mine, err = seenGrid(ctx, tx, v); err != nil {
			return Standing{}, err
		}
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO grid_vote (dataset, name, granule, seen) VALUES (?, ?, ?, ?)
		ON CONFLICT (dataset, name) DO UPDATE SET granule = excluded.granule, seen = excluded.seen`, v.Dataset, v.Name, v.Granule, mine)
	if err != nil {
		return Standing{}, err
	}
	settled := votes >= v.Settled && current.seen != 0
	next, why, err := decide(ctx, tx, v, current.seen, mine, settled)
	if err != nil {
		return Standing{}, err
	}
	s := Standing{Settled: settled, Changed: next != current.seen}
	if s.Changed {
		if current, err = changeGrid(ctx, tx, v, next, why, now); err != nil {
			return Standing{}, err
		}
	}
	s.Grid, s.Agrees = current.Grid, current.seen == mine && !v.Refused
	if s.Votes, err = votesFor(ctx, tx, v.Dataset, current.seen); err != nil {
		return Standing{}, err
	}
	s.Settled = s.Settled || v.Pinned || s.Votes >= v.Settled && current.seen != 0
	if !s.Agrees {
		err = leaveWindows(ctx, tx, v)
	}
	return s, err
}

// decide returns the grid of the dataset after a vote for mine, and the reason.
func decide(ctx context.Context, tx *sql.Tx, v Vote, current, mine int64, settled bool) (next int64, why string, err error) {
	switch {
	case v.Refused:
		return current, "", nil
	case v.Pinned:
		return mine, "the configuration names it", nil
	case current == 0:
		return mine, fmt.Sprintf("%s is the first granule that was read, and has it", v.Name), nil
	case settled:
		return current, "", nil
	}
	tally, err := query(ctx, tx, func(row scanner) (c gridCount, err error) { return c, row.Scan(&c.seen, &c.votes) },
		`SELECT s.id, count(v.name) FROM grid_seen AS s LEFT JOIN grid_vote AS v ON v.dataset = s.dataset AND v.seen = s.id
			WHERE s.dataset = ? AND s.json <> '' GROUP BY s.id ORDER BY s.id`, v.Dataset)
	if err != nil {
		return 0, "", err
	}
	next, votes, all := elect(current, tally)
	return next, fmt.Sprintf("%d of the first %d granules have it", votes, all), nil
}

// gridCount is the number of granules on a grid.
type gridCount struct {
	seen  int64
	votes int
}

// elect returns the grid of most granules, their number, and the number of all
// votes. A tie leaves the current one in its place.
func elect(current int64, tally []gridCount) (next int64, votes, all int) {
	next = current
	for _, c := range tally {
		all += c.votes
		if c.seen == current {
			votes = c.votes
		}
	}
	for _, c := range tally {
		if c.votes > votes {
			next, votes = c.seen, c.votes
		}
	}
	return next, votes, all
}

// changeGrid gives a dataset another grid. Products of granules that are known
// to be on another are retracted, and become a revision to be judged anew: one
// that is set aside, unless the grid changes again.
func changeGrid(ctx context.Context, tx *sql.Tx, v Vote, seen int64, why string, now time.Time) (knownGrid, error) {
	next := knownGrid{seen: seen, Grid: Grid{Since: now, Why: why}}
	err := tx.QueryRowContext(ctx, "SELECT fingerprint, json FROM grid_seen WHERE id = ?", seen).Scan(&next.Fingerprint, &next.JSON)
	if err != nil {
		return next, err
	}
	if err := putGrid(ctx, tx, v.Dataset, next); err != nil {
		return next, err
	}
	losers, err := query(ctx, tx, func(row scanner) (name string, err error) { return name, row.Scan(&name) },
		"SELECT name FROM grid_vote WHERE dataset = ? AND seen <> ? ORDER BY name", v.Dataset, seen)
	if err != nil {
		return next, err
	}
	for _, name := range losers {
		reason := fmt.Sprintf("the grid of dataset %s is %s: %s", v.Dataset, next.Fingerprint, why)
		gone, err := queueRetraction(ctx, tx, Retraction{Dataset: v.Dataset, Granule: name, Why: reason, Sinks: v.Sinks}, now)
		if err != nil && !errors.Is(err, ErrNoPublication) {
			return next, err
		}
		if len(gone) == 0 {
			continue
		}
		if _, err := revise(ctx, tx, Revision{Dataset: v.Dataset, Granule: name, Cause: Reanalysis, Why: reason}, now); err != nil {
			return next, err
		}
	}
	return next, nil
}

// leaveWindows takes the fields of a granule on another grid out of the windows
// of others, whatever revision has its bytes.
func leaveWindows(ctx context.Context, tx *sql.Tx, v Vote) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM field_time WHERE granule IN (SELECT g.id FROM granule AS g JOIN granule AS mine ON mine.id = ?
		WHERE g.dataset = mine.dataset AND g.name = mine.name AND g.sha256 = mine.sha256)`, v.Granule)
	return err
}

// knownGrid is the grid of a dataset with its number among those that were
// seen; 0: there is none.
type knownGrid struct {
	Grid
	seen int64
}

// is reports whether the grid is the one of a vote.
func (k knownGrid) is(v Vote) (bool, error) {
	if k.seen == 0 {
		return false, nil
	}
	return v.Same(k.JSON)
}

func currentGrid(ctx context.Context, tx *sql.Tx, dataset string) (knownGrid, error) {
	var k knownGrid
	err := tx.QueryRowContext(ctx, gridQuery, dataset).Scan(&k.Fingerprint, &k.JSON, (*moment)(&k.Since), &k.Why, &k.seen)
	if errors.Is(err, sql.ErrNoRows) {
		return knownGrid{}, nil
	}
	return k, err
}

const gridQuery = `SELECT fingerprint, json, since, coalesce((SELECT why FROM grid_change AS c WHERE c.dataset = grid.dataset
	ORDER BY id DESC LIMIT 1), ''), seen FROM grid WHERE dataset = ?`

func votesFor(ctx context.Context, tx *sql.Tx, dataset string, seen int64) (n int, err error) {
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM grid_vote WHERE dataset = ? AND seen = ?", dataset, seen).Scan(&n)
	return n, err
}

// seenGrid returns the number of a vote's grid, a new one where it was not seen
// before.
func seenGrid(ctx context.Context, tx *sql.Tx, v Vote) (int64, error) {
	known, err := query(ctx, tx, func(row scanner) (k knownGrid, err error) { return k, row.Scan(&k.seen, &k.JSON) },
		"SELECT id, json FROM grid_seen WHERE dataset = ? AND json <> '' ORDER BY id", v.Dataset)
	if err != nil {
		return 0, err
	}
	for _, k := range known {
		same, err := k.is(v)
		if err != nil {
			return 0, err
		}
		if same {
			return k.seen, nil
		}
	}
	return insertGrid(ctx, tx, v.Dataset, v.Grid)
}

func insertGrid(ctx context.Context, tx *sql.Tx, dataset string, g Grid) (int64, error) {
	result, err := tx.ExecContext(ctx, "INSERT INTO grid_seen (dataset, fingerprint, json) VALUES (?, ?, ?)", dataset, g.Fingerprint, g.JSON)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// putGrid writes the grid of a dataset and that it has changed.
func putGrid(ctx context.Context, tx *sql.Tx, dataset string, k knownGrid) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO grid (dataset, fingerprint, json, since, seen) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (dataset) DO UPDATE SET fingerprint = excluded.fingerprint, json = excluded.json, since = excluded.since, seen = excluded.seen`,
		dataset, k.Fingerprint, k.JSON, text(k.Since), k.seen)
	if err != nil {
		return err
	}
	return addGridChange(ctx, tx, dataset, k.Grid)
}

func addGridChange(ctx context.Context, tx *sql.Tx, dataset string, g Grid) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO grid_change (dataset, fingerprint, json, at, why) VALUES (?, ?, ?, ?, ?)",
		dataset, g.Fingerprint, g.JSON, text(g.Since), g.Why)
	return err
}
