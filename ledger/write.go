package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Arrive records that an object is whole in the spool. Where the newest
// revision under its name has the same bytes, only size, time and path are
// brought up to date and fresh is false; else the bytes become the next
// revision, in state Fetched.
func (l *Ledger) Arrive(ctx context.Context, a Arrival, now time.Time) (g Granule, fresh bool, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		var txErr error
		g, fresh, txErr = arrive(ctx, tx, a, now)
		return txErr
	})
	if err != nil {
		return Granule{}, false, fmt.Errorf("record arrival of %s: %w", a.Name, err)
	}
	return g, fresh, nil
}

func arrive(ctx context.Context, tx *sql.Tx, a Arrival, now time.Time) (Granule, bool, error) {
	if a.SHA256 == "" || a.SpoolPath == "" {
		return Granule{}, false, errors.New("hash or path is empty")
	}
	g, known, err := newest(ctx, tx, a.Dataset, a.Name)
	if err != nil {
		return Granule{}, false, err
	}
	before := g
	fresh := !known || g.SHA256 != a.SHA256
	if known && (!fresh || g.SHA256 == "") { // the same bytes, or refused unread before and read now
		a.Lane = cmp.Or(a.Lane, g.Lane)
		g.Arrival = a
		err = setArrival(ctx, tx, g)
	} else {
		g, err = insertNext(ctx, tx, Granule{Arrival: a, Revision: g.Revision}, now)
	}
	if err == nil {
		err = setObject(ctx, tx, a.Object, g.ID)
	}
	if err != nil || !fresh {
		return g, false, err
	}
	if before.Absent && (before.State == Fetched || before.State == Filled) { // no product was made in its place
		if err := retireAbsence(ctx, tx, before, "it has come", nil, now); err != nil {
			return Granule{}, false, err
		}
	}
	g, err = step(ctx, tx, g, move{to: Fetched, at: now})
	return g, true, err
}

// Refuse records an object that must not be fetched, such as one with an unfit
// name, as quarantined with the reason. It is on record from then on, so that
// it is refused once and not at every listing.
func (l *Ledger) Refuse(ctx context.Context, o Object, reason string, now time.Time) (g Granule, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		var txErr error
		g, txErr = refuse(ctx, tx, o, move{to: Quarantined, reason: reason, at: now})
		return txErr
	})
	if err != nil {
		return Granule{}, fmt.Errorf("record refusal of %q: %w", o.Name, err)
	}
	return g, nil
}

func refuse(ctx context.Context, tx *sql.Tx, o Object, m move) (Granule, error) {
	g, known, err := newest(ctx, tx, o.Dataset, o.Name)
	if err != nil {
		return Granule{}, err
	}
	if known && g.SHA256 == "" {
		g.Object = o
		err = setArrival(ctx, tx, g)
	} else {
		g, err = insertNext(ctx, tx, Granule{Arrival: Arrival{Object: o}, Revision: g.Revision}, m.at)
	}
	if err != nil {
		return Granule{}, err
	}
	if err := setObject(ctx, tx, o, g.ID); err != nil {
		return Granule{}, err
	}
	return step(ctx, tx, g, m)
}

// Advance moves a granule on to state to: Filled, Announced, or from
// Quarantined back to Fetched to try it again. Store and Quarantine are the
// ways into the other states. A granule that is there already stays as it is.
func (l *Ledger) Advance(ctx context.Context, id int64, to State, now time.Time) error {
	return l.move(ctx, id, move{to: to, at: now})
}

// Store moves a filled granule on to Stored with its product. Storing the
// same product again changes nothing; another product under the same revision
// is refused.
func (l *Ledger) Store(ctx context.Context, id int64, p Product, now time.Time) error {
	return l.move(ctx, id, move{to: Stored, product: p, at: now})
}

// Quarantine sets a granule aside. The reason names the fault and its remedy. A
// granule that is there already keeps its first reason.
func (l *Ledger) Quarantine(ctx context.Context, id int64, reason string, now time.Time) error {
	return l.move(ctx, id, move{to: Quarantined, reason: reason, at: now})
}

// SetTimes records the times of sensing of the fields in a granule, in place
// of any recorded before.
func (l *Ledger) SetTimes(ctx context.Context, id int64, times []time.Time) error {
	err := transact(ctx, l.db, func(tx *sql.Tx) error { return setTimes(ctx, tx, id, times) })
	if err != nil {
		return fmt.Errorf("record times of granule %d: %w", id, err)
	}
	return nil
}

func setTimes(ctx context.Context, tx *sql.Tx, id int64, times []time.Time) error {
	if len(times) == 0 {
		return errors.New("no times")
	}
	g, err := byID(ctx, tx, id)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM field_time WHERE granule = ?", id); err != nil {
		return err
	}
	first, last := times[0], times[0]
	for _, t := range times {
		if t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
		_, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO field_time (dataset, time, granule) VALUES (?, ?, ?)",
			g.Dataset, text(t), id)
		if err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, "UPDATE granule SET first_time = ?, last_time = ? WHERE id = ?", text(first), text(last), id)
	return err
}

