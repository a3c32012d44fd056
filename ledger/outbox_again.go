package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Replay selects the products to deliver again, and the sinks.
type Replay struct {
	Sinks    []string
	Dataset  string    // empty: all
	From, To time.Time // times of fields, both included; zero: open
	Granule  string    // empty: of every granule
}

// QueueReplay queues the newest revision of every product in a range again,
// unless it was retracted or waits already, and returns the number of
// deliveries. Sinks are idempotent, so a receiver that has it all sees nothing
// new.
func (l *Ledger) QueueReplay(ctx context.Context, r Replay, now time.Time) (n int, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		n, err = queueReplay(ctx, tx, r, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("queue replay: %w", err)
	}
	return n, nil
}

func queueReplay(ctx context.Context, tx *sql.Tx, r Replay, now time.Time) (int, error) {
	to := r.To
	if to.IsZero() {
		to = farFuture()
	}
	publications, err := query(ctx, tx, scanPublication, "SELECT "+publicationColumns+` FROM publication AS p
		WHERE time BETWEEN ? AND ? AND (? = '' OR dataset = ?) AND (? = '' OR name = ?) AND retracted = ''
		AND NOT EXISTS (SELECT 1 FROM publication AS later WHERE later.dataset = p.dataset AND later.name = p.name
			AND later.revision > p.revision AND later.retracted = '')
		ORDER BY time, id`, text(r.From), text(to), r.Dataset, r.Dataset, r.Granule, r.Granule)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range publications {
		for _, sink := range r.Sinks {
			added, err := enqueue(ctx, tx, p, Delivery{Sink: sink, Kind: PublishAgain, Queued: now})
			if err != nil {
				return 0, err
			}
			if added {
				n++
			}
		}
	}
	return n, nil
}

// Retraction names the granule whose products must not be used any more, and
// the reason.
type Retraction struct {
	Dataset string // empty: of every dataset that has the granule
	Granule string
	Why     string
	Sinks   []string // sinks that are told
}

// ErrNoPublication says that no product of the granule was published.
var ErrNoPublication = errors.New("no product of it was published")

// QueueRetraction marks every revision of a granule's product as retracted and
// queues the news to every sink. It returns the newly retracted publications.
func (l *Ledger) QueueRetraction(ctx context.Context, r Retraction, now time.Time) (gone []Publication, err error) {
	if r.Why == "" {
		return nil, fmt.Errorf("retract %s: a retraction needs a reason", r.Granule)
	}
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		gone, err = queueRetraction(ctx, tx, r, now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("retract %s: %w", r.Granule, err)
	}
	return gone, nil
}

func queueRetraction(ctx context.Context, tx *sql.Tx, r Retraction, now time.Time) ([]Publication, error) {
	all, err := query(ctx, tx, scanPublication, "SELECT "+publicationColumns+` FROM publication AS p
		WHERE name = ? AND (? = '' OR dataset = ?) ORDER BY dataset, revision`, r.Granule, r.Dataset, r.Dataset)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, ErrNoPublication
	}
	var gone []Publication
	for _, p := range all {
		if !p.Retracted.IsZero() {
			continue
		}
		p.Retracted, p.Why = now, r.Why
		if err := retract(ctx, tx, p, r.Sinks, now); err != nil {
			return nil, err
		}
		gone = append(gone, p)
	}
	return gone, nil
}

// retract marks one publication as retracted and queues the news to sinks.
func retract(ctx context.Context, tx *sql.Tx, p Publication, sinks []string, now time.Time) error {
	_, err := tx.ExecContext(ctx, "UPDATE publication SET retracted = ?, why = ? WHERE id = ?", text(now), p.Why, p.ID)
	if err != nil {
		return err
	}
	// Deliveries of it that wait or were set aside are dropped: they would come
	// after the retraction.
	_, err = tx.ExecContext(ctx, "DELETE FROM delivery WHERE publication = ? AND kind <> 'retract' AND state = 'aside'", p.ID)
	if err != nil {
		return err
	}
	for _, sink := range sinks {
		if _, err := enqueue(ctx, tx, p, Delivery{Sink: sink, Kind: Retract, Queued: now}); err != nil {
			return err
		}
	}
	return nil
}
