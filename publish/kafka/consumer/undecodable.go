package consumer

import (
	"context"
	"errors"
	"fmt"

	"lacuna/publish/kafka"

	kafkago "github.com/segmentio/kafka-go"
)

// skip moves the position behind messages that cannot be decoded, however often
// they are asked for, and reports them.
func (f *follower) skip(ctx context.Context, why error) error {
	_, next, err := f.cluster.Bounds(ctx, f.topic, f.partition)
	if err != nil {
		return err
	}
	behind, err := f.readable(ctx, f.position+1, next)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return errRebalanced // another member may have the partition by now
	}
	why = fmt.Errorf("the events at the offsets %d to %d: %w", f.position, behind-1, why)
	if err := f.refuse(ctx, kafkago.Message{Offset: f.position}, why); err != nil {
		return err
	}
	f.position = behind
	if err := f.commit(f.position); err != nil {
		f.log.Debug("committing did not work", "offset", f.position, "err", err)
		return errRebalanced
	}
	return nil
}

// readable returns the first offset from one on at which messages can be
// decoded, or end. A batch is decoded as a whole, and its length cannot be told
// from outside, so every offset is tried.
func (f *follower) readable(ctx context.Context, from, end int64) (int64, error) {
	for ; from < end; from++ {
		span := kafka.Span{Topic: f.topic, Partition: f.partition, From: from, To: from + 1}
		err := f.cluster.Read(ctx, span, func(kafkago.Message) error { return nil })
		if err == nil || !errors.Is(err, kafka.ErrUndecodable) {
			return from, err
		}
	}
	return from, nil
}
