package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// querier is a connection or a transaction on it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scanner is a row of a result.
type scanner interface {
	Scan(dest ...any) error
}

// query returns all rows of a result.
func query[T any](ctx context.Context, q querier, scan func(scanner) (T, error), text string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// momentLayout writes times so that text order is time order, to the
// nanosecond that file systems keep.
const momentLayout = "2006-01-02T15:04:05.000000000Z"

// text is t as the file has it. The zero time is empty.
func text(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(momentLayout)
}

// moment reads the form that text writes.
type moment time.Time

// Scan implements sql.Scanner.
func (m *moment) Scan(src any) error {
	s, ok := src.(string)
	if !ok {
		return fmt.Errorf("time is a %T, not text", src)
	}
	if s == "" {
		*m = moment{}
		return nil
	}
	t, err := time.Parse(momentLayout, s)
	if err != nil {
		return fmt.Errorf("read time: %w", err)
	}
	*m = moment(t)
	return nil
}
