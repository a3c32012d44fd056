package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPollReturnsNewGranulesInNameOrder(t *testing.T) {
	b := newBench(t, nil)
	for _, day := range []int{3, 1, 2} {
		b.archive.put(dated(day), dated(day), longAgo())
	}
	granules, err := b.Poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{dated(1), dated(2), dated(3)}, names(granules)); diff != "" {
		t.Errorf("Poll() (-want +got):\n%s", diff)
	}
	for _, g := range granules {
		wantWhole(t, g, g.Name)
	}
	if again := b.pollNames(t); len(again) != 0 {
		t.Errorf("the second Poll() = %v, want nothing", again)
	}
}

func TestRestartedWatcherDeliversNothingAgain(t *testing.T) {
	first := newBench(t, nil)
	first.archive.put("a.nc", "a", longAgo())
	first.pollNames(t)
	second := newBench(t, func(_ *Config, p *Parts) { p.Archive, p.Deliveries = first.archive, first.deliveries })
	if got := second.pollNames(t); len(got) != 0 || first.archive.opened != 1 {
		t.Errorf("after a restart Poll() = %v, %d reads; want nothing and the one of before", got, first.archive.opened)
	}
}

func TestReplacedObjectIsANewGranuleBesideTheOld(t *testing.T) {
	b := newBench(t, nil)
	b.archive.put("a.nc", "first", longAgo())
	old, err := b.Poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.archive.put("a.nc", "other", longAgo().Add(time.Hour)) // the same length
	b.cfg.Settle = 0
	replaced, err := b.Poll(t.Context())
	if err != nil || len(replaced) != 1 {
		t.Fatalf("Poll() after a replacement = %v, %v; want it", replaced, err)
	}
	wantWhole(t, old[0], "first") // somebody may still be reading it
	wantWhole(t, replaced[0], "other")
}

func TestTouchedObjectIsReadOnceAndNotDelivered(t *testing.T) {
	b := newBench(t, func(c *Config, _ *Parts) { c.Settle = 0 })
	b.archive.put("a.nc", "a", longAgo())
	b.pollNames(t)
	b.archive.put("a.nc", "a", longAgo().Add(time.Hour))
	for range 3 {
		if got := b.pollNames(t); len(got) != 0 {
			t.Errorf("Poll() after a touch = %v, want nothing", got)
		}
	}
	if b.archive.opened != 2 {
		t.Errorf("the object was read %d times, want once when new and once when touched", b.archive.opened)
	}
}

func TestGrowingObjectIsDeliveredOnceItRests(t *testing.T) {
	tests := []struct {
		name   string
		second func(written time.Time) time.Time // the time that the second write leaves
	}{
		{"written to again", func(written time.Time) time.Time { return written }},
		{"by a writer that sets an old time", func(time.Time) time.Time { return longAgo() }},
		{"by a writer whose clock is ahead", func(written time.Time) time.Time { return written.Add(time.Hour) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(c *Config, _ *Parts) { c.PollInterval, c.Settle = 10*time.Second, 30*time.Second })
				ctx, cancel := context.WithCancel(t.Context())
				out, done := make(chan Granule), make(chan error)
				b.archive.put("a.nc", "12", time.Now())
				go func() { done <- b.Run(ctx, out) }()
				time.Sleep(25 * time.Second) // polls at 0, 10 and 20 s
				b.archive.put("a.nc", "1234", tt.second(time.Now()))
				written := time.Now()
				wantWhole(t, <-out, "1234")
				// Polled every 10 s, it is seen to have changed 5 s after it did.
				if rest := time.Since(written); rest != 35*time.Second {
					t.Errorf("delivered %v after the last write, want 35 s", rest)
				}
				cancel()
				if err := <-done; err != nil {
					t.Errorf("Run() = %v after cancellation", err)
				}
			})
		})
	}
}

func TestYoungObjectWaitsAndOldOneDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.archive.put("old.nc", "old", time.Now().Add(-b.cfg.Settle))
		b.archive.put("young.nc", "young", time.Now().Add(-b.cfg.Settle+time.Second))
		if diff := cmp.Diff([]string{"old.nc"}, b.pollNames(t)); diff != "" {
			t.Errorf("Poll() (-want +got):\n%s", diff)
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"young.nc"}, b.pollNames(t)); diff != "" {
			t.Errorf("Poll() a second later (-want +got):\n%s", diff)
		}
	})
}

func TestRunRetriesAfterFailedPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.archive.put("a.nc", "a", longAgo())
		b.archive.onOpen = func(Object) (io.ReadCloser, error) {
			b.archive.onOpen = nil
			return nil, errors.New("connection reset")
		}
		ctx, cancel := context.WithCancel(t.Context())
		out, done, start := make(chan Granule), make(chan error), time.Now()
		go func() { done <- b.Run(ctx, out) }()
		wantWhole(t, <-out, "a")
		if got := time.Since(start); got != b.cfg.PollInterval {
			t.Errorf("granule after %v, want %v", got, b.cfg.PollInterval)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v after cancellation", err)
		}
		if _, open := <-out; open {
			t.Error("Run() left its channel open")
		}
	})
}

