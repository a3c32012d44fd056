package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"lacuna/publish"

	kafkago "github.com/segmentio/kafka-go"
)

// announced remembers the last event of every product. The topic itself is the
// store: compaction bounds it to one event a granule, some hundred bytes each.
type announced struct {
	mu    sync.Mutex // guards the fields below
	last  map[string]announcement
	owner publish.Owner // zero: nobody has claimed the topic
	next  int64         // offset in the partition of the owner from which nothing was read yet
}

// announcement is the last event under one key.
type announcement struct {
	revision  int
	sha256    string // empty: not known, for a tombstone has none
	at        int64  // seconds since 1970, of the message
	retracted bool
	own       bool // the key is that of its product, not of a superseded revision
}

// readAnnounced reads the events topic from its beginning.
func readAnnounced(ctx context.Context, c *Cluster, events topic) (*announced, error) {
	a := &announced{last: map[string]announcement{}}
	for partition := range events.partitions {
		first, next, err := c.Bounds(ctx, events.name, partition)
		if err != nil {
			return nil, err
		}
		if err := a.read(ctx, c, Span{Topic: events.name, Partition: partition, From: first, To: next}); err != nil {
			return nil, err
		}
		if partition == ownerPartition {
			a.next = next
		}
	}
	return a, nil
}

// read records a span of the events topic.
func (a *announced) read(ctx context.Context, c *Cluster, span Span) error {
	err := c.Read(ctx, span, func(m kafkago.Message) error {
		if owner, ok := parseOwner(m); ok {
			a.recordOwner(owner)
			return nil
		}
		e, err := ParseEvent(m)
		if errors.Is(err, ErrNotOurs) || e.Revision > publish.MaxRevision {
			return nil // readers skip it too, or it is not a message of Lacuna
		}
		a.record(string(m.Key), e, m.Time)
		return err
	})
	if err != nil {
		return fmt.Errorf("read back the announced events: %w", err)
	}
	return nil
}

// record keeps an event that was sent at a time under key.
func (a *announced) record(key string, e Event, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.last[key]
	next := announcement{revision: e.Revision, sha256: e.File.SHA256, at: at.Unix(), retracted: e.Retracted, own: key == e.Key()}
	switch {
	case e.Revision > last.revision:
		a.last[key] = next
	case e.Revision == last.revision && !last.retracted:
		// The first bytes under a number keep it, whatever a second writer
		// sends.
		next.sha256 = cmp.Or(last.sha256, next.sha256)
		a.last[key] = next
	}
	// Else it is a late repetition of an older revision, or of one before its
	// retraction, and changes nothing.
}

// recordOwner keeps a claim; one of an earlier epoch is ignored.
func (a *announced) recordOwner(o publish.Owner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.Epoch >= a.owner.Epoch {
		a.owner = o
	}
}

// conflict returns a *publish.Conflict where the revision of p was announced
// with other bytes.
func (a *announced) conflict(p publish.Product) error {
	last := a.of(p.Key())
	if last.revision != p.Revision || !publish.Differs(last.sha256, p.SHA256) {
		return nil
	}
	return &publish.Conflict{ID: p.ID(), SHA256: p.SHA256, There: last.sha256, Highest: last.revision}
}

// holdings returns the holding of every product with an event since a time.
func (a *announced) holdings(since time.Time) []publish.Holding {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []publish.Holding
	for key, last := range a.last {
		dataset, granule, ok := strings.Cut(key, "/")
		if !ok || !last.own || last.at < since.Unix() {
			continue
		}
		all = append(all, publish.Holding{
			Dataset: dataset, Granule: granule, Revision: last.revision, SHA256: last.sha256, Retracted: last.retracted, At: time.Unix(last.at, 0).UTC(),
		})
	}
	return all
}

// of returns the last announcement under key; revision 0: none.
func (a *announced) of(key string) announcement {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[key]
}
