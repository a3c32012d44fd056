package consumer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"time"

	"lacuna/internal/pause"
	"lacuna/publish/kafka"

	kafkago "github.com/segmentio/kafka-go"
)

// missingError says that a product is lost: its parts cannot be read, now or
// later.
type missingError struct{ error }

func (e missingError) Unwrap() error { return e.error }

// collect puts the parts of a product together in a temporary file and returns
// its path. It waits for brokers that are away, and until the deadline for
// parts that they may not have heard of yet. A missingError is final.
func (f *follower) collect(ctx context.Context, e kafka.Event, deadline time.Time) (path string, err error) {
	if e.File.Size > f.cfg.MaxBytes {
		return "", missingError{fmt.Errorf("%s has %d bytes, more than the %d that this consumer accepts", e.ID, e.File.Size, f.cfg.MaxBytes)}
	}
	file, err := os.CreateTemp(f.cfg.Dir, ".incoming-*")
	if err != nil {
		return "", handlerError{fmt.Errorf("make a temporary file for %s: %w", e.ID, err)}
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	a := &assembly{event: e, file: file, digest: sha256.New(), position: e.Data.FirstOffset}
	var stuck trouble
	for wait := minPause; ; wait = min(2*wait, maxPause) {
		before := a.position
		span := kafka.Span{Topic: e.Data.Topic, Partition: e.Data.Partition, From: a.position, To: e.Data.LastOffset + 1}
		err := f.cluster.Read(ctx, span, a.add)
		var local handlerError
		switch {
		case err == nil, errors.Is(err, errWhole):
			return file.Name(), a.finish()
		case ctx.Err() != nil:
			return "", errRebalanced
		case errors.As(err, &local):
			return "", err
		case errors.Is(err, kafka.ErrGone) && (!kafka.MayCome(err) || time.Now().After(deadline)):
			return "", missingError{fmt.Errorf("parts of %s: %w", e.ID, err)}
		case !errors.Is(err, kafka.ErrGone) && stuck.met(a.position > before, f.answers(ctx, e, err), f.cfg.Patience):
			return "", missingError{fmt.Errorf("parts of %s cannot be read at offset %d, though the broker answers: %w", e.ID, a.position, err)}
		}
		f.log.Log(ctx, once(wait), "reading parts was interrupted, trying again", "id", e.ID, "parts", a.next, "err", err)
		if !pause.For(ctx, wait) {
			return "", errRebalanced
		}
	}
}

// answers reports whether err is about the parts, and not about a broker that
// is away: the broker has refused the request for good, or it answers a request
// for the offsets of the same partition. A missing right to read the topic is
// not the fault of an event.
func (f *follower) answers(ctx context.Context, e kafka.Event, err error) bool {
	var said kafkago.Error
	if errors.As(err, &said) && !said.Temporary() && !said.Timeout() {
		return e.Data.Topic != kafka.DataTopic(f.cfg.Prefix)
	}
	_, _, err = f.cluster.Bounds(ctx, e.Data.Topic, e.Data.Partition)
	return err == nil
}

// trouble counts failed attempts to read at one offset.
type trouble struct {
	since time.Time // time of the first; zero: none
	times int
}

// leastTimes keeps a single slow request from being taken for lasting trouble.
const leastTimes = 3

// met counts another failed attempt, and reports whether to give up: nothing
// came, the broker answered each time, and patience is over.
func (t *trouble) met(moved, answers bool, patience time.Duration) bool {
	if moved || !answers {
		*t = trouble{}
		return false
	}
	if t.times++; t.times == 1 {
		t.since = time.Now()
	}
	return t.times >= leastTimes && time.Since(t.since) >= patience
}

// assembly is a product that is being put together.
type assembly struct {
	event    kafka.Event
	file     *os.File
	digest   hash.Hash
	next     int   // number of the part that is wanted
	written  int64 // bytes
	position int64 // offset of the next message
}

// add appends the wanted part. Messages of other products, repetitions of a
// part and foreign messages are skipped.
func (a *assembly) add(m kafkago.Message) error {
	a.position = m.Offset + 1
	part, err := kafka.ParsePart(m)
	if err != nil || part.ID != a.event.ID || part.SHA256 != a.event.File.SHA256 || part.Number != a.next {
		return nil
	}
	if a.written+int64(len(m.Value)) > a.event.File.Size {
		return nil // finish will say that it is damaged
	}
	if _, err := a.file.Write(m.Value); err != nil {
		return handlerError{fmt.Errorf("write %s: %w", a.event.ID, err)}
	}
	_, _ = a.digest.Write(m.Value)
	a.next++
	a.written += int64(len(m.Value))
	if a.next == a.event.Data.Parts {
		return errWhole
	}
	return nil
}

// errWhole ends reading: whatever else lies up to the last offset is not ours.
var errWhole = errors.New("every part is there")

// finish checks the whole and syncs it.
func (a *assembly) finish() error {
	e := a.event
	if sum := hex.EncodeToString(a.digest.Sum(nil)); a.next != e.Data.Parts || a.written != e.File.Size || sum != e.File.SHA256 {
		return missingError{fmt.Errorf("%s is damaged: %d of %d parts, %d of %d bytes, sha256 %s instead of %s",
			e.ID, a.next, e.Data.Parts, a.written, e.File.Size, sum, e.File.SHA256)}
	}
	if err := a.file.Sync(); err != nil {
		return handlerError{fmt.Errorf("write %s: %w", e.ID, err)}
	}
	return nil
}
