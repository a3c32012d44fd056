package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Outcome is the result of a reopening.
type Outcome string

// The outcomes.
const (
	Revised   Outcome = "revised"   // there is a new revision
	Unchanged Outcome = "unchanged" // the new neighbours change nothing beyond noise
	Overtaken Outcome = "overtaken" // a revision for another reason saw the neighbours too
	Dropped   Outcome = "dropped"   // it cannot be made anew; the note says why
)

// Reopening is the task to compare a product with a new analysis, because a
// granule came into its window.
type Reopening struct {
	ID             int64
	Dataset        string
	Granule        string    // name of the granule of the product
	Time           time.Time // time of its first field
	Lane           Lane
	Opened, Latest time.Time // when the first and the latest neighbour came, or it was put off last
	Due            time.Time // when it is compared, unless another neighbour comes
	Neighbours     int
	Why            string  // reason, from the latest neighbour
	Outcome        Outcome // empty: it is open
	Ended          time.Time
	Change         float64 // largest, in standard deviations, where it was compared
	Note           string
}

// Placement holds the times of a granule, known once it is read, and the window
// in which they concern other products.
type Placement struct {
	Times []time.Time // times of sensing of its fields
	// Past and Future are the lengths of a product's window before and after
	// its own fields; none is reopened where both are zero.
	Past, Future time.Duration
	// A reopened product is due when no neighbour came for Settle, at the
	// latest MaxWait after the first; and at once when the neighbour is the
	// first within the last Step of its window: no later one is to come.
	Settle, MaxWait time.Duration
	Step            time.Duration // 0: no neighbour is the last
}

// Place records the times of the fields in a granule and reopens the products
// that have it in their window, in one transaction. Placing a granule again at
// the same times changes nothing.
func (l *Ledger) Place(ctx context.Context, id int64, p Placement, now time.Time) (reopened int, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		reopened, err = place(ctx, tx, id, p, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("place granule %d: %w", id, err)
	}
	return reopened, nil
}

func place(ctx context.Context, tx *sql.Tx, id int64, p Placement, now time.Time) (int, error) {
	before, err := timesOf(ctx, tx, "granule = ?", id)
	if err != nil {
		return 0, err
	}
	if err := setTimes(ctx, tx, id, p.Times); err != nil {
		return 0, err
	}
	g, err := byID(ctx, tx, id)
	if err != nil || p.Past == 0 && p.Future == 0 || sameTimes(before, p.Times) {
		return 0, err
	}
	// The replaced revision may have been of other days.
	times, err := timesOf(ctx, tx, "granule = (SELECT id FROM granule WHERE dataset = ? AND name = ? AND revision < ? AND state <> 'quarantined' AND absent = 0 ORDER BY revision DESC LIMIT 1)",
		g.Dataset, g.Name, g.Revision)
	if err != nil {
		return 0, err
	}
	replaced := len(times) > 0
	concerned := map[string]time.Time{}
	for _, t := range append(times, p.Times...) {
		if err := addConcerned(ctx, tx, concerned, g, t.Add(-p.Future), t.Add(p.Past)); err != nil {
			return 0, err
		}
	}
	why := fmt.Sprintf("%s of %s came", g.Name, g.First.Format(time.DateOnly))
	if replaced {
		why = fmt.Sprintf("%s of %s was replaced", g.Name, g.First.Format(time.DateOnly))
	}
	for _, name := range slices.Sorted(maps.Keys(concerned)) { // in the same order whenever it is done
		t := concerned[name]
		r := Reopening{Dataset: g.Dataset, Granule: name, Time: t, Lane: g.Lane, Latest: now, Why: why}
		how := p
		ends, err := endsWindow(ctx, tx, g, r, p)
		if err != nil {
			return 0, err
		}
		if ends {
			how.Settle = 0
		}
		if err := reopen(ctx, tx, r, how); err != nil {
			return 0, err
		}
	}
	return len(concerned), nil
}

// Reopen reopens the product of a granule for another reason than a neighbour, such as a
// covariate that has come: r has dataset, granule, lane and why. It is due as those that
// neighbours reopen, and ok is false where no product of it holds.
func (l *Ledger) Reopen(ctx context.Context, r Reopening, p Placement, now time.Time) (ok bool, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		times, err := query(ctx, tx, func(row scanner) (t time.Time, err error) { return t, row.Scan((*moment)(&t)) },
			"SELECT time FROM publication WHERE dataset = ? AND name = ? AND retracted = '' ORDER BY revision DESC LIMIT 1", r.Dataset, r.Granule)
		if err != nil || len(times) == 0 {
			return err
		}
		ok, r.Time, r.Latest = true, times[0], now
		return reopen(ctx, tx, r, p)
	})
	if err != nil {
		return false, fmt.Errorf("reopen the product of %s: %w", r.Granule, err)
	}
	return ok, nil
}

