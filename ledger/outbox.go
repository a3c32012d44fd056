package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Publication is a revision of a product that receivers were promised.
type Publication struct {
	ID        int64
	Dataset   string
	Granule   string // name of the granule it was made from
	Revision  int
	Time      time.Time // time of its first field
	File      string    // path of the file of this revision
	Size      int64     // bytes of the file
	Body      string    // description for sinks, as JSON; the ledger does not read it
	Stored    time.Time
	Retracted time.Time // zero: not retracted
	Why       string    // reason of the retraction
	Displaced bool      // retracted because a sink has other bytes under its number
}

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of a delivery.
const (
	Waiting   DeliveryState = "waiting"
	Delivered DeliveryState = "delivered"
	Aside     DeliveryState = "aside" // refused for good; needs an operator
)

// DeliveryKind is the message to a sink about a publication.
type DeliveryKind string

// The kinds of deliveries.
const (
	Publish      DeliveryKind = "publish" // a new revision
	Retract      DeliveryKind = "retract" // the revision must not be used any more
	PublishAgain DeliveryKind = "replay"  // the revision again, for receivers that lost it
)

// Delivery is one message to one sink.
type Delivery struct {
	ID          int64 // deliveries to a sink are due in the order of their ids, per dataset
	Sink        string
	Kind        DeliveryKind
	State       DeliveryState
	Attempts    int
	Problem     string // error of the last failed attempt
	Queued      time.Time
	Ended       time.Time // when it was delivered or set aside
	Publication Publication
}

// Outgoing is a product with its publication and its sinks.
type Outgoing struct {
	Product     Product
	Publication Publication // ID, Stored and the granule's name and dataset are filled in; Revision 0: that of the granule
	Sinks       []string
	// Moved is the publication of the revision before where that one has
	// another time, and so another place: it is retracted, for the new one does
	// not replace it there.
	Moved *Publication
	Skill bool   // whether the granule is to be scored as well
	Again string // why the product is to be made anew at once; empty: it is not
}

// StoreAndQueue moves a filled granule on to Stored and queues a delivery to
// every sink, in one transaction: a product that is stored is announced,
// whatever happens next. Doing the same again changes nothing.
func (l *Ledger) StoreAndQueue(ctx context.Context, id int64, o Outgoing, now time.Time) error {
	err := transact(ctx, l.db, func(tx *sql.Tx) error { return storeAndQueue(ctx, tx, id, o, now) })
	if err != nil {
		return fmt.Errorf("store and queue product of granule %d: %w", id, err)
	}
	return nil
}

