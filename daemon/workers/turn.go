package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"lacuna/internal/figure"
)

// ErrTurn says that this daemon is not the coordinator any more.
var ErrTurn = errors.New("another daemon may be the coordinator now")

// Turn is the right to be the coordinator: that of the only member of a group to
// which the only partition of a topic is assigned.
type Turn struct {
	Config Config
	Log    *slog.Logger
}

// Await waits until this daemon is the coordinator. held ends with ErrTurn as its
// cause when it is not any more; release gives the turn to another.
func (t Turn) Await(ctx context.Context) (held context.Context, release func(), err error) {
	s := &session{log: t.Log, limit: t.Config.Session, assigned: make(chan struct{})}
	s.answered.Store(time.Now().UnixNano())
	options := []kgo.Opt{
		kgo.ConsumerGroup(t.Config.Prefix + ".coordinator"), kgo.ConsumeTopics(t.Config.turn()),
		// Sticky: who joins does not take the turn from who has it.
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.DisableAutoCommit(), kgo.WithHooks(s),
		kgo.SessionTimeout(t.Config.Session), kgo.HeartbeatInterval(t.Config.heartbeat()), kgo.RebalanceTimeout(t.Config.Session / 2),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { s.assign(len(p) > 0) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { s.lose(p) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { s.lose(p) }),
	}
	client, err := t.Config.client(options...)
	if err != nil {
		return nil, nil, err
	}
	if err := t.ensure(ctx, client); err != nil {
		client.Close()
		return nil, nil, err
	}
	held, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	polling, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	beside.Go(func() { // joins the group; nothing is ever written to the topic
		for polling.Err() == nil {
			client.PollFetches(polling)
		}
	})
	beside.Go(func() { s.watch(polling) })
	release = sync.OnceFunc(func() {
		s.end(nil)
		stop()
		client.Close() // leaves the group, so that the next need not wait for the session to end
		beside.Wait()
	})
	t.Log.Info("waiting for the turn to be the coordinator", "group", t.Config.Prefix+".coordinator")
	select {
	case <-s.assigned:
		t.Log.Info("this daemon is the coordinator")
		return held, release, nil
	case <-held.Done():
	case <-ctx.Done():
	}
	release()
	return nil, nil, errors.Join(ctx.Err(), context.Cause(held))
}

// ensure makes the topics, and waits for brokers that are away.
func (t Turn) ensure(ctx context.Context, client *kgo.Client) error {
	for {
		err := ensureTopics(ctx, client, t.Config, t.Config.turn())
		if err == nil {
			return nil
		}
		t.Log.Warn("the brokers cannot be used yet", "brokers", t.Config.Brokers, "err", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// session is the membership in the group.
type session struct {
	log      *slog.Logger
	limit    time.Duration
	answered atomic.Int64 // when the last heartbeat was sent that the brokers have answered, in nanoseconds
	once     sync.Once
	assigned chan struct{}
	has      atomic.Bool
	end      context.CancelCauseFunc
}

func (s *session) assign(ours bool) {
	if ours {
		s.has.Store(true)
		s.answered.Store(time.Now().UnixNano())
		s.once.Do(func() { close(s.assigned) })
	}
}

func (s *session) lose(p map[string][]int32) {
	if len(p) > 0 && s.has.Load() {
		s.end(fmt.Errorf("%w: the brokers have given its partition away", ErrTurn))
	}
}

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (s *session) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	const heartbeat, join, sync = 12, 11, 14
	if (key == heartbeat || key == join || key == sync) && e.WriteErr == nil && e.ReadErr == nil {
		// The brokers count from when it came to them, which was after it was sent.
		s.answered.Store(time.Now().Add(-e.DurationE2E()).UnixNano())
	}
}

// watch ends the turn when no heartbeat was answered for so long that the brokers may
// soon give the partition to another. It looks at the wall clock, which goes on while a
// process is stopped.
func (s *session) watch(ctx context.Context) {
	tick := time.NewTicker(s.limit / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		silence := time.Duration(time.Now().UnixNano() - s.answered.Load())
		if s.has.Load() && silence > s.limit*4/5 {
			s.end(fmt.Errorf("%w: no heartbeat was answered for %s", ErrTurn, figure.Duration(silence)))
			return
		}
	}
}
