package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lacuna/ledger"
	"lacuna/publish"
)

// clockMargin is by how much the clocks of a bucket, of the host before a
// service was moved and of this one may differ.
const clockMargin = 24 * time.Hour

// changedSince returns from when on a sink has to be compared with the ledger:
// a sink that was compared before in this epoch can be ahead by what was
// published after the ledger's latest product only, if the ledger is an older
// copy. A hundred thousand products that did not change are not looked at.
func (o *Outbox) changedSince(ctx context.Context, sink string) (time.Time, error) {
	before, err := o.book.Compared(ctx, sink, o.me.Epoch)
	if err != nil || !before {
		return time.Time{}, err
	}
	last, err := o.book.LastStored(ctx)
	if err != nil || last.IsZero() {
		return time.Time{}, err
	}
	return last.Add(-clockMargin), nil
}

// ahead is a revision in a sink that the ledger does not know, or knows with
// other bytes.
type ahead struct {
	publish.Holding
	ours string // hash that the ledger has of the revision; empty: none
}

// compare looks for revisions in a sink that the ledger does not have, which
// is so where the state was restored from an older copy, and goes on above
// them.
func (o *Outbox) compare(ctx context.Context, sink Placed) error {
	since, err := o.changedSince(ctx, sink.Name())
	if err != nil {
		return err
	}
	found, err := o.ahead(ctx, sink, since)
	if err != nil {
		return err
	}
	news := 0
	for _, a := range found {
		fresh, err := o.adopt(ctx, sink.Name(), a)
		if err != nil {
			return err
		}
		if fresh {
			news++
		}
	}
	o.tellAhead(sink.Name(), news, found)
	return o.book.SetCompared(ctx, sink.Name(), o.me.Epoch, o.now())
}

// ahead returns what a sink has of others since a time.
func (o *Outbox) ahead(ctx context.Context, sink Placed, since time.Time) (all []ahead, err error) {
	err = sink.Holdings(ctx, since, func(h publish.Holding) error {
		if h.Revision < 1 || h.Revision > publish.MaxRevision {
			o.log.Warn("a revision that nobody can have made was passed over", "sink", sink.Name(), "product", h.Key(), "revision", h.Revision)
			return nil
		}
		ours, known, err := o.book.Knows(ctx, ledger.Taken{Dataset: h.Dataset, Granule: h.Granule, Revision: h.Revision, SHA256: h.SHA256})
		if err != nil || known {
			return err
		}
		all = append(all, ahead{h, ours})
		return nil
	})
	return all, err
}

// adopt has the ledger know a revision as taken.
func (o *Outbox) adopt(ctx context.Context, sink string, a ahead) (news bool, err error) {
	t := ledger.Taken{
		Dataset: a.Dataset, Granule: a.Granule, Revision: a.Revision, Sink: sink, SHA256: a.SHA256, Ours: a.ours, At: o.now(),
	}
	if a.ours != "" {
		news, err = o.book.Displace(ctx, a.Revision, t)
		if news {
			o.tellConflict(t)
		}
		return news, err
	}
	if news, err = o.book.Take(ctx, t); err != nil || a.At.IsZero() {
		return news, err
	}
	// What this state has made since, below that number, is newer all the same,
	// and a sink that remembers no more than the latest would pass over it.
	unheard, err := o.book.Unheard(ctx, t, a.At)
	if err != nil {
		return false, err
	}
	for _, revision := range unheard {
		t.Revision, t.SHA256 = revision, ""
		if t.Ours, _, err = o.book.Promised(ctx, t.Dataset, t.Granule, revision); err != nil {
			return false, err
		}
		if _, err := o.book.Displace(ctx, revision, t); err != nil {
			return false, err
		}
		o.tellConflict(t)
	}
	return news, nil
}

