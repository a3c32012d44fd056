package intake

import (
	"context"
	"iter"
	"time"

	"lacuna/fetch"
	"lacuna/internal/convert"
	"lacuna/ledger"
)

// deliveries adapts the ledger to the watcher of one dataset: neither package
// imports the other, so their types are converted here.
type deliveries struct {
	dataset  string
	ledger   *ledger.Ledger
	backfill bool              // new granules belong to the backfill lane
	arrived  func(name string) // called with the names of new granules that do not
}

func (d deliveries) Known(ctx context.Context) iter.Seq2[fetch.Known, error] {
	return func(yield func(fetch.Known, error) bool) {
		for o, err := range d.ledger.Objects(ctx, d.dataset) {
			if !yield(known(o), err) {
				return
			}
		}
	}
}

func (d deliveries) Holding(ctx context.Context, sha256 string) ([]fetch.Known, error) {
	held, err := d.ledger.Holding(ctx, d.dataset, sha256)
	return convert.Each(held, known), err
}

func (d deliveries) Record(ctx context.Context, changes ...fetch.Change) error {
	err := d.ledger.Batch(ctx, func(b ledger.Batch) error {
		for _, c := range changes {
			if err := d.record(ctx, b, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.Kind == fetch.Arrived && !d.backfill && c.Lane != fetch.Backfill {
			d.arrived(c.Object.Name)
		}
	}
	return nil
}

func (d deliveries) record(ctx context.Context, b ledger.Batch, c fetch.Change) error {
	o := ledger.Object{
		Dataset: d.dataset, Name: c.Object.Name, Size: c.Object.Size, ModTime: c.Object.ModTime,
		ETag: c.Object.ETag, MD5: c.Object.MD5,
	}
	arrival := ledger.Arrival{Object: o, SHA256: c.Granule.SHA256, SpoolPath: c.Granule.Path, Lane: ledger.Live}
	if d.backfill || c.Lane == fetch.Backfill {
		arrival.Lane = ledger.Backfill
	}
	switch c.Kind {
	case fetch.Arrived:
		_, _, err := b.Arrive(ctx, arrival, c.At)
		return err
	case fetch.SetAside:
		return b.SetAside(ctx, arrival, c.Reason, c.At)
	case fetch.Refused:
		return b.Refuse(ctx, o, c.Reason, c.At)
	case fetch.Moved:
		return b.Move(ctx, o, c.From)
	case fetch.Vanished:
		return b.Vanish(ctx, o, c.At)
	case fetch.Touched, fetch.Returned:
		return b.Relist(ctx, o)
	}
	panic("intake: no line in the ledger for " + c.Kind)
}

func (d deliveries) LastPoll(ctx context.Context) (time.Time, error) {
	return d.ledger.LastPoll(ctx, d.dataset)
}

func (d deliveries) Polled(ctx context.Context, at time.Time) error {
	return d.ledger.Polled(ctx, d.dataset, at)
}

// known converts a row of the ledger for the watcher.
func known(o ledger.Listed) fetch.Known {
	return fetch.Known{
		Object: fetch.Object{Name: o.Name, Size: o.Size, ModTime: o.ModTime, ETag: o.ETag, MD5: o.MD5},
		SHA256: o.SHA256, Aside: o.State == ledger.Quarantined, Vanished: o.Vanished,
	}
}
