package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memoryQueue is a queue without a disk.
type memoryQueue struct {
	mu      sync.Mutex
	waiting map[string][]Delivery // by dataset
	aside   map[int64]string
	failed  int
	next    int64
}

func newQueue() *memoryQueue {
	return &memoryQueue{waiting: map[string][]Delivery{}, aside: map[int64]string{}}
}

func (q *memoryQueue) add(dataset string, kind Kind, revision int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next++
	p := Product{Dataset: dataset, Granule: "g", Name: "g.nc", Revision: revision, Time: time.Unix(1e9, 0)}
	q.waiting[dataset] = append(q.waiting[dataset], Delivery{ID: q.next, Kind: kind, Product: p})
}

func (q *memoryQueue) left() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, queue := range q.waiting {
		n += len(queue)
	}
	return n
}

func (q *memoryQueue) Due(context.Context) ([]Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var due []Delivery
	for _, queue := range q.waiting {
		if len(queue) > 0 {
			due = append(due, queue[0])
		}
	}
	slices.SortFunc(due, func(a, b Delivery) int { return int(a.ID - b.ID) })
	return due, nil
}

func (q *memoryQueue) Delivered(_ context.Context, d Delivery) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[d.Product.Dataset] = q.waiting[d.Product.Dataset][1:]
	return nil
}

func (q *memoryQueue) Failed(_ context.Context, d Delivery, problem string, aside bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed++
	if aside {
		q.aside[d.ID] = problem
		q.waiting[d.Product.Dataset] = q.waiting[d.Product.Dataset][1:]
	}
	return nil
}

// fakeSink is a sink made of a function. got lists the accepted products, in
// order.
type fakeSink struct {
	name string
	take func(ctx context.Context, p Product) error // nil: takes all
	mu   sync.Mutex
	got  []string
	when []time.Time
}

func (s *fakeSink) Name() string { return s.name }

func (s *fakeSink) Publish(ctx context.Context, p Product) error { return s.record(ctx, "+", p) }
func (s *fakeSink) Retract(ctx context.Context, p Product) error { return s.record(ctx, "-", p) }

func (s *fakeSink) record(ctx context.Context, mark string, p Product) error {
	if s.take != nil {
		if err := s.take(ctx, p); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, fmt.Sprint(mark, p.Dataset, p.Revision))
	s.when = append(s.when, time.Now())
	return nil
}

func dispatch(t *testing.T, sink Sink, q Queue) *Dispatcher {
	t.Helper()
	d, err := NewDispatcher(DefaultConfig(), sink, q, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// start runs d until the test ends.
func start(t *testing.T, d *Dispatcher) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v after a stop", err)
		}
	})
}

func TestASinkThatIsAwayForAWeekLosesNothingAndKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(7 * 24 * time.Hour)
		attempts := 0
		sink := &fakeSink{name: "kafka", take: func(context.Context, Product) error {
			if attempts++; time.Now().Before(back) {
				return errors.New("connection refused")
			}
			return nil
		}}
		q := newQueue()
		d := dispatch(t, sink, q)
		start(t, d)
		var want []string
		var before, after runtime.MemStats
		for hour := range 7 * 24 {
			q.add("chl", Announce, hour+1)
			d.Nudge()
			want = append(want, fmt.Sprint("+chl", hour+1))
			time.Sleep(time.Hour)
			if hour == 24 {
				runtime.GC()
				runtime.ReadMemStats(&before)
			}
		}
		synctest.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
			t.Errorf("heap has grown by %d bytes in six days without the sink", grown)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if !slices.Equal(sink.got, want) {
			t.Errorf("after a week %d deliveries came, want %d in order: %v", len(sink.got), len(want), sink.got)
		}
		if late := sink.when[0].Sub(back); late > DefaultConfig().RetryMax {
			t.Errorf("the sink was found again after %v, want at most %v", late, DefaultConfig().RetryMax)
		}
		if most := int(7*24*time.Hour/DefaultConfig().RetryMax) + 7*24*2 + 200; attempts > most {
			t.Errorf("%d attempts in a week, want at most %d", attempts, most)
		}
	})
}

func TestASlowSinkDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &fakeSink{name: "kafka", take: func(ctx context.Context, _ Product) error {
			<-ctx.Done() // hangs until it is given up on
			return ctx.Err()
		}}
		fast := &fakeSink{name: "disk"}
		queues := []*memoryQueue{newQueue(), newQueue()}
		began := time.Now()
		for i, sink := range []Sink{slow, fast} {
			for revision := range 100 {
				queues[i].add("chl", Announce, revision+1)
			}
			start(t, dispatch(t, sink, queues[i]))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(fast.got) != 100 || !fast.when[99].Equal(began) {
			t.Errorf("%d files were there at once, want 100", len(fast.got))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if queues[0].left() != 100 || queues[0].failed == 0 {
			t.Errorf("%d deliveries wait for the slow sink after %d failures, want all 100", queues[0].left(), queues[0].failed)
		}
	})
}

func TestTroubleOfOneDatasetDoesNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fakeSink{name: "s", take: func(_ context.Context, p Product) error {
			if p.Dataset == "chl" {
				return errors.New("no")
			}
			return nil
		}}
		q := newQueue()
		for i := range 3 {
			q.add("chl", Announce, i+1)
			q.add("sst", Announce, i+1)
		}
		start(t, dispatch(t, sink, q))
		synctest.Wait()
		if want := []string{"+sst1", "+sst2", "+sst3"}; !slices.Equal(sink.got, want) {
			t.Errorf("delivered %v, want %v", sink.got, want)
		}
	})
}

func TestPoisonIsSetAsideWithItsReasonAndTheRestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fakeSink{name: "s", take: func(_ context.Context, p Product) error {
			if p.Revision == 2 {
				return fmt.Errorf("%w: larger than the topic takes", ErrPermanent)
			}
			return nil
		}}
		q := newQueue()
		q.add("chl", Announce, 1)
		q.add("chl", Announce, 2)
		q.add("chl", Withdraw, 1)
		q.add("chl", Announce, -1) // a revision that Check refuses
		q.add("chl", Announce, 3)
		start(t, dispatch(t, sink, q))
		synctest.Wait()
		if want := []string{"+chl1", "-chl1", "+chl3"}; !slices.Equal(sink.got, want) {
			t.Errorf("delivered %v, want %v", sink.got, want)
		}
		if len(q.aside) != 2 || q.aside[2] != "cannot be delivered as it is: larger than the topic takes" {
			t.Errorf("set aside %v", q.aside)
		}
	})
}

// A queue that cannot record a delivery makes it again: better twice, which
// changes nothing, than never.
func TestUnrecordedDeliveryIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fakeSink{name: "s"}
		q := &forgetful{memoryQueue: newQueue(), failures: 2}
		q.add("chl", Announce, 1)
		start(t, dispatch(t, sink, q))
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"+chl1", "+chl1", "+chl1"}; !slices.Equal(sink.got, want) || q.left() != 0 {
			t.Errorf("delivered %v, %d left, want the same three times", sink.got, q.left())
		}
	})
}

type forgetful struct {
	*memoryQueue
	failures int
}

func (q *forgetful) Delivered(ctx context.Context, d Delivery) error {
	if q.failures--; q.failures >= 0 {
		return errors.New("disk is full")
	}
	return q.memoryQueue.Delivered(ctx, d)
}

func TestReplayReachesASinkThatIgnoresRepetitions(t *testing.T) {
	q := newQueue()
	q.add("chl", Repeat, 1)
	sink := &replaying{fakeSink: fakeSink{name: "kafka"}}
	if err := dispatch(t, sink, q).Flush(t.Context()); err != nil || sink.replayed != 1 || len(sink.got) != 0 {
		t.Errorf("Flush() = %v, %d replayed, %v published", err, sink.replayed, sink.got)
	}
	q.add("chl", Repeat, 1)
	plain := &fakeSink{name: "disk"}
	if err := dispatch(t, plain, q).Flush(t.Context()); err != nil || !slices.Equal(plain.got, []string{"+chl1"}) {
		t.Errorf("Flush() = %v, published %v, want it published where there is no replay", err, plain.got)
	}
}

type replaying struct {
	fakeSink
	replayed int
}

func (s *replaying) Replay(context.Context, Product) error { s.replayed++; return nil }

func TestFlushDeliversTheRestAndReturnsTheFirstFailure(t *testing.T) {
	sink := &fakeSink{name: "s", take: func(_ context.Context, p Product) error {
		if p.Dataset == "sst" {
			return errors.New("away")
		}
		return nil
	}}
	q := newQueue()
	for i := range 3 {
		q.add("sst", Announce, i+1)
		q.add("chl", Announce, i+1)
	}
	err := dispatch(t, sink, q).Flush(t.Context())
	if err == nil || q.left() != 3 || q.failed != 1 || len(sink.got) != 3 {
		t.Errorf("Flush() = %v, %d left after %d failures", err, q.left(), q.failed)
	}
}

func TestPausesDoubleUpToABound(t *testing.T) {
	d := dispatch(t, &fakeSink{}, newQueue())
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 7: 64 * time.Second, 8: 2 * time.Minute, 1000000: 2 * time.Minute,
	} {
		if got := d.pause(failures); got != want {
			t.Errorf("pause(%d) = %v, want %v", failures, got, want)
		}
	}
}

func TestConfigSaysEverythingThatIsWrong(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	err := Config{RetryMin: time.Minute, RetryMax: time.Second}.Validate()
	for _, want := range []string{"retry_max is 1s", "timeout is 0s", "poll is 0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want a message with %q", err, want)
		}
	}
}
