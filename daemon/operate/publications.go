package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lacuna/ledger"
	"lacuna/publish/disk"
)

// Publications are the queues of the sinks as an operator sees them, beside a
// daemon that may be running. The running daemon carries requests out, or the
// next one to start.
type Publications struct {
	cfg  Settings
	book *ledger.Ledger
	now  func() time.Time
}

// JoinPublications opens the queues of the service that cfg describes.
func JoinPublications(ctx context.Context, cfg Settings) (*Publications, error) {
	book, err := ledger.Join(ctx, cfg.State.Ledger())
	if err != nil {
		return nil, err
	}
	return &Publications{cfg: cfg, book: book, now: time.Now}, nil
}

// Close closes the ledger.
func (p *Publications) Close() error { return p.book.Close() }

// PublishStatus is the state of the queues, with the deliveries that were set
// aside.
type PublishStatus struct {
	Now   time.Time     `json:"now"`
	Sinks []SinkStatus  `json:"sinks"`
	Aside []AsideStatus `json:"aside"` // oldest first, at most a screenful
}

// SinkStatus is the state of the queue of one sink.
type SinkStatus struct {
	Sink       string    `json:"sink"`
	Configured bool      `json:"configured"` // false: its deliveries wait for ever
	Waiting    int       `json:"waiting"`
	Bytes      int64     `json:"bytes"`           // size of the files that wait
	Oldest     time.Time `json:"oldest,omitzero"` // time at which the first of them was queued
	Aside      int       `json:"aside"`
	Delivered  int       `json:"delivered"`
	Attempts   int       `json:"attempts"` // attempts at the head of a queue, the most of any dataset
	Problem    string    `json:"problem,omitempty"`
}

// AsideStatus is a delivery that was set aside.
type AsideStatus struct {
	ID       int64     `json:"id"`
	Sink     string    `json:"sink"`
	Kind     string    `json:"kind"`
	Dataset  string    `json:"dataset"`
	Granule  string    `json:"granule"`
	Revision int       `json:"revision"`
	Problem  string    `json:"problem"`
	At       time.Time `json:"at"`
}

// screenful bounds the list of deliveries that were set aside.
const screenful = 20

// Status returns the state of every queue.
func (p *Publications) Status(ctx context.Context) (PublishStatus, error) {
	s := PublishStatus{Now: p.now(), Aside: []AsideStatus{}}
	backlogs, err := p.book.Backlogs(ctx)
	if err != nil {
		return s, err
	}
	names := p.cfg.Publish.SinkNames()
	for _, b := range backlogs {
		s.Sinks = append(s.Sinks, SinkStatus{
			Sink: b.Sink, Configured: slices.Contains(names, b.Sink), Waiting: b.Waiting, Bytes: b.Bytes, Oldest: b.Oldest,
			Aside: b.Aside, Delivered: b.Delivered, Attempts: b.Attempts, Problem: b.Problem,
		})
	}
	for _, name := range names {
		if !slices.ContainsFunc(s.Sinks, func(row SinkStatus) bool { return row.Sink == name }) {
			s.Sinks = append(s.Sinks, SinkStatus{Sink: name, Configured: true})
		}
	}
	aside, err := p.book.SetAside(ctx, screenful)
	for _, d := range aside {
		s.Aside = append(s.Aside, AsideStatus{
			ID: d.ID, Sink: d.Sink, Kind: string(d.Kind), Dataset: d.Publication.Dataset, Granule: d.Publication.Granule,
			Revision: d.Publication.Revision, Problem: d.Problem, At: d.Ended,
		})
	}
	return s, err
}

// Replay selects the products to be published again.
type Replay struct {
	Sink      string // empty: all configured sinks
	Selection        // none named: all products of the dataset
}

// Replay queues products again and returns the number of deliveries.
func (p *Publications) Replay(ctx context.Context, r Replay) (int, error) {
	sinks, err := p.sinks(r.Sink)
	if err != nil {
		return 0, err
	}
	if r.IsZero() {
		return p.book.QueueReplay(ctx, ledger.Replay{Sinks: sinks, Dataset: r.Dataset}, p.now())
	}
	total := 0
	for _, days := range r.Days {
		from, to := spanOf(days)
		n, err := p.book.QueueReplay(ctx, ledger.Replay{Sinks: sinks, Dataset: r.Dataset, From: from, To: to.Add(24*time.Hour - time.Nanosecond)}, p.now())
		if err != nil {
			return total, err
		}
		total += n
	}
	found, err := p.operations().selected(ctx, Selection{Dataset: r.Dataset, Names: r.Names})
	for _, one := range found {
		n, err := p.book.QueueReplay(ctx, ledger.Replay{Sinks: sinks, Dataset: one.Dataset, Granule: one.Name}, p.now())
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, err
}

// Retracted is a revision that must not be used any more.
type Retracted struct {
	Dataset  string `json:"dataset"`
	Granule  string `json:"granule"`
	Revision int    `json:"revision"`
	Why      string `json:"why"`
}

// Retract marks every revision of the products of the selected granules as
// retracted and queues the retractions to every sink. Of a range those that have
// no product are passed over.
func (p *Publications) Retract(ctx context.Context, s Selection, why string) ([]Retracted, error) {
	found, err := p.operations().selected(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []Retracted
	none := 0
	for _, one := range found {
		gone, err := p.book.QueueRetraction(ctx, ledger.Retraction{
			Dataset: one.Dataset, Granule: one.Name, Why: why, Sinks: p.cfg.Publish.SinkNames(),
		}, p.now())
		if errors.Is(err, ledger.ErrNoPublication) {
			if none++; none == len(found) {
				return nil, err
			}
			continue
		}
		if err != nil {
			return all, err
		}
		for _, g := range gone {
			all = append(all, Retracted{Dataset: g.Dataset, Granule: g.Granule, Revision: g.Revision, Why: g.Why})
		}
	}
	return all, nil
}

// operations returns the questions about granules on the same ledger.
func (p *Publications) operations() *Operations { return New(p.cfg, p.book, p.now) }

// Retry puts the deliveries that were set aside, for one sink or for all, back
// into the queue, and returns their number.
func (p *Publications) Retry(ctx context.Context, sink string) (int, error) {
	sinks, err := p.sinks(sink)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, name := range sinks {
		n, err := p.book.RetryAside(ctx, name, 0)
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// Forget drops the deliveries to a sink that is no longer configured.
func (p *Publications) Forget(ctx context.Context, sink string) (int, error) {
	if slices.Contains(p.cfg.Publish.SinkNames(), sink) {
		return 0, fmt.Errorf("sink %s is configured: take it out of the configuration first", sink)
	}
	return p.book.ForgetSink(ctx, sink)
}

// Expired returns the products that the rules of retention would remove now.
func (p *Publications) Expired(ctx context.Context) ([]disk.Removal, error) {
	due, err := p.cfg.Publish.Store(p.cfg.Products).Plan(p.now(), p.cfg.Publish.Disk.Keep())
	if err != nil {
		return nil, err
	}
	var free []disk.Removal
	for _, r := range due {
		held, err := p.book.Awaited(ctx, r.Dataset, r.Granule, r.Revision)
		if err != nil {
			return nil, err
		}
		if !held {
			free = append(free, r)
		}
	}
	return free, nil
}

// sinks returns the configured sink with a name, or all where it is empty.
func (p *Publications) sinks(name string) ([]string, error) {
	names := p.cfg.Publish.SinkNames()
	if name == "" {
		return names, nil
	}
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("no sink %q is configured, only %s", name, strings.Join(names, ", "))
	}
	return []string{name}, nil
}