func timesOf(ctx context.Context, tx *sql.Tx, where string, args ...any) ([]time.Time, error) {
	return query(ctx, tx, func(row scanner) (t time.Time, err error) { return t, row.Scan((*moment)(&t)) },
		"SELECT time FROM field_time WHERE "+where+" ORDER BY time", args...)
}

// sameTimes reports whether a and b hold the same times, in any order.
func sameTimes(a, b []time.Time) bool {
	in := func(t time.Time, set []time.Time) bool {
		for _, s := range set {
			if s.Equal(t) {
				return true
			}
		}
		return false
	}
	for _, t := range a {
		if !in(t, b) {
			return false
		}
	}
	for _, t := range b {
		if !in(t, a) {
			return false
		}
	}
	return true
}

// addConcerned adds the published granules other than g with a field from
// through to, and the times of their products.
func addConcerned(ctx context.Context, tx *sql.Tx, all map[string]time.Time, g Granule, from, to time.Time) error {
	type found struct {
		name string
		time time.Time
	}
	rows, err := query(ctx, tx, func(row scanner) (f found, err error) {
		return f, row.Scan(&f.name, (*moment)(&f.time))
	}, `SELECT p.name, p.time FROM field_time AS f JOIN granule AS g ON g.id = f.granule
		JOIN publication AS p ON p.dataset = g.dataset AND p.name = g.name AND p.revision = g.revision
		WHERE f.dataset = ? AND f.time BETWEEN ? AND ? AND g.name <> ? AND p.retracted = ''`,
		g.Dataset, text(from), text(to), g.Name)
	for _, f := range rows {
		all[f.name] = f.time
	}
	return err
}

// endsWindow reports whether a granule is the first within the last step of the
// window of a product.
func endsWindow(ctx context.Context, tx *sql.Tx, g Granule, r Reopening, p Placement) (bool, error) {
	if p.Step == 0 || p.Future == 0 {
		return false, nil
	}
	var last time.Time
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(f.time), '') FROM field_time AS f JOIN granule AS g ON g.id = f.granule
		WHERE g.dataset = ? AND g.name = ? AND g.state <> 'quarantined'`, r.Dataset, r.Granule).Scan((*moment)(&last))
	if err != nil || last.IsZero() {
		return false, err
	}
	end := last.Add(p.Future)
	var own, others int
	err = tx.QueryRowContext(ctx, `SELECT coalesce(sum(g.id = ?), 0), coalesce(sum(g.id <> ?), 0)
		FROM field_time AS f JOIN granule AS g ON g.id = f.granule
		WHERE f.dataset = ? AND f.time > ? AND f.time <= ? AND g.state <> 'quarantined'`,
		g.ID, g.ID, g.Dataset, text(end.Add(-p.Step)), text(end)).Scan(&own, &others)
	return own > 0 && others == 0, err
}

// reopen opens r, or adds its neighbour to the one that is open.
func reopen(ctx context.Context, tx *sql.Tx, r Reopening, p Placement) error {
	open, err := query(ctx, tx, scanReopening, reopeningQuery+"WHERE dataset = ? AND name = ? AND outcome = ''", r.Dataset, r.Granule)
	if err != nil {
		return err
	}
	if len(open) == 0 {
		_, err := tx.ExecContext(ctx, `INSERT INTO reopening (dataset, name, time, lane, opened, latest, due, neighbours, why)
			VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?)`, r.Dataset, r.Granule, text(r.Time), r.Lane, text(r.Latest), text(r.Latest),
			text(r.Latest.Add(min(p.Settle, p.MaxWait))), r.Why)
		return err
	}
	was := open[0]
	due := r.Latest.Add(p.Settle)
	if last := was.Opened.Add(p.MaxWait); due.After(last) {
		due = last
	}
	if was.Lane == Live {
		r.Lane = Live
	}
	_, err = tx.ExecContext(ctx, "UPDATE reopening SET lane = ?, latest = ?, due = ?, neighbours = neighbours + 1, why = ? WHERE id = ?",
		r.Lane, text(r.Latest), text(due), r.Why, was.ID)
	return err
}

// DueReopening returns the reopened product of a dataset and lane that has been
// due for longest; ok is false where none is due now. One whose neighbour came in the
// future, or that was put off there, by a clock that was set back since, is due too.
func (l *Ledger) DueReopening(ctx context.Context, dataset string, lane Lane, now time.Time) (r Reopening, ok bool, err error) {
	due, err := query(ctx, l.db, scanReopening, reopeningQuery+`WHERE dataset = ? AND lane = ? AND outcome = ''
		AND (due <= ? OR latest > ?) ORDER BY due, id LIMIT 1`, dataset, lane, text(now), text(now))
	if err != nil {
		return Reopening{}, false, fmt.Errorf("look up reopened products of %s: %w", dataset, err)
	}
	if len(due) == 0 {
		return Reopening{}, false, nil
	}
	return due[0], true, nil
}

// NextReopening returns when the next reopened product of a dataset will be due that is
// not due now; ok is false where there is none.
func (l *Ledger) NextReopening(ctx context.Context, dataset string, now time.Time) (due time.Time, ok bool, err error) {
	err = l.db.QueryRowContext(ctx, "SELECT coalesce(min(due), '') FROM reopening WHERE dataset = ? AND outcome = '' AND due > ?",
		dataset, text(now)).Scan((*moment)(&due))
	if err != nil {
		return due, false, fmt.Errorf("look up the next reopened product of %s: %w", dataset, err)
	}
	return due, !due.IsZero(), nil
}

// EndReopening records the end of a reopening: r.Outcome, which is not Revised
// (only Revise gives that), r.Change and r.Note.
func (l *Ledger) EndReopening(ctx context.Context, r Reopening, now time.Time) error {
	if r.Outcome == "" || r.Outcome == Revised {
		return fmt.Errorf("end reopening of %s: outcome is %q, must be unchanged, overtaken or dropped", r.Granule, r.Outcome)
	}
	_, err := l.db.ExecContext(ctx, "UPDATE reopening SET outcome = ?, ended = ?, change = ?, note = ? WHERE id = ? AND outcome = ''",
		r.Outcome, text(now), r.Change, r.Note, r.ID)
	if err != nil {
		return fmt.Errorf("end reopening of %s: %w", r.Granule, err)
	}
	return nil
}

// PostponeReopening delays a reopening that failed now, so that the others get
// their turn before it is tried again. It counts as news of now, as a neighbour does:
// after a clock that was ahead was set back it is due at once.
func (l *Ledger) PostponeReopening(ctx context.Context, id int64, now time.Time, wait time.Duration) error {
	_, err := l.db.ExecContext(ctx, "UPDATE reopening SET latest = ?, due = ? WHERE id = ? AND outcome = ''", text(now), text(now.Add(wait)), id)
	if err != nil {
		return fmt.Errorf("postpone reopening %d: %w", id, err)
	}
	return nil
}

// closeReopening ends the open reopening of a product within another
// transaction.
func closeReopening(ctx context.Context, tx *sql.Tx, r Reopening, now time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE reopening SET outcome = ?, ended = ?, change = ?
		WHERE dataset = ? AND name = ? AND outcome = ''`, r.Outcome, text(now), r.Change, r.Dataset, r.Granule)
	return err
}

