package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Pending returns the granules of a dataset that are in the spool and have no
// product yet, the live lane first, in the order of names and revisions: the
// work that is left after a crash.
func (l *Ledger) Pending(ctx context.Context, dataset string) ([]Granule, error) {
	return l.FirstPending(ctx, dataset, -1)
}

// FirstPending returns the first n of Pending; all where n is negative.
func (l *Ledger) FirstPending(ctx context.Context, dataset string, n int) ([]Granule, error) {
	gs, err := l.granules(ctx, `WHERE dataset = ? AND state IN ('fetched', 'filled')
		ORDER BY lane DESC, name, revision LIMIT ?`, dataset, n)
	if err != nil {
		return nil, fmt.Errorf("list pending granules of %s: %w", dataset, err)
	}
	return gs, nil
}

// Window returns the granules of a dataset with a field at a time from
// through to, in the order of their first times and names. Of each name it is
// the newest revision that was read and not set aside, so that a bad
// replacement does not take a good granule away. A granule that is known to
// hold no observation is left out: it says nothing about its neighbours.
func (l *Ledger) Window(ctx context.Context, dataset string, from, to time.Time) ([]Granule, error) {
	gs, err := l.granules(ctx, inWindow+" ORDER BY first_time, name", dataset, text(from), text(to))
	if err != nil {
		return nil, fmt.Errorf("list granules of %s from %v to %v: %w", dataset, from, to, err)
	}
	return gs, nil
}

const inWindow = `WHERE id IN (SELECT granule FROM field_time WHERE dataset = ? AND time BETWEEN ? AND ?)
	AND state <> 'quarantined' AND absent = 0 AND NOT (product_path <> '' AND observed = 0)
	AND NOT EXISTS (SELECT 1 FROM granule AS later WHERE later.dataset = granule.dataset AND later.name = granule.name
		AND later.revision > granule.revision AND later.state <> 'quarantined' AND later.first_time <> '')`

// Newest returns the granule of a dataset with the latest field, set aside or
// not; ok is false where none was read yet.
func (l *Ledger) Newest(ctx context.Context, dataset string) (g Granule, ok bool, err error) {
	gs, err := l.granules(ctx, `WHERE id = (SELECT f.granule FROM field_time AS f CROSS JOIN granule AS g ON g.id = f.granule
		WHERE f.dataset = ? AND g.absent = 0 ORDER BY f.time DESC, f.granule DESC LIMIT 1)`, dataset)
	if err != nil {
		return Granule{}, false, fmt.Errorf("look up newest granule of %s: %w", dataset, err)
	}
	if len(gs) == 0 {
		return Granule{}, false, nil
	}
	return gs[0], true, nil
}

// Recent returns the n granules that changed state last, the latest first: of
// the given states, or of all where none is given.
func (l *Ledger) Recent(ctx context.Context, n int, states ...State) ([]Granule, error) {
	var all []Granule
	if len(states) == 0 {
		gs, err := l.granules(ctx, "ORDER BY changed DESC, id DESC LIMIT ?", n)
		if err != nil {
			return nil, fmt.Errorf("list recent granules: %w", err)
		}
		return gs, nil
	}
	for _, state := range states { // one query each, so that each follows its index
		gs, err := l.granules(ctx, "WHERE state = ?1 AND NOT (absent = 1 AND ?1 = 'quarantined') ORDER BY changed DESC, id DESC LIMIT ?2", state, n)
		if err != nil {
			return nil, fmt.Errorf("list recent %s granules: %w", state, err)
		}
		all = append(all, gs...)
	}
	slices.SortFunc(all, func(a, b Granule) int {
		if c := b.Changed.Compare(a.Changed); c != 0 {
			return c
		}
		return int(b.ID - a.ID)
	})
	return all[:min(n, len(all))], nil
}

