package workers

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/publish/kafka/brokertest"
)

// Jobs of a fixed duration take workers an eighth of the time when there are eight of
// them, or nearly. LACUNA_LONG adds two and four workers.
func TestWorkersScaleNearlyLinearly(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for a minute")
	}
	brokers := brokertest.Start(t, brokertest.Options{}).Addrs()
	counts := []int{1, 8}
	if os.Getenv("LACUNA_LONG") != "" {
		counts = []int{1, 2, 4, 8}
	}
	var single float64
	for _, n := range counts {
		t.Run(fmt.Sprintf("%d workers", n), func(t *testing.T) {
			rate, stall := measure(t, brokers, n)
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

// measure returns the jobs a second of workers, and the longest time without a result.
func measure(t *testing.T, brokers []string, n int) (rate float64, stall time.Duration) {
	const takes, each = 400 * time.Millisecond, 30
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

// The coordinator's cost of a job, and its memory with many jobs under way.
func BenchmarkSend(b *testing.B) {
	brokers := brokertest.Start(b, brokertest.Options{}).Addrs()
	cfg := DefaultConfig()
	cfg.Type, cfg.Brokers, cfg.Prefix = Kafka, brokers, "bench"
	fleet, err := NewFleet(cfg, jobs.Folder{Root: b.TempDir()}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer fleet.Close()
	if err := fleet.Prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	used := processorTime(b)
	n := 0
	for b.Loop() {
		n++
		if err := fleet.Send(b.Context(), jobs.Message{Granule: fmt.Sprint(n)}, false, func(jobs.Result) {}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processorTime(b)-used).Microseconds())/float64(n), "cpu-µs/job")
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(n), "heap-B/job")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
