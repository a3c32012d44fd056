package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"lacuna/internal/pause"
	"lacuna/publish/kafka"

	kafkago "github.com/segmentio/kafka-go"
)

// follower hands over the events of one partition.
type follower struct {
	*Consumer
	cluster   *kafka.Cluster
	topic     string
	partition int
	position  int64 // offset of the next event
	begun     bool  // the events before position are remembered, and end is known
	end       int64 // offset to stop before, or -1
	commit    func(offset int64) error
}

// handlerError is an error of the handler: it ends Run.
type handlerError struct{ error }

func (e handlerError) Unwrap() error { return e.error }

// run follows the partition until ctx is done (errRebalanced), the handler
// fails, or with Once the end is reached (nil).
func (f *follower) run(ctx context.Context) error {
	var stuck trouble
	for wait := minPause; ; {
		before := f.position
		done, err := f.readOn(ctx)
		if err != nil && stuck.met(f.position > before, errors.Is(err, kafka.ErrUndecodable), f.cfg.Patience) {
			stuck = trouble{}
			err = f.skip(ctx, err)
		}
		if err == nil || f.position > before {
			wait = minPause
		}
		var failed handlerError
		switch {
		case errors.As(err, &failed):
			return failed.error
		case ctx.Err() != nil, errors.Is(err, errRebalanced):
			return errRebalanced
		case done:
			return nil
		case err == nil:
			continue
		}
		f.log.Log(ctx, once(wait), "reading events was interrupted, trying again", "partition", f.partition, "err", err)
		if !pause.For(ctx, wait) {
			return errRebalanced
		}
		wait = min(2*wait, maxPause)
	}
}

// readOn hands over events for a while: a topic that was deleted and made
// again between two requests answers them as if nothing had happened, so it is
// looked at anew now and then. done: with Once, the end is reached.
func (f *follower) readOn(ctx context.Context) (done bool, err error) {
	if err := f.begin(ctx); err != nil {
		return false, err
	}
	while, cancel := ctx, func() {}
	if !f.cfg.Once {
		while, cancel = context.WithTimeout(ctx, f.cfg.LookAgain)
	}
	defer cancel()
	span := kafka.Span{Topic: f.topic, Partition: f.partition, From: f.position, To: f.end}
	var taken error
	err = f.cluster.Read(while, span, func(m kafkago.Message) error {
		taken = f.take(ctx, m)
		return taken
	})
	switch {
	case taken != nil: // also where the time was over by then
		return false, taken
	case while.Err() != nil:
		return false, nil
	}
	return err == nil, err
}