// move is a step of the work on a granule.
type move struct {
	to      State
	at      time.Time
	reason  string  // with Quarantined
	why     string  // with Fetched, where it was set aside before
	product Product // with Stored
}

// fault returns an error where m lacks something, or nil.
func (m move) fault() error {
	switch {
	case m.to == Quarantined && m.reason == "":
		return errors.New("a quarantine needs a reason")
	case m.to == Stored && (m.product.Path == "" || m.product.SHA256 == ""):
		return errors.New("a stored granule needs its product")
	}
	return nil
}

// note is the text beside the state in the history.
func (m move) note() string { return cmp.Or(m.reason, m.product.Path, m.why) }

func (l *Ledger) move(ctx context.Context, id int64, m move) error {
	err := transact(ctx, l.db, func(tx *sql.Tx) error {
		g, err := byID(ctx, tx, id)
		if err != nil {
			return err
		}
		_, err = step(ctx, tx, g, m)
		return err
	})
	if err != nil {
		return fmt.Errorf("move granule %d to %s: %w", id, m.to, err)
	}
	return nil
}

// step takes g to m.to and adds a line to its history. It is the only place
// where a state changes.
func step(ctx context.Context, tx *sql.Tx, g Granule, m move) (Granule, error) {
	if err := m.fault(); err != nil {
		return Granule{}, err
	}
	switch {
	case g.State == m.to && m.to == Stored && g.Product != m.product:
		return Granule{}, fmt.Errorf("%w: %s revision %d has the product %s (sha256 %s) already",
			ErrTransition, g.Name, g.Revision, g.Product.Path, g.Product.SHA256)
	case g.State == m.to:
		return g, nil
	case !g.State.mayBecome(m.to), m.to == Fetched && g.SHA256 == "":
		return Granule{}, fmt.Errorf("%w: %s revision %d is %s", ErrTransition, g.Name, g.Revision, g.State)
	}
	g.State, g.Reason, g.Changed = m.to, m.reason, m.at
	if m.to == Stored {
		g.Product = m.product
	}
	_, err := tx.ExecContext(ctx, `UPDATE granule SET state = ?, reason = ?, product_path = ?, product_sha256 = ?,
		observed = ?, covered = ?, changed = ? WHERE id = ?`, g.State, g.Reason, g.Product.Path, g.Product.SHA256,
		g.Product.Observed, g.Product.Covered, text(g.Changed), g.ID)
	if err != nil {
		return Granule{}, err
	}
	return g, addHistory(ctx, tx, g.ID, Event{State: m.to, At: m.at, Note: m.note()})
}

// insertNext is insert with the number that follows the revision of g.
func insertNext(ctx context.Context, tx *sql.Tx, g Granule, now time.Time) (Granule, error) {
	next, err := nextRevision(ctx, tx, g)
	if err != nil {
		return Granule{}, err
	}
	g.Revision = next
	return insert(ctx, tx, g, now)
}

// insert adds g as a discovered granule and returns it with its id.
func insert(ctx context.Context, tx *sql.Tx, g Granule, now time.Time) (Granule, error) {
	g.State, g.Recorded, g.Changed = Discovered, now, now
	g.Lane, g.Cause = cmp.Or(g.Lane, Live), cmp.Or(g.Cause, FromArchive)
	result, err := tx.ExecContext(ctx, `INSERT INTO granule (dataset, name, revision, sha256, size, mod_time, spool_path,
		state, reason, first_time, last_time, product_path, product_sha256, recorded, changed, lane, cause, why, absent)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', '', '', '', '', ?, ?, ?, ?, ?, ?)`,
		g.Dataset, g.Name, g.Revision, g.SHA256, g.Size, text(g.ModTime), g.SpoolPath, g.State, text(now), text(now),
		g.Lane, g.Cause, g.Why, g.Absent)
	if err != nil {
		return Granule{}, err
	}
	if g.ID, err = result.LastInsertId(); err != nil {
		return Granule{}, err
	}
	return g, addHistory(ctx, tx, g.ID, Event{State: Discovered, At: now, Note: g.Why})
}

// setArrival writes hash, size, time and path of g.
func setArrival(ctx context.Context, tx *sql.Tx, g Granule) error {
	_, err := tx.ExecContext(ctx, "UPDATE granule SET sha256 = ?, size = ?, mod_time = ?, spool_path = ? WHERE id = ?",
		g.SHA256, g.Size, text(g.ModTime), g.SpoolPath, g.ID)
	return err
}

func addHistory(ctx context.Context, tx *sql.Tx, id int64, e Event) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO history (granule, state, at, note) VALUES (?, ?, ?, ?)",
		id, e.State, text(e.At), e.Note)
	return err
}