// Counts returns how many granules are in which state, by dataset. An absence
// is none: an archive that has gone silent must not seem to deliver.
func (l *Ledger) Counts(ctx context.Context) ([]Count, error) {
	counts, err := query(ctx, l.db, func(row scanner) (c Count, err error) {
		return c, row.Scan(&c.Dataset, &c.State, &c.Granules)
	}, `SELECT t.dataset, t.state, t.granules - (SELECT count(*) FROM granule AS g INDEXED BY granule_absent
			WHERE g.dataset = t.dataset AND g.state = t.state AND g.absent = 1) AS n
		FROM tally AS t WHERE n > 0 ORDER BY t.dataset, t.state`)
	if err != nil {
		return nil, fmt.Errorf("count granules: %w", err)
	}
	return counts, nil
}

// SetAsideSince returns how many granules of each dataset were set aside after a
// time and still are.
func (l *Ledger) SetAsideSince(ctx context.Context, since time.Time) (map[string]int, error) {
	counts, err := query(ctx, l.db, func(row scanner) (c Count, err error) {
		return c, row.Scan(&c.Dataset, &c.Granules)
	}, "SELECT dataset, COUNT(*) FROM granule WHERE state = 'quarantined' AND changed > ? AND absent = 0 GROUP BY dataset", text(since))
	if err != nil {
		return nil, fmt.Errorf("count granules set aside since %v: %w", since, err)
	}
	byDataset := map[string]int{}
	for _, c := range counts {
		byDataset[c.Dataset] = c.Granules
	}
	return byDataset, nil
}

// History returns what happened to a granule, oldest first.
func (l *Ledger) History(ctx context.Context, id int64) ([]Event, error) {
	events, err := query(ctx, l.db, func(row scanner) (e Event, err error) {
		return e, row.Scan(&e.State, (*moment)(&e.At), &e.Note)
	}, "SELECT state, at, note FROM history WHERE granule = ? ORDER BY id", id)
	if err != nil {
		return nil, fmt.Errorf("read history of granule %d: %w", id, err)
	}
	return events, nil
}

// granuleColumns are the columns that scanGranule takes, in its order.
const granuleColumns = `id, dataset, name, revision, sha256, size, mod_time, spool_path, state, reason,
	first_time, last_time, product_path, product_sha256, observed, covered, recorded, changed, lane, cause, why, absent`

func scanGranule(row scanner) (g Granule, err error) {
	return g, row.Scan(&g.ID, &g.Dataset, &g.Name, &g.Revision, &g.SHA256, &g.Size, (*moment)(&g.ModTime), &g.SpoolPath,
		&g.State, &g.Reason, (*moment)(&g.First), (*moment)(&g.Last), &g.Product.Path, &g.Product.SHA256, &g.Product.Observed, &g.Product.Covered,
		(*moment)(&g.Recorded), (*moment)(&g.Changed), &g.Lane, &g.Cause, &g.Why, &g.Absent)
}

func (l *Ledger) granules(ctx context.Context, where string, args ...any) ([]Granule, error) {
	return query(ctx, l.db, scanGranule, "SELECT "+granuleColumns+" FROM granule "+where, args...)
}

// newest returns the highest revision under a name.
func newest(ctx context.Context, q querier, dataset, name string) (Granule, bool, error) {
	gs, err := query(ctx, q, scanGranule, "SELECT "+granuleColumns+
		" FROM granule WHERE dataset = ? AND name = ? ORDER BY revision DESC LIMIT 1", dataset, name)
	if err != nil || len(gs) == 0 {
		return Granule{}, false, err
	}
	return gs[0], true, nil
}

func byID(ctx context.Context, q querier, id int64) (Granule, error) {
	gs, err := query(ctx, q, scanGranule, "SELECT "+granuleColumns+" FROM granule WHERE id = ?", id)
	if err != nil {
		return Granule{}, err
	}
	if len(gs) == 0 {
		return Granule{}, errors.New("no such granule in the ledger")
	}
	return gs[0], nil
}
