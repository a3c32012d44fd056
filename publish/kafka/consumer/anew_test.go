package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/publish/kafka/consumer"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// whileHanding runs a consumer that does something while the first product is
// handed to it, so that the reader finds the outcome at its next request.
func whileHanding(t *testing.T, cfg consumer.Config, do func()) <-chan string {
	t.Helper()
	cfg.LookAgain = 200 * time.Millisecond
	ids := make(chan string, 100)
	first := true
	c := newConsumer(t, cfg, func(_ context.Context, p consumer.Product) error {
		if first {
			first = false
			do()
		}
		ids <- p.ID
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run() = %v, want nil after cancellation", err)
		}
	})
	return ids
}

func wantNext(t *testing.T, ids <-chan string, want string) {
	t.Helper()
	select {
	case got := <-ids:
		if got != want {
			t.Errorf("handed over %s, want %s", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("%s was not handed over", want)
	}
}

func deleteTopics(t *testing.T, broker *kfake.Cluster) {
	t.Helper()
	for _, topic := range []string{"lacuna.events", "lacuna.data"} {
		if err := broker.DeleteTopic(topic); err != nil {
			t.Error(err)
		}
	}
}

// The new topic has as many events as the old one had, and no request failed in
// between: only the content of the events tells the two apart.
func TestTopicMadeAnewUnseenIsReadFromItsBeginning(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a, b, c := newProduct(t, "sea", "a", 1, 10), newProduct(t, "sea", "b", 1, 10), newProduct(t, "sea", "c", 1, 10)
	mustPublish(t, sink, a)
	ids := whileHanding(t, consumerConfig(t, broker.ListenAddrs()), func() {
		deleteTopics(t, broker)
		mustPublish(t, sink, b) // where a was
	})
	wantNext(t, ids, a.ID())
	wantNext(t, ids, b.ID())
	mustPublish(t, sink, c)
	wantNext(t, ids, c.ID())
}

// While there is no topic the group has nothing to assign. The consumer neither
// keeps the brokers busy with it nor sleeps on when there is one again.
func TestTopicThatIsAwayIsWaitedFor(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a, b := newProduct(t, "sea", "a", 1, 10), newProduct(t, "sea", "b", 1, 10)
	mustPublish(t, sink, a)
	var joins atomic.Int64
	broker.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		joins.Add(1)
		return nil, nil, false
	})
	ids := whileHanding(t, consumerConfig(t, broker.ListenAddrs()), func() { deleteTopics(t, broker) })
	wantNext(t, ids, a.ID())
	time.Sleep(2500 * time.Millisecond)
	if n := joins.Load(); n > 10 {
		t.Errorf("the group was joined %d times while there was no topic", n)
	}
	mustPublish(t, sink, b)
	wantNext(t, ids, b.ID())
}

func TestSlowHandlerThatFailsEndsRun(t *testing.T) {
	broker := fakeBroker(t)
	mustPublish(t, newSink(t, sinkConfig(broker.ListenAddrs())), newProduct(t, "sea", "a", 1, 10))
	full, calls := errors.New("the disk is full"), 0
	cfg := consumerConfig(t, broker.ListenAddrs())
	cfg.LookAgain = 100 * time.Millisecond
	c := newConsumer(t, cfg, func(context.Context, consumer.Product) error {
		calls++
		time.Sleep(300 * time.Millisecond)
		return full
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Run(ctx); !errors.Is(err, full) || calls != 1 {
		t.Errorf("Run() = %v after %d calls, want the handler's error after one", err, calls)
	}
}
