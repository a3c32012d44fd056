package kafka

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"lacuna/internal/pause"
	"lacuna/publish"

	kafkago "github.com/segmentio/kafka-go"
)

// Sink publishes products to the two topics. It implements publish.Sink.
type Sink struct {
	cfg Config
	log *slog.Logger

	mu     sync.Mutex // guards writer; held while it is made
	writer *writer    // nil: not connected yet, or the topics are gone
	opened *Cluster   // cluster of writer, kept where the topics are gone
}

var _ publish.Sink = (*Sink)(nil)

// New returns a Sink. It checks cfg and touches neither the network nor the
// disk; Check, or else the first product, does.
func New(cfg Config, log *slog.Logger) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("kafka config: %w", err)
	}
	return &Sink{cfg: cfg, log: log.With("component", "kafka")}, nil
}

// Name is "kafka:" and the prefix of the topics.
func (s *Sink) Name() string { return "kafka:" + s.cfg.Prefix }

// Check finds the cluster, makes or verifies the topics, and reads back the
// announced events. An error names the remedy.
func (s *Sink) Check(ctx context.Context) error {
	_, err := s.connect(ctx)
	return err
}

// Close ends the connections to the cluster.
func (s *Sink) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened != nil {
		s.opened.Close()
	}
	s.writer, s.opened = nil, nil
}

// Publish sends the parts of p and then its event, unless this revision or a
// later one is already announced. It returns nil when the brokers have
// acknowledged all of it, and an error within the configured timeout of the
// message that did not get through.
func (s *Sink) Publish(ctx context.Context, p publish.Product) error {
	return s.deliver(ctx, p, func(w *writer) error {
		if err := w.announced.conflict(p); err != nil {
			return err
		}
		if last := w.announced.of(p.Key()); last.revision >= p.Revision {
			return nil
		}
		return w.publish(ctx, p.ID(), p)
	})
}

// Replay sends a product that was announced before once more, for readers that
// have lost it or whose topic has forgotten the parts. Its parts lie elsewhere
// now, so that the event has another body and another id; Event.Revised tells
// readers that it is the same product. A revision that is not the current one is
// left alone.
func (s *Sink) Replay(ctx context.Context, p publish.Product) error {
	return s.deliver(ctx, p, func(w *writer) error {
		if err := w.announced.conflict(p); err != nil {
			return err
		}
		if last := w.announced.of(p.Key()); last.revision > p.Revision || (last.revision == p.Revision && last.retracted) {
			return nil
		}
		return w.publish(ctx, againID(p, time.Now()), p)
	})
}

// Retract sends a tombstone for p that says why, unless it was sent before.
func (s *Sink) Retract(ctx context.Context, p publish.Product) error {
	return s.deliver(ctx, p, func(w *writer) error {
		key := p.Key()
		if w.announced.of(key).revision > p.Revision {
			key = p.ID() // its successor stays
		}
		if last := w.announced.of(key); last.revision == p.Revision && last.retracted {
			return nil
		}
		if err := w.announced.conflict(p); err != nil {
			if p.Displaced {
				return nil // these bytes were never announced
			}
			return err
		}
		return w.announce(ctx, key, newRetraction(p))
	})
}

// deliver checks p and calls do. Topics that were deleted meanwhile are made
// again once, if that is allowed.
func (s *Sink) deliver(ctx context.Context, p publish.Product, do func(*writer) error) error {
	if err := p.Check(); err != nil {
		return err
	}
	if !plainName(p.Name) || !plainName(p.Dataset) {
		return fmt.Errorf("%w: %s: file name %q or dataset %q cannot be the name of a file", publish.ErrPermanent, p.ID(), p.Name, p.Dataset)
	}
	return s.withWriter(ctx, do)
}