// once returns the level at which to log a failure: a warning the first time,
// debug after that, for a broker may be away for days.
func once(wait time.Duration) slog.Level {
	if wait > minPause {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// Pauses between two attempts to reach a broker.
const (
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// begin sets the offset to read from and, the first time, the offset to stop at
// and the events that were handed over before.
func (f *follower) begin(ctx context.Context) error {
	first, next, err := f.cluster.Bounds(ctx, f.topic, f.partition)
	if err != nil {
		return err
	}
	anew, err := f.madeAnew(ctx, first, next)
	if err != nil {
		return err
	}
	switch {
	case anew:
		f.log.Warn("the events topic was made anew, reading it from the beginning", "partition", f.partition, "offset", f.position)
		f.position, f.begun = first, false
	case f.position == kafkago.LastOffset:
		f.position = next
		// Without this, events that arrive while we are away would be passed
		// over at the next start, which would begin at its own now.
		if err := f.commit(next); err != nil {
			return errRebalanced
		}
	case f.position < first: // never committed, or compaction has gone on
		f.position = first
	}
	if f.begun {
		if f.end > next { // with Once: the topic was cut off meanwhile
			f.end = next
		}
		return nil
	}
	f.end = -1
	if f.cfg.Once {
		f.end = next
	}
	err = f.recall(ctx, max(first, f.position-memorySize))
	f.begun = err == nil
	return err
}

// madeAnew reports whether the partition, which now has the offsets from first
// up to next, is another than the one that was read so far. Its offsets need
// not say so: there may be as many new events as there were old ones.
func (f *follower) madeAnew(ctx context.Context, first, next int64) (bool, error) {
	f.mu.Lock()
	last := f.memory().last
	f.mu.Unlock()
	anew := f.position > next
	switch {
	case anew, last == nil, last.offset < first:
	case last.offset >= next:
		anew = true
	default:
		span := kafka.Span{Topic: f.topic, Partition: f.partition, From: last.offset, To: last.offset + 1}
		err := f.cluster.Read(ctx, span, func(m kafkago.Message) error { // not called where compaction has removed it
			e, err := kafka.ParseEvent(m)
			anew = err != nil || e.ID != last.id
			return nil
		})
		if err != nil && !errors.Is(err, kafka.ErrUndecodable) { // compaction may have left an undecodable batch
			return false, err
		}
	}
	if anew {
		f.mu.Lock()
		f.memory().last = nil
		f.mu.Unlock()
	}
	return anew, nil
}

// recall remembers the events from an offset on up to the position: the group
// has handed them over, or skipped undecodable ones.
func (f *follower) recall(ctx context.Context, from int64) error {
	for from < f.position {
		span := kafka.Span{Topic: f.topic, Partition: f.partition, From: from, To: f.position}
		err := f.cluster.Read(ctx, span, func(m kafkago.Message) error {
			from = m.Offset + 1
			if e, err := kafka.ParseEvent(m); err == nil {
				f.mu.Lock()
				f.memory().add(e.Revised())
				f.memory().last = &place{m.Offset, e.ID}
				f.mu.Unlock()
			}
			return nil
		})
		if !errors.Is(err, kafka.ErrUndecodable) {
			return err
		}
		if from, err = f.readable(ctx, from+1, f.position); err != nil {
			return err
		}
	}
	return nil
}

// memory of the partition; the caller holds mu.
func (f *follower) memory() *memory {
	if f.seen[f.partition] == nil {
		f.seen[f.partition] = &memory{ids: map[string]bool{}}
	}
	return f.seen[f.partition]
}

// take hands over the product of one message of the events topic, unless it is
// a repetition, and commits.
func (f *follower) take(ctx context.Context, m kafkago.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return errRebalanced // another member may have the partition by now
	}
	e, err := kafka.ParseEvent(m)
	switch {
	case errors.Is(err, kafka.ErrNoProduct):
		f.log.Debug("passing over whose the topics are", "partition", m.Partition, "offset", m.Offset)
	case err != nil:
		if err := f.refuse(ctx, m, err); err != nil {
			return err
		}
	case f.memory().has(e.Revised()):
		f.log.Debug("passing over a repetition", "id", e.ID, "offset", m.Offset)
	default:
		whole, err := f.handOver(ctx, e, m)
		if err != nil {
			return err
		}
		if whole { // else a replay is news
			f.memory().add(e.Revised())
		}
	}
	if err == nil {
		f.memory().last = &place{m.Offset, e.ID}
	}
	f.position = m.Offset + 1
	if err := f.commit(f.position); err != nil {
		f.log.Debug("committing did not work", "offset", f.position, "err", err)
		return errRebalanced
	}
	return nil
}

// refuse reports a message that is skipped.
func (f *follower) refuse(ctx context.Context, m kafkago.Message, why error) error {
	f.log.Warn("message skipped", "partition", f.partition, "offset", m.Offset, "err", why)
	if f.cfg.Refused == nil {
		return nil
	}
	r := Refusal{Place: Place{f.partition, m.Offset}, Reason: why}
	for _, h := range m.Headers {
		if h.Key == "ce_id" {
			r.ID = string(h.Value)
		}
	}
	if err := f.cfg.Refused(ctx, r); err != nil {
		return handlerError{fmt.Errorf("skip the message at offset %d: %w", m.Offset, err)}
	}
	return nil
}

// deadline returns until when the parts of an event may turn up. One that was
// written a while ago, as all are to a group that begins, has had its time.
func (f *follower) deadline(m kafkago.Message) time.Time {
	written := time.Now()
	if m.Time.Before(written) && !m.Time.IsZero() {
		written = m.Time
	}
	return written.Add(f.cfg.Patience)
}

// handOver calls the handler; whole: with the file, where there should be one.
func (f *follower) handOver(ctx context.Context, e kafka.Event, m kafkago.Message) (whole bool, err error) {
	p := Product{Event: e, Place: Place{f.partition, m.Offset}}
	if !e.Retracted {
		path, err := f.collect(ctx, e, f.deadline(m))
		var missing missingError
		switch {
		case errors.As(err, &missing):
			p.Missing = err
		case err != nil:
			return false, err
		default:
			p.Path = path
			defer os.Remove(path)
		}
	}
	if err := f.handle(ctx, p); err != nil {
		return false, handlerError{fmt.Errorf("hand over %s: %w", e.ID, err)}
	}
	return p.Missing == nil, nil
}

// memorySize is the number of events of a partition that are remembered: a
// repetition comes within the few that are under way when a publisher is
// killed.
const memorySize = 10_000

// memory is a set of ids that forgets the oldest, and the place of the latest.
type memory struct {
	ids   map[string]bool
	order []string // ring of the ids, once it is full
	next  int      // index of the next id in order
	last  *place   // nil: nothing was read of the present topic
}

// place is the position of an event that was read.
type place struct {
	offset int64
	id     string
}

func (m *memory) has(id string) bool { return m.ids[id] }

func (m *memory) add(id string) {
	if m.ids[id] {
		return
	}
	m.ids[id] = true
	if len(m.order) < memorySize {
		m.order = append(m.order, id)
		return
	}
	delete(m.ids, m.order[m.next])
	m.order[m.next] = id
	m.next = (m.next + 1) % memorySize
}
