package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"lacuna/publish/kafka"
	"lacuna/publish/kafka/brokertest"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// broker is a Kafka broker.
type broker struct {
	address string
	pause   func() (resume func())
	resume  func() // from the last pause; nil: there was none
	restart func() // as after a crash; nil where it cannot be

	mu     sync.Mutex
	events map[string]kafka.Event // all that were ever seen on the topic
	twice  []string               // events of one revision that differ
	lost   bool                   // of events; until they were sent again
}

// newBroker starts Apache Kafka, or one in this process for the short run.
func newBroker(t testing.TB, real bool) *broker {
	t.Helper()
	if real {
		c := brokertest.Start(t, brokertest.Options{})
		return &broker{
			address: c.Addrs()[0], pause: func() func() { return c.Freeze(0) },
			restart: func() { c.Kill(0); c.Restart(0) }, events: map[string]kafka.Event{},
		}
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1), kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "1000"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &broker{address: c.ListenAddrs()[0], events: map[string]kafka.Event{}, pause: func() func() {
		over := make(chan struct{})
		c.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			select {
			case <-over:
				c.DropControl()
			case <-time.After(20 * time.Second):
			}
			return nil, nil, false
		})
		return sync.OnceFunc(func() { close(over) })
	}}
}

// admin asks the broker as an operator would.
func (b *broker) admin(ctx context.Context, ask func(context.Context, *kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.address), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return ask(ctx, kadm.NewClient(client))
}

// deleteTopic deletes a topic with all that is in it.
func (b *broker) deleteTopic(ctx context.Context, topic string) error {
	b.lost = true
	return b.admin(ctx, func(ctx context.Context, a *kadm.Client) error {
		_, err := a.DeleteTopics(ctx, topic)
		return err
	})
}

// truncate deletes what is in a topic.
func (b *broker) truncate(ctx context.Context, topic string) error {
	b.lost = true
	return b.admin(ctx, func(ctx context.Context, a *kadm.Client) error {
		ends, err := a.ListEndOffsets(ctx, topic)
		if err != nil {
			return err
		}
		_, err = a.DeleteRecords(ctx, ends.Offsets())
		return err
	})
}

// harvest reads the events that are there. What was there once and was deleted is
// remembered: receivers may have read it. A broker that was just started does not lead
// its partitions yet.
func (b *broker) harvest(ctx context.Context) (err error) {
	for range 20 {
		if err = b.read(ctx); err == nil {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return err
}

func (b *broker) read(ctx context.Context) error {
	c, err := kafka.Connection{Brokers: []string{b.address}}.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	topic := kafka.EventsTopic(prefix)
	partitions, err := c.Partitions(ctx, topic)
	if errors.Is(err, kafka.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range partitions {
		first, next, err := c.Bounds(ctx, topic, p.ID)
		if err != nil {
			return err
		}
		if err := c.Read(ctx, kafka.Span{Topic: topic, Partition: p.ID, From: first, To: next}, b.take); err != nil {
			return err
		}
	}
	return nil
}

func (b *broker) take(m kafkago.Message) error {
	e, err := kafka.ParseEvent(m)
	if errors.Is(err, kafka.ErrNoProduct) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("message %d: %w", m.Offset, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := fmt.Sprintf("%s/%s/r%d", e.Dataset, e.Granule, e.Revision)
	if before, known := b.events[key]; known && !e.Retracted && !before.Retracted && before.File.SHA256 != e.File.SHA256 {
		b.twice = append(b.twice, fmt.Sprintf("%s was announced with sha256 %.8s and %.8s", key, before.File.SHA256, e.File.SHA256))
	}
	if e.Retracted {
		e.File = b.events[key].File
	}
	b.events[key] = e
	return nil
}
