package kafka

import (
	"bytes"
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

	mu     sync.Mutex // guards line; held while it is made
	line   *line      // nil: the cluster has not been seen yet, or its topics went
	opened *Cluster   // the cluster of line, kept where the topics went
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

// Check finds the cluster, makes or verifies the topics, and reads back what
// was announced. An error says what an operator should change.
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
	s.line, s.opened = nil, nil
}

// Publish sends the parts of p and then its event, unless this revision or a
// later one is already announced. It returns nil when the brokers have
// acknowledged all of it, and an error within the configured timeout of the
// message that did not get through.
func (s *Sink) Publish(ctx context.Context, p publish.Product) error {
	return s.deliver(ctx, p, func(l *line) error {
		if err := l.announced.conflict(p); err != nil {
			return err
		}
		if last := l.announced.of(p.Key()); last.revision >= p.Revision {
			return nil
		}
		return l.publish(ctx, p)
	})
}

// Replay sends a product that was announced before once more, for readers that
// have lost it or whose topic has forgotten the parts. Readers that remember
// its id ignore it. A revision that is not the current one is left alone.
func (s *Sink) Replay(ctx context.Context, p publish.Product) error {
	return s.deliver(ctx, p, func(l *line) error {
		if err := l.announced.conflict(p); err != nil {
			return err
		}
		if last := l.announced.of(p.Key()); last.revision > p.Revision || (last.revision == p.Revision && last.retracted) {
			return nil
		}
		return l.publish(ctx, p)
	})
}

// Retract sends a tombstone for p that says why, unless it was sent before.
func (s *Sink) Retract(ctx context.Context, p publish.Product) error {
	return s.deliver(ctx, p, func(l *line) error {
		key := p.Key()
		if l.announced.of(key).revision > p.Revision {
			key = p.ID() // its successor stays
		}
		if last := l.announced.of(key); last.revision == p.Revision && last.retracted {
			return nil
		}
		if err := l.announced.conflict(p); err != nil {
			if p.Displaced {
				return nil // these bytes were never announced
			}
			return err
		}
		return l.announce(ctx, key, newRetraction(p))
	})
}

// deliver checks p and does one thing with it. Topics that were deleted under
// our hands are made again once, if that is allowed.
func (s *Sink) deliver(ctx context.Context, p publish.Product, do func(*line) error) error {
	if err := p.Check(); err != nil {
		return err
	}
	if !plainName(p.Name) || !plainName(p.Dataset) {
		return fmt.Errorf("%w: %s: file name %q or dataset %q cannot be the name of a file", publish.ErrPermanent, p.ID(), p.Name, p.Dataset)
	}
	return s.withLine(ctx, do)
}

// withLine does one thing with the line to the cluster.
func (s *Sink) withLine(ctx context.Context, do func(*line) error) error {
	for again := false; ; again = true {
		l, err := s.connect(ctx)
		if err != nil {
			return err
		}
		err = do(l)
		if !errors.Is(err, errTopicGone) {
			return err
		}
		s.forget(l)
		if again {
			return err
		}
		s.log.Warn("a topic is gone", "err", err)
	}
}

// connect returns the line to the cluster and makes it if need be.
func (s *Sink) connect(ctx context.Context) (*line, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line != nil {
		return s.line, nil
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
		l, err := lookAround(ctx, s.opened, s.cfg)
		if err == nil {
			s.line = l
			s.log.Info("kafka topics are ready", "events", l.events.name, "data", l.data.name, "announced", len(l.announced.last))
			return l, nil
		}
		// A broker may not have heard yet of a topic that another has just made.
		var answer kafkago.Error
		passing := errors.Is(err, ErrGone) || (errors.As(err, &answer) && answer.Temporary())
		if !passing || time.Now().After(settled) || !pause.For(ctx, 100*time.Millisecond) {
			return nil, err
		}
	}
}

// lookAround makes or verifies the topics and reads back the events.
func lookAround(ctx context.Context, c *Cluster, cfg Config) (*line, error) {
	events, data, err := ensureTopics(ctx, c, cfg)
	if err != nil {
		return nil, err
	}
	known, err := readAnnounced(ctx, c, events)
	if err != nil {
		return nil, err
	}
	return &line{cfg: cfg, events: events, data: data, announced: known, producer: newProducer(c, cfg)}, nil
}

// connectTimeout is allowed for looking at the topics and reading back the
// events: a hundred thousand take about two seconds.
const connectTimeout = time.Minute

func (s *Sink) forget(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == l {
		s.line = nil
	}
}

// line is a cluster whose topics have been looked at.
type line struct {
	cfg          Config
	events, data topic
	producer     *producer
	announced    *announced
}

func (l *line) publish(ctx context.Context, p publish.Product) error {
	to := slot{topic: l.data.name, partition: spread(p.Key(), l.data.partitions), numbered: true}
	place, err := l.sendFile(ctx, to, p)
	if err != nil {
		return fmt.Errorf("send the parts of %s: %w", p.ID(), err)
	}
	return l.announce(ctx, p.Key(), newEvent(p, place))
}

// announce sends e under key and takes note of it.
func (l *line) announce(ctx context.Context, key string, e Event) error {
	m, err := e.message(l.cfg.Source)
	if err != nil {
		return fmt.Errorf("%w: encode event %s: %w", publish.ErrPermanent, e.ID, err)
	}
	m.Key = []byte(key)
	var batch bytes.Buffer
	if err := encode(&batch, m, time.Now(), l.producer.codec); err != nil {
		return fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	to := slot{topic: l.events.name, partition: spread(e.Dataset, l.events.partitions)}
	now := time.Now()
	offset, err := l.producer.send(ctx, to, &batch)
	if err != nil {
		return fmt.Errorf("send event %s: %w", e.ID, err)
	}
	l.announced.record(key, e, now)
	l.announced.wrote(to.partition, offset)
	return nil
}

// spread returns the partition of a name. It must never change: a key that
// moved to another partition would be kept twice by compaction.
func spread(name string, partitions int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % uint32(partitions))
}

// partMessage frames one piece of a product.
func partMessage(key string, part Part, value []byte) kafkago.Message {
	return kafkago.Message{Key: []byte(key), Headers: part.headers(), Value: value}
}