func storeAndQueue(ctx context.Context, tx *sql.Tx, id int64, o Outgoing, now time.Time) error {
	g, err := byID(ctx, tx, id)
	if err != nil {
		return err
	}
	if r := o.Publication.Revision; r != 0 && r != g.Revision {
		return fmt.Errorf("%w: %s is revision %d, and its product was made as %d", ErrRenumbered, g.Name, g.Revision, r)
	}
	if g.State == Stored || g.State == Announced {
		if g.Product != o.Product {
			return fmt.Errorf("%w: %s revision %d has the product %s already", ErrTransition, g.Name, g.Revision, g.Product.Path)
		}
		return nil
	}
	if g, err = step(ctx, tx, g, move{to: Stored, product: o.Product, at: now}); err != nil {
		return err
	}
	if o.Moved != nil {
		o.Moved.Why = fmt.Sprintf("revision %d has another time", g.Revision)
		if err := retract(ctx, tx, *o.Moved, o.Sinks, now); err != nil {
			return err
		}
	}
	if err := retireAbsences(ctx, tx, g, o.Sinks, now); err != nil {
		return err
	}
	if err := closeReopening(ctx, tx, Reopening{Dataset: g.Dataset, Granule: g.Name, Outcome: Overtaken}, now); err != nil {
		return err
	}
	if o.Again != "" {
		r := Reopening{Dataset: g.Dataset, Granule: g.Name, Time: o.Publication.Time, Lane: g.Lane, Latest: now, Why: o.Again}
		if err := reopen(ctx, tx, r, Placement{}); err != nil {
			return err
		}
	}
	if o.Skill {
		if err := queueSkills(ctx, tx, g, now); err != nil {
			return err
		}
	}
	p := o.Publication
	result, err := tx.ExecContext(ctx, `INSERT INTO publication (granule, dataset, name, revision, time, file, size, body, stored)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		g.ID, g.Dataset, g.Name, g.Revision, text(p.Time), p.File, p.Size, p.Body, text(now))
	if err != nil {
		return err
	}
	if p.ID, err = result.LastInsertId(); err != nil {
		return err
	}
	p.Dataset = g.Dataset
	for _, sink := range o.Sinks {
		if _, err := enqueue(ctx, tx, p, Delivery{Sink: sink, Kind: Publish, Queued: now}); err != nil {
			return err
		}
	}
	return nil
}

// enqueue adds a delivery of p unless the same one is waiting already.
func enqueue(ctx context.Context, tx *sql.Tx, p Publication, d Delivery) (added bool, err error) {
	result, err := tx.ExecContext(ctx, `INSERT INTO delivery (sink, dataset, publication, kind, state, queued)
		VALUES (?, ?, ?, ?, 'waiting', ?) ON CONFLICT DO NOTHING`, d.Sink, p.Dataset, p.ID, d.Kind, text(d.Queued))
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// EndDelivery records that a delivery was made. A granule whose product every
// sink has is Announced. Ending a delivery again changes nothing.
func (l *Ledger) EndDelivery(ctx context.Context, id int64, now time.Time) error {
	err := transact(ctx, l.db, func(tx *sql.Tx) error { return endDelivery(ctx, tx, id, now) })
	if err != nil {
		return fmt.Errorf("end delivery %d: %w", id, err)
	}
	return nil
}

func endDelivery(ctx context.Context, tx *sql.Tx, id int64, now time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE delivery SET state = 'delivered', attempts = attempts + 1, problem = '', ended = ?
		WHERE id = ? AND state <> 'delivered'`, text(now), id)
	if err != nil {
		return err
	}
	var granule int64
	err = tx.QueryRowContext(ctx, `SELECT p.granule FROM delivery AS d JOIN publication AS p ON p.id = d.publication
		WHERE d.id = ? AND NOT EXISTS (SELECT 1 FROM delivery AS other
			WHERE other.publication = p.id AND other.kind = 'publish' AND other.state <> 'delivered')`, id).Scan(&granule)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	g, err := byID(ctx, tx, granule)
	if err != nil {
		return err
	}
	if g.State != Stored {
		return nil
	}
	_, err = step(ctx, tx, g, move{to: Announced, at: now})
	return err
}

// FailDelivery records a failed attempt. With aside the delivery leaves the
// queue until RetryAside, so that later ones are not held up.
func (l *Ledger) FailDelivery(ctx context.Context, id int64, problem string, aside bool, now time.Time) error {
	if problem == "" {
		return fmt.Errorf("record attempt of delivery %d: no problem is given", id)
	}
	state, ended := Waiting, ""
	if aside {
		state, ended = Aside, text(now)
	}
	_, err := l.db.ExecContext(ctx, `UPDATE delivery SET state = ?, attempts = attempts + 1, problem = ?, ended = ?
		WHERE id = ? AND state = 'waiting'`, state, problem, ended, id)
	if err != nil {
		return fmt.Errorf("record attempt of delivery %d: %w", id, err)
	}
	return nil
}

// RetryAside puts the deliveries that were set aside for a sink back into its
// queue, at their former places, and returns their number. An id other than 0
// selects one.
func (l *Ledger) RetryAside(ctx context.Context, sink string, id int64) (int, error) {
	// Where the same delivery waits already, a replay has queued it.
	result, err := l.db.ExecContext(ctx, `UPDATE OR IGNORE delivery SET state = 'waiting', ended = ''
		WHERE state = 'aside' AND sink = ? AND (? = 0 OR id = ?)`, sink, id, id)
	if err != nil {
		return 0, fmt.Errorf("retry deliveries to %s: %w", sink, err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// ForgetSink drops the deliveries that wait for a removed sink, and returns
// their number.
func (l *Ledger) ForgetSink(ctx context.Context, sink string) (int, error) {
	result, err := l.db.ExecContext(ctx, "DELETE FROM delivery WHERE sink = ? AND state <> 'delivered'", sink)
	if err != nil {
		return 0, fmt.Errorf("forget sink %s: %w", sink, err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}
