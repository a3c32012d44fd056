package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	kafkago "github.com/segmentio/kafka-go"
)

// announced remembers what the events topic says last of every product. The
// topic itself is where this is kept: compaction bounds it to one event a
// granule, some hundred bytes each.
type announced struct {
	mu   sync.Mutex // guards last
	last map[string]announcement
}

// announcement is the last word under one key.
type announcement struct {
	revision  int
	retracted bool
}

// readAnnounced reads the events topic from its beginning.
func readAnnounced(ctx context.Context, c *Cluster, events topic) (*announced, error) {
	a := &announced{last: map[string]announcement{}}
	for partition := range events.partitions {
		first, next, err := c.Bounds(ctx, events.name, partition)
		if err != nil {
			return nil, err
		}
		err = c.Read(ctx, Span{Topic: events.name, Partition: partition, From: first, To: next}, func(m kafkago.Message) error {
			e, err := ParseEvent(m)
			if errors.Is(err, ErrNotOurs) {
				return nil // readers pass over it too
			}
			a.record(string(m.Key), e)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read back what was announced: %w", err)
		}
	}
	return a, nil
}

// record takes note of an event under key.
func (a *announced) record(key string, e Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.last[key]
	// A late repetition of an older revision, or of one before its retraction,
	// changes nothing.
	if e.Revision > last.revision || (e.Revision == last.revision && !last.retracted) {
		a.last[key] = announcement{revision: e.Revision, retracted: e.Retracted}
	}
}

// of returns the last word under key; revision 0: none.
func (a *announced) of(key string) announcement {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[key]
}
