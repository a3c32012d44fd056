package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"lacuna/internal/pause"
	"lacuna/publish"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"

	"lacuna/internal/figure"
)

// producer appends messages to partitions. In a slot that is numbered each is
// there exactly once for as long as the producer lives: an answer that is lost
// makes it repeat the request under the same sequence number, and the broker
// returns the first offset again.
//
// The Writer of kafka-go has no producer ids, which is why it is not used. A
// compacted topic must not be numbered: its cleaner keeps the last batch of
// every producer id, emptied of its records, and kafka-go panics when it reads
// one. There a lost answer leaves a repetition.
type producer struct {
	cluster  *Cluster
	codec    compress.Compression
	patience time.Duration // for one message

	// turn has room for the one whose message is under way: sequence numbers
	// must reach a broker in order. It guards session.
	turn    chan struct{}
	session *session // nil: none, or one whose last request may yet arrive
}

func newProducer(c *Cluster, cfg Config) *producer {
	return &producer{cluster: c, codec: compressions[cfg.Compression], patience: cfg.Timeout, turn: make(chan struct{}, 1)}
}

// session is the id of a producer at the brokers, with its sequence numbers.
type session struct {
	id    int64
	epoch int16
	next  map[slot]int32 // sequence number of the next record
}

// slot is a partition of a topic.
type slot struct {
	topic     string
	partition int
	numbered  bool
}

// errTopicGone says that the topic must be made again before anything can be
// sent.
var errTopicGone = errors.New("topic does not exist")

// send appends an encoded message to a partition and returns its offset once
// every in-sync replica has it. It tries for the producer's patience. The
// batch may be used again afterwards.
func (p *producer) send(ctx context.Context, to slot, b *batch) (int64, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	last := errors.New("the brokers keep other messages waiting")
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return 0, p.giveUp(caller, to, last)
	}
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, time.Second) {
		offset, err := p.try(ctx, to, b)
		if err == nil {
			return offset, nil
		}
		// The client may still be sending the bytes of an attempt that took
		// too long: they are left to it.
		b.content = *bytes.NewBuffer(bytes.Clone(b.content.Bytes()))
		if ctx.Err() == nil {
			last = err // the cause, not the expiry of ctx
		}
		final := p.final(ctx, to, err)
		if final == nil && pause.For(ctx, delay) {
			continue
		}
		// The request may yet be carried out. The next message must not take
		// its sequence number: the broker would mistake it for a repetition.
		p.session = nil
		if final != nil {
			return 0, final
		}
		return 0, p.giveUp(caller, to, last)
	}
}

// giveUp returns why a message was not sent: the last error, unless the caller
// has cancelled.
func (p *producer) giveUp(caller context.Context, to slot, last error) error {
	if caller.Err() != nil {
		return fmt.Errorf("send to %s: %w", to.topic, caller.Err())
	}
	return fmt.Errorf("send to %s for %s: %w", to.topic, figure.Duration(p.patience), p.cluster.explain(last))
}

// try sends a batch once.
func (p *producer) try(ctx context.Context, to slot, b *batch) (int64, error) {
	from, sequence := &session{id: -1, epoch: -1}, int32(-1)
	if to.numbered {
		if p.session == nil {
			s, err := p.open(ctx)
			if err != nil {
				return 0, err
			}
			p.session = s
		}
		from, sequence = p.session, p.session.next[to]
	}
	answer, err := p.cluster.client.RawProduce(ctx, &kafkago.RawProduceRequest{
		Topic: to.topic, Partition: to.partition, RequiredAcks: kafkago.RequireAll,
		RawRecords: protocol.RawRecordSet{Reader: bytes.NewReader(b.stamp(from, sequence))},
	})
	if err != nil {
		return 0, err
	}
	switch {
	case errors.Is(answer.Error, kafkago.OutOfOrderSequenceNumber), errors.Is(answer.Error, kafkago.UnknownProducerId),
		errors.Is(answer.Error, kafkago.InvalidProducerEpoch), errors.Is(answer.Error, kafkago.InvalidProducerIDMapping):
		p.session = nil // the broker has forgotten the producer id: ask for another
		return 0, answer.Error
	case answer.Error != nil:
		return 0, answer.Error
	case sequence == math.MaxInt32:
		p.session = nil
	case to.numbered:
		p.session.next[to] = sequence + 1
	}
	return answer.BaseOffset, nil
}

func (p *producer) open(ctx context.Context) (*session, error) {
	answer, err := p.cluster.client.InitProducerID(ctx, &kafkago.InitProducerIDRequest{ProducerID: -1, ProducerEpoch: -1})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return nil, fmt.Errorf("ask for a producer id: %w", err)
	}
	return &session{id: int64(answer.Producer.ProducerID), epoch: int16(answer.Producer.ProducerEpoch), next: map[slot]int32{}}, nil
}

// final returns the error to report where trying again is of no use, or nil.
func (p *producer) final(ctx context.Context, to slot, err error) error {
	switch {
	case errors.Is(err, kafkago.UnknownTopicOrPartition), errors.Is(err, protocol.ErrNoTopic), errors.Is(err, protocol.ErrNoPartition):
		// A broker that has not heard of a new topic yet answers the same, and
		// so does an outdated cache of the cluster's metadata.
		if _, fresh := p.cluster.Partitions(ctx, to.topic); errors.Is(fresh, ErrGone) {
			return fmt.Errorf("send to %s: %w", to.topic, errTopicGone)
		}
	case errors.Is(err, kafkago.MessageSizeTooLarge), errors.Is(err, kafkago.RecordListTooLarge):
		return fmt.Errorf("send to %s: %w: the topic takes no message of this size: raise its max.message.bytes or lower part_bytes: %w",
			to.topic, publish.ErrPermanent, err)
	case errors.Is(err, kafkago.SASLAuthenticationFailed), errors.Is(err, kafkago.UnsupportedSASLMechanism):
		return p.cluster.explain(err)
	case errors.Is(err, kafkago.TopicAuthorizationFailed), errors.Is(err, kafkago.ClusterAuthorizationFailed):
		return fmt.Errorf("send to %s: the broker does not allow this user to write: %w", to.topic, err)
	}
	return nil
}