// ReopeningQuery selects reopenings.
type ReopeningQuery struct {
	Dataset  string
	Granule  string // empty: of all
	OpenOnly bool
	Limit    int // 0: all
}

// Reopenings returns reopenings: those of a granule newest first, else the open
// ones in the order in which they are due, else all, newest first.
func (l *Ledger) Reopenings(ctx context.Context, q ReopeningQuery) ([]Reopening, error) {
	if q.Limit <= 0 {
		q.Limit = -1
	}
	where, args := "WHERE dataset = ? ORDER BY id DESC LIMIT ?", []any{q.Dataset, q.Limit}
	switch {
	case q.Granule != "" && q.OpenOnly:
		where, args = "WHERE dataset = ? AND name = ? AND outcome = '' LIMIT ?", []any{q.Dataset, q.Granule, q.Limit}
	case q.Granule != "":
		where, args = "WHERE dataset = ? AND name = ? ORDER BY id DESC LIMIT ?", []any{q.Dataset, q.Granule, q.Limit}
	case q.OpenOnly:
		where = "WHERE dataset = ? AND outcome = '' ORDER BY lane DESC, due, id LIMIT ?"
	}
	rs, err := query(ctx, l.db, scanReopening, reopeningQuery+where, args...)
	if err != nil {
		return nil, fmt.Errorf("list reopened products of %s: %w", q.Dataset, err)
	}
	return rs, nil
}

const reopeningQuery = `SELECT id, dataset, name, time, lane, opened, latest, due, neighbours, why, outcome, ended, change, note FROM reopening `

func scanReopening(row scanner) (r Reopening, err error) {
	return r, row.Scan(&r.ID, &r.Dataset, &r.Granule, (*moment)(&r.Time), &r.Lane, (*moment)(&r.Opened), (*moment)(&r.Latest),
		(*moment)(&r.Due), &r.Neighbours, &r.Why, &r.Outcome, (*moment)(&r.Ended), &r.Change, &r.Note)
}

// ErrNothingToRevise says that a granule is not known, or has no content that
// could be made into a product.
var ErrNothingToRevise = errors.New("there is no granule of that name whose product could be made anew")

// Reason says what led to the reopening, for people.
func (r Reopening) Reason() string {
	if r.Neighbours > 1 {
		return fmt.Sprintf("%d granules in its window are new or replaced, the latest: %s", r.Neighbours, r.Why)
	}
	return r.Why
}
