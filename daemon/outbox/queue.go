package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lacuna/daemon/supervise"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/disk"
)

// ledgerQueue is the queue of one sink in the ledger, as its dispatcher sees it.
// The dispatcher calls it before and after every delivery, so these calls are its
// heartbeat.
type ledgerQueue struct {
	book      *ledger.Ledger
	sink      string
	now       func() time.Time
	hashed    *publish.Hashed
	heartbeat *supervise.Heartbeat
}

// Due implements publish.Queue.
func (q ledgerQueue) Due(ctx context.Context) ([]publish.Delivery, error) {
	q.heartbeat.Beat()
	rows, err := q.book.Due(ctx, q.sink)
	if err != nil {
		return nil, err
	}
	due := convert.Each(rows, Delivery)
	for i := range due {
		due[i].Product.Hashed = q.hashed
	}
	return due, nil
}

// Delivery converts a row of the ledger for package publish. A body that cannot be
// read gives a product without a name, and its delivery is set aside.
func Delivery(row ledger.Delivery) publish.Delivery {
	d := publish.Delivery{ID: row.ID, Kind: publish.Kind(row.Kind), Attempts: row.Attempts}
	_ = json.Unmarshal([]byte(row.Publication.Body), &d.Product)
	d.Product.Dataset, d.Product.Granule, d.Product.Revision = row.Publication.Dataset, row.Publication.Granule, row.Publication.Revision
	d.Product.Retracted, d.Product.Why = row.Kind == ledger.Retract, row.Publication.Why
	d.Product.Displaced = row.Kind == ledger.Retract && row.Publication.Displaced
	return d
}

// Delivered implements publish.Queue.
func (q ledgerQueue) Delivered(ctx context.Context, d publish.Delivery) error {
	q.heartbeat.Beat()
	return q.book.EndDelivery(ctx, d.ID, q.now())
}

// Failed implements publish.Queue.
func (q ledgerQueue) Failed(ctx context.Context, d publish.Delivery, problem string, aside bool) error {
	q.heartbeat.Beat()
	return q.book.FailDelivery(ctx, d.ID, problem, aside, q.now())
}

// Queue queues the products of a dataset to every sink.
type Queue struct {
	Book  *ledger.Ledger
	Store disk.Store
	Sinks []string
	Skill bool // queue every new content to be scored
	Now   func() time.Time
	Wake  func() // wakes the dispatchers; nil: there are none
}

// Nudge tells the dispatchers that a delivery was queued.
func (q Queue) Nudge() {
	if q.Wake != nil {
		q.Wake()
	}
}

// again returns why a product is to be made anew as soon as it is stored; empty:
// it is not.
func again(p publish.Product) string {
	if p.Sampling == nil || p.Sampling.Follows == "" {
		return ""
	}
	return fmt.Sprintf("tier %s takes longer than a live product may wait, and was published first by tier %s", p.Sampling.Follows, p.Sampling.Tier)
}

// Add records that a granule's product is stored and queues it to every sink,
// in one transaction.
func (q Queue) Add(ctx context.Context, g ledger.Granule, p publish.Product, product ledger.Product) error {
	before, known, err := q.Book.Current(ctx, g.Dataset, g.Name)
	if err != nil {
		return err
	}
	// Sealed before it is promised: whatever crashes in between, no other bytes
	// get this number.
	if err := q.Store.Seal(p.Path); err != nil {
		return fmt.Errorf("seal product: %w", err)
	}
	if p.Members != nil {
		if err := q.Store.Seal(p.Members.Path); err != nil {
			return fmt.Errorf("seal members: %w", err)
		}
	}
	var moved *ledger.Publication
	switch {
	case known && publish.Day(before.Time) != publish.Day(p.Time):
		moved = &before
	case known:
		p.Supersedes = before.Revision
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode product: %w", err)
	}
	return q.Book.StoreAndQueue(ctx, g.ID, ledger.Outgoing{
		Product:     product,
		Publication: ledger.Publication{Revision: p.Revision, Time: p.Time, File: p.Path, Size: p.Size, Body: string(body)},
		Sinks:       q.Sinks,
		Moved:       moved,
		Skill:       q.Skill,
		Again:       again(p),
	}, q.Now())
}
