package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lacuna/publish"

	kafkago "github.com/segmentio/kafka-go"
)

var _ publish.Place = (*Sink)(nil)

// TypeOwner is the ce_type of the message with the owner of the topics. It is
// not about a product: readers skip it, as every type that they do not know.
const TypeOwner = "lacuna.topics.owner.v1"

// The message has a key of its own, which no product has, for datasets do not
// begin with a dot: compaction keeps the latest for good. It lies in the
// partition that every topic has.
const (
	ownerKey       = ".lacuna-owner"
	ownerPartition = 0
)

// Owner implements publish.Place. It reads the messages since the last call,
// with one request where there are none.
func (s *Sink) Owner(ctx context.Context) (owner publish.Owner, err error) {
	err = s.withWriter(ctx, func(w *writer) error {
		owner, err = w.readOwner(ctx)
		return err
	})
	return owner, err
}

// Claim implements publish.Place.
func (s *Sink) Claim(ctx context.Context, o publish.Owner) error {
	return s.withWriter(ctx, func(w *writer) error { return w.claim(ctx, o) })
}

// Holdings implements publish.Place, from the events that were sent since.
func (s *Sink) Holdings(ctx context.Context, since time.Time, each func(publish.Holding) error) error {
	return s.withWriter(ctx, func(w *writer) error {
		for _, h := range w.announced.holdings(since) {
			if err := each(h); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// readOwner reads on in the partition of the owner.
func (w *writer) readOwner(ctx context.Context) (publish.Owner, error) {
	a := w.announced
	end, err := w.producer.cluster.end(ctx, w.events.name, ownerPartition)
	if err != nil {
		if gone := w.producer.final(ctx, slot{topic: w.events.name}, err); errors.Is(gone, errTopicGone) {
			return publish.Owner{}, gone
		}
		return publish.Owner{}, err
	}
	a.mu.Lock()
	from := a.next
	a.mu.Unlock()
	if end < from {
		return publish.Owner{}, fmt.Errorf("read %s: %w: it was made anew meanwhile", w.events.name, errTopicGone)
	}
	if err := a.read(ctx, w.producer.cluster, Span{Topic: w.events.name, Partition: ownerPartition, From: from, To: end}); err != nil {
		return publish.Owner{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = max(a.next, end)
	return a.owner, nil
}

func (w *writer) claim(ctx context.Context, o publish.Owner) error {
	m, err := ownerMessage(o, w.cfg.Source)
	if err != nil {
		return err
	}
	var b batch
	if err := b.encode(m, time.Now(), w.producer.codec); err != nil {
		return fmt.Errorf("encode owner: %w", err)
	}
	if _, err := w.producer.send(ctx, slot{topic: w.events.name, partition: ownerPartition}, &b); err != nil {
		return fmt.Errorf("send owner: %w", err)
	}
	return nil // it is read back together with earlier messages of others
}

// wrote records a message of our own, so that it is not read back where nobody
// else has written before it.
func (a *announced) wrote(partition int, offset int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if partition == ownerPartition && offset == a.next {
		a.next++
	}
}

func ownerMessage(o publish.Owner, source string) (kafkago.Message, error) {
	value, err := json.Marshal(o)
	if err != nil {
		return kafkago.Message{}, fmt.Errorf("encode owner: %w", err)
	}
	m := kafkago.Message{Key: []byte(ownerKey), Value: value}
	for _, h := range [][2]string{
		{"ce_specversion", "1.0"},
		{"ce_id", fmt.Sprintf("owner/%s/%d", o.State, o.Epoch)},
		{"ce_type", TypeOwner},
		{"ce_source", source},
		{"ce_time", o.Since.UTC().Format(time.RFC3339Nano)},
		{"ce_partitionkey", ownerKey},
		{"content-type", "application/json"},
	} {
		m.Headers = append(m.Headers, kafkago.Header{Key: h[0], Value: []byte(h[1])})
	}
	return m, nil
}

// parseOwner reads a message with the owner of the topics; ok is false for any
// other.
func parseOwner(m kafkago.Message) (o publish.Owner, ok bool) {
	if string(m.Key) != ownerKey || headersOf(m)["ce_type"] != TypeOwner || json.Unmarshal(m.Value, &o) != nil || o.State == "" {
		return publish.Owner{}, false
	}
	return o, true
}

// end returns the offset that the next message of a partition will have.
func (c *Cluster) end(ctx context.Context, topic string, partition int) (int64, error) {
	answer, err := c.client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{
		Topics: map[string][]kafkago.OffsetRequest{topic: {kafkago.LastOffsetOf(partition)}},
	})
	if err != nil {
		return 0, fmt.Errorf("ask for the end of %s/%d: %w", topic, partition, c.explain(err))
	}
	for _, p := range answer.Topics[topic] {
		if p.Error != nil {
			return 0, fmt.Errorf("ask for the end of %s/%d: %w", topic, partition, c.explain(p.Error))
		}
		if p.Partition == partition {
			return p.LastOffset, nil
		}
	}
	return 0, fmt.Errorf("ask for the end of %s/%d: the answer of the broker lacks it", topic, partition)
}
