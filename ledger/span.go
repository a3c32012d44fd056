package ledger

import (
	"context"
	"fmt"
	"time"
)

// Span returns the times of the first and of the last field of a dataset; zero
// times where none was read. It looks at both ends of an index.
func (l *Ledger) Span(ctx context.Context, dataset string) (first, last time.Time, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT
		coalesce((SELECT min(time) FROM field_time WHERE dataset = ?1), ''),
		coalesce((SELECT max(time) FROM field_time WHERE dataset = ?1), '')`, dataset).
		Scan((*moment)(&first), (*moment)(&last))
	if err != nil {
		return first, last, fmt.Errorf("look up days of %s: %w", dataset, err)
	}
	return first, last, nil
}

// Times returns the times of the fields of a granule, in their order; none
// where it was not read.
func (l *Ledger) Times(ctx context.Context, id int64) ([]time.Time, error) {
	times, err := query(ctx, l.db, func(row scanner) (t time.Time, err error) { return t, row.Scan((*moment)(&t)) },
		"SELECT time FROM field_time WHERE granule = ? ORDER BY time", id)
	if err != nil {
		return nil, fmt.Errorf("look up times of granule %d: %w", id, err)
	}
	return times, nil
}

// LatestTimes returns the times of the latest n fields of a dataset, each once,
// the latest first.
func (l *Ledger) LatestTimes(ctx context.Context, dataset string, n int) ([]time.Time, error) {
	times, err := query(ctx, l.db, func(row scanner) (t time.Time, err error) { return t, row.Scan((*moment)(&t)) },
		"SELECT DISTINCT time FROM field_time WHERE dataset = ? ORDER BY time DESC LIMIT ?", dataset, n)
	if err != nil {
		return nil, fmt.Errorf("look up latest times of %s: %w", dataset, err)
	}
	return times, nil
}

// CountTimes returns the number of different times that a dataset has a field of.
func (l *Ledger) CountTimes(ctx context.Context, dataset string) (n int, err error) {
	err = l.db.QueryRowContext(ctx, "SELECT count(DISTINCT time) FROM field_time WHERE dataset = ?", dataset).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count times of %s: %w", dataset, err)
	}
	return n, nil
}

// FetchedAt returns when the bytes of a granule came into the spool: with the
// first of its revisions that has them. It is zero where nothing was fetched.
func (l *Ledger) FetchedAt(ctx context.Context, g Granule) (at time.Time, err error) {
	if g.SHA256 == "" || g.Absent {
		return time.Time{}, nil
	}
	err = l.db.QueryRowContext(ctx, `SELECT coalesce(min(h.at), '') FROM granule AS g JOIN history AS h ON h.granule = g.id
		WHERE g.dataset = ? AND g.name = ? AND g.sha256 = ? AND h.state = 'fetched'`, g.Dataset, g.Name, g.SHA256).Scan((*moment)(&at))
	if err != nil {
		return time.Time{}, fmt.Errorf("look up when %s was fetched: %w", g.Name, err)
	}
	return at, nil
}

// Delays returns how long after their last fields the granules of a Window came
// into the spool, by FetchedAt, without those that were not fetched.
func (l *Ledger) Delays(ctx context.Context, dataset string, from, to time.Time) ([]time.Duration, error) {
	delays, err := query(ctx, l.db, func(row scanner) (time.Duration, error) {
		var field, fetched time.Time
		err := row.Scan((*moment)(&field), (*moment)(&fetched))
		return fetched.Sub(field), err
	}, `SELECT g.last_time, min(h.at) FROM (SELECT id, dataset, name, sha256, last_time FROM granule `+inWindow+`) AS g
		CROSS JOIN granule AS same ON same.dataset = g.dataset AND same.name = g.name AND same.sha256 = g.sha256
		CROSS JOIN history AS h ON h.granule = same.id AND h.state = 'fetched'
		WHERE g.sha256 <> '' GROUP BY g.id`, dataset, text(from), text(to))
	if err != nil {
		return nil, fmt.Errorf("look up when granules of %s were fetched: %w", dataset, err)
	}
	return delays, nil
}

// Turn is the time that a product took its turn in: from the latest fetch of its
// granule, or the request to make it again, until it was stored.
type Turn struct {
	Fetched, Stored time.Time
}

// Turns returns the turns of the latest n products of a dataset, in the order in
// which they were stored.
func (l *Ledger) Turns(ctx context.Context, dataset string, n int) ([]Turn, error) {
	all, err := query(ctx, l.db, func(row scanner) (t Turn, err error) {
		return t, row.Scan((*moment)(&t.Fetched), (*moment)(&t.Stored))
	}, `SELECT coalesce((SELECT max(h.at) FROM history AS h WHERE h.granule = p.granule AND h.state = 'fetched'), ''), p.stored
		FROM (SELECT id, granule, stored FROM publication WHERE dataset = ? ORDER BY id DESC LIMIT ?) AS p ORDER BY p.id`, dataset, n)
	if err != nil {
		return nil, fmt.Errorf("look up how long products of %s took: %w", dataset, err)
	}
	return all, nil
}
