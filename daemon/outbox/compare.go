package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lacuna/ledger"
	"lacuna/publish"
)

// clockMargin is the largest difference between the clocks of a bucket, of this
// host, and of the host that the service was moved from.
const clockMargin = 24 * time.Hour

// changedSince returns the time from which a sink has to be compared with the
// ledger. A sink that was compared before in this epoch can be ahead only where
// the ledger is an older copy, and then only by products later than the ledger's
// latest one. So a hundred thousand unchanged products are not compared again.
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
	ours string // sha256 of the revision in the ledger; empty: none
}

// compare finds the revisions in a sink that the ledger does not have, as after
// the state was restored from an older copy, and has new revisions go above them.
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
	o.logAhead(sink.Name(), news, found)
	return o.book.SetCompared(ctx, sink.Name(), o.me.Epoch, o.now())
}

// ahead returns the revisions since a time that the ledger does not know.
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

// adopt records in the ledger that a revision is taken.
func (o *Outbox) adopt(ctx context.Context, sink string, a ahead) (news bool, err error) {
	t := ledger.Taken{
		Dataset: a.Dataset, Granule: a.Granule, Revision: a.Revision, Sink: sink, SHA256: a.SHA256, Ours: a.ours, At: o.now(),
	}
	if a.ours != "" {
		news, err = o.book.Displace(ctx, a.Revision, t)
		if news {
			o.logConflict(t)
		}
		return news, err
	}
	if news, err = o.book.Take(ctx, t); err != nil || a.At.IsZero() {
		return news, err
	}
	// Revisions that this state has made since, below that number, are newer all
	// the same, and a sink that remembers only the highest number would pass over
	// them.
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
		o.logConflict(t)
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
		o.logConflict(t)
	}
	return err
}

func (o *Outbox) logConflict(t ledger.Taken) {
	o.log.Warn("ONE REVISION HAS TWO FILES: the newer bytes get the next revision", "sink", t.Sink, "dataset", t.Dataset,
		"granule", t.Granule, "revision", t.Revision, "sha256_there", t.SHA256, "sha256_here", t.Ours)
}

func (o *Outbox) logAhead(sink string, news int, found []ahead) {
	if news == 0 {
		return
	}
	a := found[len(found)-1]
	o.log.Warn("THE STATE IS OLDER THAN WHAT WAS PUBLISHED: was it restored from an older copy? What is there is adopted, and new revisions go above it",
		"sink", sink, "revisions", news, "such_as", fmt.Sprintf("%s revision %d of dataset %s", a.Granule, a.Revision, a.Dataset))
}

// adoptFiles restores to the ledger the products that the folder of products has
// and the ledger does not, with the hash of their granules: if the archive gives
// the same bytes again, no second product is made of them.
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
				continue // other bytes under a known number are a conflict, which compare resolves
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
	o.logAhead(sink.Name(), news, found)
	return nil
}

// lookLimit is how long a pass waits for the sinks before it begins: a sink that
// does not answer by then is away.
const lookLimit = 10 * time.Second

// LookFirst is look with a time limit, for a single pass: without it the pass
// could promise revisions that a sink has already.
func (o *Outbox) LookFirst(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	o.look(ctx)
}

// look checks the owners of the sinks and compares the sinks with the ledger, all
// at once, so that an operator hears of a problem at the start, not with the
// first product.
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