func TestRefusedCredentialsAreSaidOnceAndTriedDaily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newBench(t, func(_ *Config, p *Parts) { p.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		b.archive.put("a.nc", "a", longAgo())
		var lists atomic.Int64
		var renewed atomic.Bool
		b.archive.onList = func() error {
			lists.Add(1)
			if renewed.Load() {
				return nil
			}
			return errors.Join(ErrPermanent, errors.New("login refused"))
		}
		b.archive.onOpening(func(Object) (io.ReadCloser, error) { return nil, ErrPermanent })
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		go func() { done <- b.Run(ctx, out) }()
		time.Sleep(72*time.Hour + time.Minute)
		synctest.Wait()
		if said := strings.Count(log.String(), "archive refuses us"); lists.Load() != 4 || said != 1 {
			t.Errorf("in three days %d listings and %d complaints, want 4 and 1:\n%s", lists.Load(), said, &log)
		}
		if !b.State().Refused {
			t.Errorf("State() = %+v, want refused", b.State())
		}
		renewed.Store(true)
		b.archive.onOpening(nil)
		wantWhole(t, <-out, "a") // at the next daily try
		synctest.Wait()
		if s := b.State(); s.Refused || s.Err != "" || !strings.Contains(log.String(), "lets us in again") {
			t.Errorf("State() = %+v once the password is renewed:\n%s", s, &log)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v after cancellation", err)
		}
	})
}

func TestRefusedDownloadIsNotTheObjectsFault(t *testing.T) {
	b := newBench(t, func(c *Config, _ *Parts) { c.Parallel = 1 })
	b.archive.put("a.nc", "a", longAgo())
	b.archive.put("b.nc", "b", longAgo())
	b.archive.onOpen = func(Object) (io.ReadCloser, error) { return nil, errors.Join(ErrPermanent, errors.New("401")) }
	if _, err := b.Poll(t.Context()); !errors.Is(err, ErrPermanent) {
		t.Errorf("Poll() = %v, want the refusal", err)
	}
	if b.archive.opened != 1 || len(b.problems) != 0 {
		t.Errorf("%d objects tried, problems %v; want one, and none that blames it", b.archive.opened, b.problems)
	}
}

func TestIncompleteListingDeliversItsObjects(t *testing.T) {
	b := newBench(t, nil)
	b.archive.put("a.nc", "a", longAgo())
	b.archive.onList = func() error { return errors.New("folder closed: permission denied") }
	granules, err := b.Poll(t.Context())
	if len(granules) != 1 || err == nil {
		t.Errorf("Poll() = %v, %v; want a.nc and the error", granules, err)
	}
}

func TestHostileNamesAreReportedUnread(t *testing.T) {
	b := newBench(t, nil)
	hostile := []string{
		"../secret.nc", "a/../../secret.nc", "/abs.nc", `a\..\b.nc`, "a\nb.nc", "a\x1b[2J.nc", "a//b.nc", "x/./y.nc", "\xff.nc",
		"a\u202enc.exe", strings.Repeat("n", 240) + ".nc",
	}
	for _, name := range hostile {
		b.archive.put(name, "x", longAgo())
	}
	b.archive.put("good.nc", "good", longAgo())
	if diff := cmp.Diff([]string{"good.nc"}, b.pollNames(t)); diff != "" {
		t.Errorf("Poll() (-want +got):\n%s", diff)
	}
	if len(b.problems) != len(hostile) || b.archive.opened != 1 {
		t.Errorf("%d problems and %d reads, want %d and 1", len(b.problems), b.archive.opened, len(hostile))
	}
	for _, p := range b.problems {
		if !errors.Is(p.Err, ErrName) {
			t.Errorf("problem with %q: %v, want ErrName", p.Object.Name, p.Err)
		}
	}
}

func TestCheckNameOfTheCallerDecides(t *testing.T) {
	b := newBench(t, func(_ *Config, p *Parts) {
		p.CheckName = func(name string) error {
			if !strings.HasSuffix(name, ".nc") {
				return errors.New("not NetCDF")
			}
			return nil
		}
	})
	b.archive.put("README", "x", longAgo())
	if got := b.pollNames(t); len(got) != 0 || len(b.problems) != 1 {
		t.Errorf("Poll() = %v with %d problems, want nothing and one", got, len(b.problems))
	}
}

