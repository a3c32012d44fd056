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

// beginner begins transactions.
type beginner interface {
	BeginTx(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error)
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
	if t, ok := parseMoment(s); ok {
		*m = moment(t)
		return nil
	}
	t, err := time.Parse(momentLayout, s)
	if err != nil {
		return fmt.Errorf("read time: %w", err)
	}
	*m = moment(t)
	return nil
}

// parseMoment is time.Parse for momentLayout at half its cost: most of a
// row are times, and a page reads thousands. ok is false for any other text, also
// for a day or an hour that there is not.
func parseMoment(s string) (t time.Time, ok bool) {
	if len(s) != len(momentLayout) || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[19] != '.' || s[29] != 'Z' {
		return t, false
	}
	digits := true
	number := func(from, to int) (n int) {
		for _, c := range []byte(s[from:to]) {
			digits = digits && '0' <= c && c <= '9'
			n = 10*n + int(c-'0')
		}
		return n
	}
	month, day, hour, minute, second := number(5, 7), number(8, 10), number(11, 13), number(14, 16), number(17, 19)
	t = time.Date(number(0, 4), time.Month(month), day, hour, minute, second, number(20, 29), time.UTC)
	return t, digits && int(t.Month()) == month && t.Day() == day && t.Hour() == hour && t.Minute() == minute && t.Second() == second
}