// displace resolves the conflict of a delivery.
func (o *Outbox) displace(ctx context.Context, sink string, p publish.Product, c *publish.Conflict) error {
	t := ledger.Taken{Dataset: p.Dataset, Granule: p.Granule, Revision: p.Revision, Sink: sink, SHA256: c.There, Ours: c.SHA256, At: o.now()}
	if c.Highest > p.Revision {
		above := t
		above.Revision, above.SHA256, above.Ours = c.Highest, "", ""
		if _, err := o.book.Take(ctx, above); err != nil {
			return err
		}
	}
	known, err := o.book.Displace(ctx, p.Revision, t)
	if known {
		o.tellConflict(t)
	}
	return err
}

func (o *Outbox) tellConflict(t ledger.Taken) {
	o.log.Warn("ONE REVISION HAS TWO FILES: the newer bytes get the next revision", "sink", t.Sink, "dataset", t.Dataset,
		"granule", t.Granule, "revision", t.Revision, "sha256_there", t.SHA256, "sha256_here", t.Ours)
}

func (o *Outbox) tellAhead(sink string, news int, found []ahead) {
	if news == 0 {
		return
	}
	a := found[len(found)-1]
	o.log.Warn("THE STATE IS OLDER THAN WHAT WAS PUBLISHED: was it restored from an older copy? What is there is adopted, and new revisions go above it",
		"sink", sink, "revisions", news, "such_as", fmt.Sprintf("%s revision %d of dataset %s", a.Granule, a.Revision, a.Dataset))
}

// adoptFiles takes products into the ledger that the folder of products shows
// and the ledger does not know, with what they were made from: the archive may
// give the same bytes again, and nothing is made of them a second time.
func (o *Outbox) adoptFiles(ctx context.Context, sink Placed) error {
	since, err := o.changedSince(ctx, sink.Name())
	if err != nil {
		return err
	}
	s := o.keeper.Salvage()
	var found []ahead
	err = o.store.Manifests(ctx, since, func(m publish.Manifest) error {
		for i, h := range m.Holdings() {
			ours, known, err := o.book.Knows(ctx, ledger.Taken{Dataset: h.Dataset, Granule: h.Granule, Revision: h.Revision, SHA256: h.SHA256})
			if err != nil {
				return err
			}
			if known || ours != "" || !o.keeper.Configured(h.Dataset) || h.Revision < 1 || h.Revision > publish.MaxRevision {
				continue // where the bytes differ it is a conflict, and no product to be adopted
			}
			if err := s.Add(ctx, m.Dataset, m.Products[i]); err != nil {
				return err
			}
			found = append(found, ahead{Holding: h})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range s.Found() {
		if _, err := o.book.Restore(ctx, f); err != nil {
			return err
		}
	}
	news := 0
	for _, a := range found {
		fresh, err := o.book.Take(ctx, ledger.Taken{
			Dataset: a.Dataset, Granule: a.Granule, Revision: a.Revision, Sink: sink.Name(), SHA256: a.SHA256, At: o.now(),
		})
		if err != nil {
			return err
		}
		if fresh {
			news++
		}
	}
	o.tellAhead(sink.Name(), news, found)
	return nil
}

// lookLimit is how long a pass waits for sinks to be looked at before it
// begins: one that does not answer by then is away.
const lookLimit = 10 * time.Second

// LookFirst is look before a pass over what there is, which would else promise
// revisions that a sink has.
func (o *Outbox) LookFirst(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	o.look(ctx)
}

// look finds out whose the sinks are and compares them with the ledger, all at
// once. An operator should hear at the start, not with the first product.
func (o *Outbox) look(ctx context.Context) {
	done := make(chan struct{})
	for _, g := range o.guards {
		go func() {
			defer func() { done <- struct{}{} }()
			err := g.admit(ctx)
			if err != nil && ctx.Err() == nil && !errors.Is(err, publish.ErrForeign) {
				o.log.Warn("sink is not ready, products wait in the ledger", "sink", g.Name(), "err", err)
			}
		}()
	}
	for range o.guards {
		<-done
	}
}