func TestObjectThatCannotBeReadDoesNotStopTheOthers(t *testing.T) {
	tests := []struct {
		name string
		open func() (io.ReadCloser, error)
		want error
	}{
		{"vanished", func() (io.ReadCloser, error) { return nil, fs.ErrNotExist }, fs.ErrNotExist},
		{"cut short", func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("ha")), nil }, ErrChanged},
		{"longer than listed", func() (io.ReadCloser, error) { return io.NopCloser(endless{}), nil }, ErrChanged},
		{"connection lost", func() (io.ReadCloser, error) { return cutReader("ha", syscall.ECONNRESET), nil }, syscall.ECONNRESET},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.archive.put("a.nc", "half", longAgo())
			b.archive.put("b.nc", "whole", longAgo())
			b.archive.onOpen = func(o Object) (io.ReadCloser, error) {
				if o.Name == "a.nc" {
					return tt.open()
				}
				return io.NopCloser(strings.NewReader("whole")), nil
			}
			if diff := cmp.Diff([]string{"b.nc"}, b.pollNames(t)); diff != "" {
				t.Errorf("Poll() (-want +got):\n%s", diff)
			}
			if len(b.problems) != 1 || !errors.Is(b.problems[0].Err, tt.want) || errors.Is(b.problems[0].Err, ErrName) {
				t.Errorf("problems = %v, want a.nc with %v", b.problems, tt.want)
			}
			if files := granulesIn(t, b.spoolDir); len(files) != 1 {
				t.Errorf("spool holds %v, want b.nc alone", files)
			}
			b.archive.onOpen = nil
			if diff := cmp.Diff([]string{"a.nc"}, b.pollNames(t)); diff != "" {
				t.Errorf("Poll() once it can be read (-want +got):\n%s", diff)
			}
			if files := filesIn(t, b.spoolDir); len(files) != 2 {
				t.Errorf("spool holds %v, want the two granules", files)
			}
		})
	}
}

func TestGranuleThatCouldNotBeRecordedComesAgain(t *testing.T) {
	b := newBench(t, nil)
	b.archive.put("a.nc", "a", longAgo())
	b.deliveries.fail = errors.New("ledger: disk full")
	if got, err := b.Poll(t.Context()); err == nil || len(got) != 0 {
		t.Errorf("Poll() = %v, %v; want the error and no granule that nobody would remember", got, err)
	}
	if diff := cmp.Diff([]string{"a.nc"}, b.pollNames(t)); diff != "" {
		t.Errorf("Poll() afterwards (-want +got):\n%s", diff)
	}
}

func TestCancelledRunLetsGoOfAReceiverThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.archive.put("a.nc", "a", longAgo())
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		go func() { done <- b.Run(ctx, out) }()
		synctest.Wait() // it stands at the send
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
		wantWhole(t, b.deliveries.newest["a.nc"], "a") // recorded: the next start has it as unfinished
	})
}

func TestConfigReportsEverythingWrong(t *testing.T) {
	tests := []struct {
		name string
		edit func(*Config)
		want []string // parts of the message; none: valid
	}{
		{name: "defaults"},
		{name: "no settle time", edit: func(c *Config) { c.Settle = 0 }},
		{name: "no name", edit: func(c *Config) { c.Name = "" }, want: []string{"name is empty"}},
		{
			name: "all wrong", edit: func(c *Config) { *c = Config{Settle: -1} },
			want: []string{"name is empty", "poll_interval is 0s", "settle is -1ns", "parallel is 0", "least_kib_per_second is 0", "deadline is 0s", "patience is 0s", "stall is 0s"},
		},
		{name: "cron", edit: func(c *Config) { c.Schedule, c.TimeZone, c.Jitter = "15 6 * * 1-5", "Europe/Paris", time.Minute }},
		{name: "no cron", edit: func(c *Config) { c.Schedule = "at dawn" }, want: []string{"schedule is \"at dawn\""}},
		{name: "a day that never comes", edit: func(c *Config) { c.Schedule = "0 0 31 2 *" }, want: []string{"never comes"}},
		{name: "no zone", edit: func(c *Config) { c.TimeZone = "Mars/Olympus" }, want: []string{"time_zone is \"Mars/Olympus\""}},
		{name: "no hour", edit: func(c *Config) { c.Expect.By = "noon" }, want: []string{"expect.by is \"noon\""}},
		{name: "within", edit: func(c *Config) { c.Expect.Within = -time.Hour }, want: []string{"expect.within is -1h0m0s"}},
		{name: "lag", edit: func(c *Config) { c.Expect.LagDays = -1 }, want: []string{"expect.lag_days is -1"}},
		{name: "short look-back", edit: func(c *Config) { c.Lookback = time.Second }, want: []string{"lookback is 1s, shorter than"}},
		{name: "backfill from later to earlier", edit: func(c *Config) { c.Backfill = Days{From: time.Now(), To: longAgo()} }, want: []string{"backfill is"}},
		{name: "backfill without an end", edit: func(c *Config) { c.Backfill = Days{From: longAgo()} }, want: []string{"backfill is"}},
		{name: "placeholder", edit: func(c *Config) { c.Prefixes = []string{"{year}/{hour}/"} }, want: []string{"prefixes has"}},
		{name: "brace", edit: func(c *Config) { c.Prefixes = []string{"{year"} }, want: []string{"prefixes has"}},
		{name: "floor", edit: func(c *Config) { c.DiskFloor = Floor{Share: 1} }, want: []string{"disk_floor is 100%"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig()
			c.Name = "test"
			if tt.edit != nil {
				tt.edit(&c)
			}
			err := c.Validate()
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("Validate() = %v, want %q", err, tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Validate() = %v, want a message with %q", err, want)
				}
			}
		})
	}
}

// endless is an archive that never stops sending.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
