package workers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/daemon/jobs"

	"github.com/twmb/franz-go/pkg/kgo"
)

func jobRecord(t *testing.T, cfg Config, m jobs.Message) *kgo.Record {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return &kgo.Record{Topic: cfg.live(), Value: text}
}

// cuttable are connections that can be cut: nothing comes through, nothing ends.
type cuttable struct{ cut atomic.Bool }

type cutConn struct {
	net.Conn
	of *cuttable
}

func (c cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for c.of.cut.Load() {
		time.Sleep(5 * time.Millisecond)
	}
	return n, err
}

func (c cutConn) Write(p []byte) (int, error) {
	for c.of.cut.Load() {
		time.Sleep(5 * time.Millisecond)
	}
	return c.Conn.Write(p)
}

func (c *cuttable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	for c.cut.Load() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return cutConn{Conn: conn, of: c}, nil
}

// Of two daemons one has the turn. The other gets it when the first lets go, and when
// the first is cut off, which then has ended its turn before.
func turns(t *testing.T, brokers []string) {
	cfg := DefaultConfig()
	cfg.Type, cfg.Brokers, cfg.Prefix, cfg.Session = Kafka, brokers, "turns", 3*time.Second
	var holders atomic.Int32
	take := func(c *cuttable) (held context.Context, release func()) {
		t.Helper()
		own := cfg
		own.Dial = c.dial
		held, release, err := Turn{Config: own, Log: slog.New(slog.DiscardHandler)}.Await(t.Context())
		if err != nil {
			t.Error(err)
			return nil, nil
		}
		if holders.Add(1) > 1 {
			t.Error("two daemons have the turn at once")
		}
		context.AfterFunc(held, func() { holders.Add(-1) })
		return held, release
	}
	var first, second, third cuttable
	_, release := take(&first)
	var standby sync.WaitGroup
	var held context.Context
	var secondReleases func()
	standby.Go(func() { held, secondReleases = take(&second) })
	time.Sleep(2 * cfg.Session)
	if holders.Load() != 1 || held != nil {
		t.Fatalf("%d holders after the standby has joined", holders.Load())
	}
	release()
	standby.Wait()
	if held == nil {
		return
	}
	standby.Go(func() {
		_, release := take(&third)
		if release != nil {
			release()
		}
	})
	time.Sleep(cfg.Session) // until it stands by
	began := time.Now()
	second.cut.Store(true)
	standby.Wait()
	t.Logf("taken over %v after the network was cut", time.Since(began).Round(10*time.Millisecond))
	if err := context.Cause(held); !errors.Is(err, ErrTurn) {
		t.Errorf("the turn of the daemon that was cut off ended with %v", err)
	}
	second.cut.Store(false)
	secondReleases()
}
