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
