package workers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/publish/kafka/brokertest"
)

// Eight workers are at eight jobs at the same time: no job ends before as many are
// under way, so the test ends only if none of them waits for another's.
func TestWorkersWorkAtTheSameTime(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	const crew, each = 8, 4
	s := newSite(t, brokertest.Start(t, brokertest.Options{}).Addrs(), func(c *Config) { c.Partitions, c.Session = 16, 10*time.Second })
	var busy atomic.Int64
	all := make(chan struct{})
	for i := range crew {
		s.worker(fmt.Sprintf("w%d", i), func(ctx context.Context, _ jobs.Message) (jobs.Result, error) {
			if busy.Add(1) == crew {
				close(all)
			}
			select {
			case <-all:
				return jobs.Result{}, nil
			case <-ctx.Done(): // a rebalance: the job is another's
				busy.Add(-1)
				return jobs.Result{}, ctx.Err()
			}
		})
	}
	var results []<-chan jobs.Result
	for i := range crew * each {
		results = append(results, s.send(fmt.Sprint(i), true))
	}
	for _, result := range results {
		s.await("eight workers at eight jobs", result)
	}
}

// Jobs of a fixed duration take workers an eighth of the time when there are eight of
// them, or nearly: a measurement for a quiet machine.
func TestWorkersScaleNearlyLinearly(t *testing.T) {
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("measures on a quiet machine; LACUNA_LONG=1 asks for it")
	}
	brokers := brokertest.Start(t, brokertest.Options{}).Addrs()
	const each = 20
	var single float64
	for _, n := range []int{1, 2, 4, 8} {
		t.Run(fmt.Sprintf("%d workers", n), func(t *testing.T) {
			rate, stall := measure(t, brokers, n, each)
			if n == 1 {
				single = rate
			}
			ratio := rate / single / float64(n)
			t.Logf("%d workers: %.2f jobs/s, %.3f of linear; longest time without a result %v", n, rate, ratio, stall.Round(time.Millisecond))
			if ratio < 0.9 {
				t.Errorf("%.3f of linear, want 0.9", ratio)
			}
		})
	}
}

