package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Listed is an object of an archive with the state of its newest content.
type Listed struct {
	Object             // as it was last listed
	SHA256   string    // empty where it was refused unread
	State    State     // state of the granule that it holds
	Vanished time.Time // since when it is no longer listed; zero while it is
}

const listedQuery = `SELECT o.dataset, o.name, o.size, o.mod_time, o.etag, o.md5, g.sha256, g.state, o.vanished_at
	FROM object AS o JOIN granule AS g ON g.id = o.granule `

func scanListed(row scanner) (o Listed, err error) {
	return o, row.Scan(&o.Dataset, &o.Name, &o.Size, (*moment)(&o.ModTime), &o.ETag, &o.MD5, &o.SHA256, &o.State,
		(*moment)(&o.Vanished))
}

// Objects yields the objects of a dataset in the order of the bytes of their
// names, one at a time, so that memory does not grow with the archive. The
// ledger does nothing else meanwhile: a call from within the loop would wait
// for ever.
func (l *Ledger) Objects(ctx context.Context, dataset string) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		fail := func(err error) { yield(Listed{}, fmt.Errorf("list objects of %s: %w", dataset, err)) }
		rows, err := l.db.QueryContext(ctx, listedQuery+"WHERE o.dataset = ? ORDER BY o.name", dataset)
		if err != nil {
			fail(err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			o, err := scanListed(rows)
			if err != nil {
				fail(err)
				return
			}
			if !yield(o, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			fail(err)
		}
	}
}

// Holding returns the objects of a dataset whose newest content has this hash.
func (l *Ledger) Holding(ctx context.Context, dataset, sha256 string) ([]Listed, error) {
	held, err := query(ctx, l.db, scanListed, listedQuery+`WHERE g.dataset = ? AND g.sha256 = ? ORDER BY o.name`, dataset, sha256)
	if err != nil {
		return nil, fmt.Errorf("list objects of %s with content %s: %w", dataset, sha256, err)
	}
	return held, nil
}

// Batch is a set of changes that are made together or not at all.
type Batch struct{ tx *sql.Tx }

// Batch runs work and makes its changes: they are on the disk when Batch
// returns nil, and none was made where it returns an error. The work uses the
// batch and nothing else of the ledger.
func (l *Ledger) Batch(ctx context.Context, work func(b Batch) error) error {
	return transact(ctx, l.db, func(tx *sql.Tx) error { return work(Batch{tx: tx}) })
}

// Arrive is Ledger.Arrive as part of a batch.
func (b Batch) Arrive(ctx context.Context, a Arrival, now time.Time) (g Granule, fresh bool, err error) {
	g, fresh, err = arrive(ctx, b.tx, a, now)
	if err != nil {
		return Granule{}, false, fmt.Errorf("record arrival of %s: %w", a.Name, err)
	}
	return g, fresh, nil
}

// SetAside records an object whose bytes are not a usable granule as
// quarantined, with the reason. It is tried again when the archive shows other
// bytes, or when an operator asks for it.
func (b Batch) SetAside(ctx context.Context, a Arrival, reason string, now time.Time) error {
	g, _, err := arrive(ctx, b.tx, a, now)
	if err == nil {
		_, err = step(ctx, b.tx, g, move{to: Quarantined, reason: reason, at: now})
	}
	if err != nil {
		return fmt.Errorf("record that %s was set aside: %w", a.Name, err)
	}
	return nil
}

// Refuse is Ledger.Refuse as part of a batch.
func (b Batch) Refuse(ctx context.Context, o Object, reason string, now time.Time) error {
	if _, err := refuse(ctx, b.tx, o, move{to: Quarantined, reason: reason, at: now}); err != nil {
		return fmt.Errorf("record refusal of %q: %w", o.Name, err)
	}
	return nil
}

// Relist records the present listing of a known object. Its content is
// unchanged.
func (b Batch) Relist(ctx context.Context, o Object) error {
	return b.mustChange(ctx, o.Name, `UPDATE object SET size = ?, mod_time = ?, etag = ?, md5 = ?, vanished_at = ''
		WHERE dataset = ? AND name = ?`, o.Size, text(o.ModTime), o.ETag, o.MD5, o.Dataset, o.Name)
}

// Move records that o holds the content that the object from holds.
func (b Batch) Move(ctx context.Context, o Object, from string) error {
	return b.mustChange(ctx, o.Name, `INSERT INTO object (dataset, name, size, mod_time, etag, md5, granule, vanished_at)
		SELECT dataset, ?, ?, ?, ?, ?, granule, '' FROM object WHERE dataset = ? AND name = ?
		ON CONFLICT (dataset, name) DO UPDATE SET size = excluded.size, mod_time = excluded.mod_time, etag = excluded.etag,
			md5 = excluded.md5, granule = excluded.granule, vanished_at = ''`,
		o.Name, o.Size, text(o.ModTime), o.ETag, o.MD5, o.Dataset, from)
}

// Vanish records that an object is no longer listed.
func (b Batch) Vanish(ctx context.Context, o Object, now time.Time) error {
	return b.mustChange(ctx, o.Name, "UPDATE object SET vanished_at = ? WHERE dataset = ? AND name = ?", text(now), o.Dataset, o.Name)
}

// mustChange runs a statement that changes the row of one object.
func (b Batch) mustChange(ctx context.Context, name, statement string, args ...any) error {
	result, err := b.tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("record object %q: %w", name, err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("record object %q: %w", name, errors.Join(err, errors.New("no such object in the ledger")))
	}
	return nil
}

// setObject writes that o is listed and holds the granule with this id.
func setObject(ctx context.Context, tx *sql.Tx, o Object, granule int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO object (dataset, name, size, mod_time, etag, md5, granule, vanished_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, '') ON CONFLICT (dataset, name) DO UPDATE SET size = excluded.size,
		mod_time = excluded.mod_time, etag = excluded.etag, md5 = excluded.md5, granule = excluded.granule, vanished_at = ''`,
		o.Dataset, o.Name, o.Size, text(o.ModTime), o.ETag, o.MD5, granule)
	return err
}

// LastPoll returns when the archive of a dataset was last seen whole; the zero
// time where it never was.
func (l *Ledger) LastPoll(ctx context.Context, dataset string) (time.Time, error) {
	var at time.Time
	err := l.db.QueryRowContext(ctx, "SELECT at FROM poll WHERE dataset = ?", dataset).Scan((*moment)(&at))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, fmt.Errorf("look up last poll of %s: %w", dataset, err)
	}
	return at, nil
}

// Polled records that the archive of a dataset was seen whole.
func (l *Ledger) Polled(ctx context.Context, dataset string, at time.Time) error {
	_, err := l.db.ExecContext(ctx, `INSERT INTO poll (dataset, at) VALUES (?, ?)
		ON CONFLICT (dataset) DO UPDATE SET at = excluded.at`, dataset, text(at))
	if err != nil {
		return fmt.Errorf("record poll of %s: %w", dataset, err)
	}
	return nil
}