// withWriter calls do with the writer of the cluster.
func (s *Sink) withWriter(ctx context.Context, do func(*writer) error) error {
	for again := false; ; again = true {
		w, err := s.connect(ctx)
		if err != nil {
			return err
		}
		err = do(w)
		if !errors.Is(err, errTopicGone) {
			return err
		}
		s.forget(w)
		if again {
			return err
		}
		s.log.Warn("a topic is gone", "err", err)
	}
}

// connect returns the writer of the cluster and makes it if need be.
func (s *Sink) connect(ctx context.Context) (*writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer != nil {
		return s.writer, nil
	}
	if s.opened == nil {
		cluster, err := s.cfg.Open()
		if err != nil {
			return nil, err
		}
		s.opened = cluster
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout+connectTimeout)
	defer cancel()
	settled := time.Now().Add(min(s.cfg.Timeout, requestTimeout))
	for {
		w, err := openWriter(ctx, s.opened, s.cfg)
		if err == nil {
			s.writer = w
			s.log.Info("kafka topics are ready", "events", w.events.name, "data", w.data.name, "announced", len(w.announced.last))
			return w, nil
		}
		// A broker may not have heard yet of a topic that another has just made.
		var answer kafkago.Error
		passing := errors.Is(err, ErrGone) || (errors.As(err, &answer) && answer.Temporary())
		if !passing || time.Now().After(settled) || !pause.For(ctx, 100*time.Millisecond) {
			return nil, err
		}
	}
}

// openWriter makes or verifies the topics, reads back the events and returns a
// writer.
func openWriter(ctx context.Context, c *Cluster, cfg Config) (*writer, error) {
	events, data, err := ensureTopics(ctx, c, cfg)
	if err != nil {
		return nil, err
	}
	known, err := readAnnounced(ctx, c, events)
	if err != nil {
		return nil, err
	}
	return &writer{cfg: cfg, events: events, data: data, announced: known, producer: newProducer(c, cfg)}, nil
}

// connectTimeout bounds verifying the topics and reading back the events: a
// hundred thousand take about two seconds.
const connectTimeout = time.Minute

func (s *Sink) forget(w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == w {
		s.writer = nil
	}
}

// writer publishes to a cluster whose topics were verified.
type writer struct {
	cfg          Config
	events, data topic
	producer     *producer
	announced    *announced
}

// publish sends the parts of p and then its event, both under id.
func (w *writer) publish(ctx context.Context, id string, p publish.Product) error {
	if err := p.CheckMembers(); err != nil {
		return err
	}
	to := slot{topic: w.data.name, partition: spread(p.Key(), w.data.partitions), numbered: true}
	place, err := w.sendFile(ctx, to, id, p)
	if err != nil {
		return fmt.Errorf("send the parts of %s: %w", p.ID(), err)
	}
	e := newEvent(p, place)
	e.ID = id
	return w.announce(ctx, p.Key(), e)
}

// announce sends e under key and records it.
func (w *writer) announce(ctx context.Context, key string, e Event) error {
	m, err := e.message(w.cfg.Source)
	if err != nil {
		return fmt.Errorf("%w: encode event %s: %w", publish.ErrPermanent, e.ID, err)
	}
	m.Key = []byte(key)
	var b batch
	if err := b.encode(m, time.Now(), w.producer.codec); err != nil {
		return fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	to := slot{topic: w.events.name, partition: spread(e.Dataset, w.events.partitions)}
	now := time.Now()
	offset, err := w.producer.send(ctx, to, &b)
	if err != nil {
		return fmt.Errorf("send event %s: %w", e.ID, err)
	}
	w.announced.record(key, e, now)
	w.announced.wrote(to.partition, offset)
	return nil
}

// spread returns the partition of a name. It must never change: a key that
// moved to another partition would be kept twice by compaction.
func spread(name string, partitions int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % uint32(partitions))
}

// partMessage frames one piece of a product, which is to be its value.
func partMessage(key string, part Part) kafkago.Message {
	return kafkago.Message{Key: []byte(key), Headers: part.headers()}
}