// measure returns the jobs a second of workers that do so many each, and the longest time without a result.
func measure(t *testing.T, brokers []string, n, each int) (rate float64, stall time.Duration) {
	const takes = 1500 * time.Millisecond // long against what a loaded machine adds
	s := newSite(t, brokers, func(c *Config) { c.Prefix, c.Partitions, c.Session = fmt.Sprintf("scale%d", n), 16, 10*time.Second })
	var begun sync.Map
	for i := range n {
		s.worker(fmt.Sprintf("w%d", i), func(_ context.Context, m jobs.Message) (jobs.Result, error) {
			begun.Store(i, true)
			if m.Granule[0] != 'w' {
				time.Sleep(takes)
			}
			return jobs.Result{}, nil
		})
	}
	for k := 0; ; k++ { // until all have partitions
		all := 0
		begun.Range(func(any, any) bool { all++; return true })
		if all == n {
			break
		}
		s.await("warming up", s.send(fmt.Sprintf("warm%d", k), true))
	}
	var done sync.WaitGroup
	var last, longest atomic.Int64
	done.Add(n * each)
	began := time.Now()
	last.Store(began.UnixNano())
	for i := range n * each {
		err := s.fleet.Send(t.Context(), jobs.Message{Granule: fmt.Sprint(i)}, true, func(jobs.Result) {
			now := time.Now().UnixNano()
			longest.Store(max(longest.Load(), now-last.Swap(now)))
			done.Done()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	done.Wait()
	return float64(n*each) / time.Since(began).Seconds(), time.Duration(longest.Load())
}

// The coordinator's processor time of a job and its memory do not grow with the jobs
// that wait: beyond those few bytes by which it knows each of them. LACUNA_LONG goes on
// to 100,000 jobs.
func TestQueuedJobsCostTheCoordinatorLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	most := 10_000
	if os.Getenv("LACUNA_LONG") != "" {
		most = 100_000
	}
	brokers := brokertest.Start(t, brokertest.Options{}).Addrs()
	s := newSite(t, brokers, func(c *Config) { c.Prefix, c.Partitions = "queued", 64 })
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	var begins, perJob []float64
	sent := 0
	before := heap()
	for _, queued := range []int{most / 100, most / 10, most} {
		began, first := processorTime(t), sent
		var senders sync.WaitGroup
		var next atomic.Int64
		next.Store(int64(sent))
		for range 32 {
			senders.Go(func() {
				for n := next.Add(1); n <= int64(queued); n = next.Add(1) {
					if err := s.fleet.Send(t.Context(), jobs.Message{Dataset: "sea", Granule: fmt.Sprint(n)}, false, func(jobs.Result) {}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		senders.Wait()
		sent = queued
		cpu := (processorTime(t) - began).Seconds() * 1000 / float64(sent-first)
		each := (heap() - before) / float64(sent)
		begins, perJob = append(begins, cpu), append(perJob, each)
		t.Logf("%d jobs under way: %.3f ms of processor time to send one, %.0f bytes of heap for each", sent, cpu, each)
	}
	if got := s.fleet.State().UnderWay; got != most {
		t.Errorf("%d jobs are under way, want %d", got, most)
	}
	if last := perJob[len(perJob)-1]; last > 1000 {
		t.Errorf("%.0f bytes of heap for each job that waits", last)
	}
	if begins[2] > 3*begins[1] {
		t.Errorf("the processor time of a job rises from %.3f to %.3f ms", begins[1], begins[2])
	}
}

// While workers leave, join and are cut off, jobs wait no longer than it takes the
// brokers to notice: the session of a worker that is cut off, next to nothing for one
// that leaves or joins, because the others keep their partitions.
func TestRebalancesStallJobsBriefly(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for a minute")
	}
	t.Parallel()
	events := 4
	if os.Getenv("LACUNA_LONG") != "" {
		events = 40
	}
	brokers := brokertest.Start(t, brokertest.Options{}).Addrs()
	for _, kind := range []string{"leaves and joins", "is cut off and joins"} {
		t.Run(kind, func(t *testing.T) { stall(t, brokers, kind == "is cut off and joins", events) })
	}
}

func stall(t *testing.T, brokers []string, cut bool, events int) {
	const takes, pause, crew = 100 * time.Millisecond, 100 * time.Millisecond, 4
	s := newSite(t, brokers, func(c *Config) {
		c.Prefix, c.Partitions, c.Session = fmt.Sprintf("stall%v", cut), 16, 3*time.Second
	})
	slow := func(ctx context.Context, _ jobs.Message) (jobs.Result, error) {
		select {
		case <-time.After(takes):
			return jobs.Result{}, nil
		case <-ctx.Done():
			return jobs.Result{}, ctx.Err()
		}
	}
	var hired int
	hire := func() func() {
		hired++
		own := *s
		line := &line{}
		own.cfg.Dial = line.dial
		stop := own.worker(fmt.Sprintf("w%d", hired), slow)
		if !cut {
			return stop
		}
		return func() { // silent for two sessions, in which the brokers miss it, then gone
			line.off.Store(true)
			time.AfterFunc(2*s.cfg.Session, line.end)
			go stop()
		}
	}
	var workers []func()
	for range crew {
		workers = append(workers, hire())
	}
	s.await("warming up", s.send("warm", true))
	var mu sync.Mutex
	var waited []time.Duration
	var done sync.WaitGroup
	ends := make(chan struct{})
	done.Go(func() {
		for n := 0; ; n++ {
			began := time.Now()
			done.Add(1)
			err := s.fleet.Send(t.Context(), jobs.Message{Dataset: "sea", Granule: fmt.Sprint(n)}, true, func(jobs.Result) {
				mu.Lock()
				waited = append(waited, time.Since(began)-takes)
				mu.Unlock()
				done.Done()
			})
			if err != nil {
				t.Error(err)
				done.Done()
			}
			select {
			case <-ends:
				return
			case <-time.After(pause):
			}
		}
	})
	between := s.cfg.Session / 2
	if cut { // until the one before was missed, and its partitions are given away
		between, events = 3*s.cfg.Session, events/2
	}
	for range events {
		time.Sleep(between)
		workers[0]()
		workers = append(workers[1:], hire())
	}
	close(ends)
	done.Wait()
	slices.Sort(waited)
	at := func(share float64) time.Duration {
		return waited[int(share*float64(len(waited)-1))].Round(time.Millisecond)
	}
	t.Logf("%d jobs, %d events: a job waits %v in the median, %v at p99, %v at most; session %v", len(waited), events, at(0.5), at(0.99), at(1), s.cfg.Session)
	if limit := 10 * s.cfg.Session; at(1) > limit { // far beyond what a loaded machine adds
		t.Errorf("a job has waited for %v", at(1))
	}
}

// line is the network of a worker. Once it is off, what is sent is lost and nobody says
// so, until it ends.
type line struct {
	off   atomic.Bool
	mu    sync.Mutex
	conns []net.Conn
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if l.off.Load() {
		return nil, errors.New("the network is cut")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conn)
	return &silentConn{Conn: conn, off: &l.off}, nil
}

func (l *line) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
}

type silentConn struct {
	net.Conn
	off *atomic.Bool
}

func (c *silentConn) Write(p []byte) (int, error) {
	if c.off.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
