package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func breaker(t *testing.T, archive Archive) *Breaker {
	t.Helper()
	b, err := NewBreaker(archive, BreakerConfig{Failures: 3, Hold: time.Minute, MaxHold: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBreakerOpensProbesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		archive := &scripted{lists: []error{errPassing, errPassing, errPassing, errPassing}}
		b := breaker(t, archive)
		list := func() error { _, err := b.List(t.Context(), Scope{}); return err }
		for range 3 {
			if err := list(); !errors.Is(err, errPassing) {
				t.Fatalf("List() = %v", err)
			}
		}
		if s := b.State(); s.Phase != Opened || s.Failures != 3 || !s.Until.Equal(time.Now().Add(time.Minute)) || !errors.Is(s.Cause, errPassing) {
			t.Errorf("State() = %+v after three failures", s)
		}
		time.Sleep(59 * time.Second)
		if err := list(); !errors.Is(err, ErrHeldBack) || !errors.Is(err, errPassing) || archive.listed != 3 {
			t.Errorf("List() = %v, %d calls; want it held back, and why", err, archive.listed)
		}
		time.Sleep(time.Second)
		if err := list(); errors.Is(err, ErrHeldBack) || archive.listed != 4 {
			t.Errorf("List() = %v; want a trial", err)
		}
		if s := b.State(); s.Phase != Opened || !s.Until.Equal(time.Now().Add(2*time.Minute)) {
			t.Errorf("State() = %+v after a failed trial, want twice the hold", s)
		}
		time.Sleep(2 * time.Minute)
		if err := list(); err != nil {
			t.Errorf("List() = %v; the archive is back", err)
		}
		if s := b.State(); s != (BreakerState{Phase: Closed}) {
			t.Errorf("State() = %+v, want closed", s)
		}
	})
}

func TestOnlyOneCallProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		archive := &scripted{lists: []error{errPassing, errPassing, errPassing}}
		b := breaker(t, archive)
		for range 3 {
			b.List(t.Context(), Scope{})
		}
		time.Sleep(time.Minute)
		release := make(chan struct{})
		archive.onList = func() { <-release }
		done := make(chan error)
		go func() { _, err := b.List(t.Context(), Scope{}); done <- err }()
		synctest.Wait()
		if s := b.State(); s.Phase != Probing {
			t.Errorf("State() = %+v during the trial", s)
		}
		if _, err := b.List(t.Context(), Scope{}); !errors.Is(err, ErrHeldBack) {
			t.Errorf("a second call beside the trial: %v", err)
		}
		close(release)
		if err := <-done; err != nil || b.State().Phase != Closed {
			t.Errorf("the trial: %v, then %+v", err, b.State())
		}
	})
}

func TestAnswersDoNotOpenTheBreaker(t *testing.T) {
	for _, answer := range []error{fs.ErrNotExist, ErrChanged, ErrPermanent} {
		archive := &scripted{lists: []error{answer, answer, answer, answer, answer}}
		b := breaker(t, archive)
		for range 5 {
			b.List(t.Context(), Scope{})
		}
		if s := b.State(); s.Phase != Closed || archive.listed != 5 {
			t.Errorf("%v: %+v after %d calls", answer, s, archive.listed)
		}
	}
}

func TestHostThatAsksForTimeIsGivenIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		archive := &scripted{lists: []error{&RetryAfterError{After: 3 * time.Minute, Err: errPassing}}}
		b := breaker(t, archive)
		b.List(t.Context(), Scope{})
		if s := b.State(); s.Phase != Opened || !s.Until.Equal(time.Now().Add(3*time.Minute)) {
			t.Errorf("State() = %+v, want open for the three minutes asked for", s)
		}
	})
}

func TestReaderThatBreaksCountsAsFailure(t *testing.T) {
	archive := &scripted{content: make([]byte, 10), cut: func(int64) (int64, error) { return 5, errPassing }}
	b := breaker(t, archive)
	for range 3 {
		src, err := b.Open(t.Context(), Object{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		io.ReadAll(src)
		src.Close()
	}
	if s := b.State(); s.Phase != Opened {
		t.Errorf("State() = %+v after three broken downloads", s)
	}
}

func TestCallerWhoGivesUpIsNoFailure(t *testing.T) {
	b := breaker(t, &scripted{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		b.List(ctx, Scope{})
	}
	if s := b.State(); s.Phase != Closed || s.Failures != 0 {
		t.Errorf("State() = %+v after cancelled calls", s)
	}
}

func TestLimitedBoundsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		archive := &counting{now: &now, most: &most}
		l, err := NewLimited(archive, 3)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if i%4 == 0 {
					l.List(t.Context(), Scope{})
					return
				}
				src, err := l.Open(t.Context(), Object{}, 0)
				if err != nil {
					t.Errorf("Open(): %v", err)
					return
				}
				time.Sleep(time.Second)
				src.Close()
				src.Close() // frees the slot once
			})
		}
		wg.Wait()
		if got := most.Load(); got != 3 {
			t.Errorf("%d calls were under way at a time, want 3", got)
		}
		if len(l.slots) != 0 {
			t.Errorf("%d slots are still taken", len(l.slots))
		}
	})
}

// counting counts calls and readers under way.
type counting struct{ now, most *atomic.Int32 }

func (c *counting) enter() {
	for n := c.now.Add(1); ; {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			return
		}
	}
}

func (c *counting) List(context.Context, Scope) ([]Object, error) {
	c.enter()
	defer c.now.Add(-1)
	time.Sleep(time.Second)
	return nil, nil
}

func (c *counting) Open(context.Context, Object, int64) (io.ReadCloser, error) {
	c.enter()
	return &closing{Reader: strings.NewReader(""), once: sync.OnceFunc(func() { c.now.Add(-1) })}, nil
}

type closing struct {
	io.Reader
	once func()
}

func (c *closing) Close() error { c.once(); return nil }

func TestPacerSpacesRequestsOutPerHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPacer(PaceConfig{RequestsPerSecond: 2, Burst: 3})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 7 { // three at once, then two a second
			if err := p.Wait(t.Context(), "a.example"); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := time.Since(start), 2*time.Second; got.Round(time.Millisecond) != want {
			t.Errorf("seven requests took %v, want %v", got, want)
		}
		start = time.Now()
		p.Wait(t.Context(), "b.example")
		if time.Since(start) != 0 {
			t.Errorf("another host had to wait %v", time.Since(start))
		}
		p.Hold("b.example", 10*time.Second)
		p.Wait(t.Context(), "b.example")
		if got := time.Since(start); got != 10*time.Second {
			t.Errorf("a host that asked for 10 s was asked after %v", got)
		}
		p.Hold("b.example", 100*time.Hour)
		start = time.Now()
		p.Wait(t.Context(), "b.example")
		if got := time.Since(start); got != maxHold {
			t.Errorf("a host put us off for %v, want at most %v", got, maxHold)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p.Hold("b.example", time.Minute)
		if err := p.Wait(ctx, "b.example"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait() = %v, want the end of ctx", err)
		}
	})
	var none *Pacer
	none.Hold("x", time.Hour)
	if err := none.Wait(t.Context(), "x"); err != nil {
		t.Errorf("Wait() without a pacer: %v", err)
	}
}

func TestMannersAreLoggedCallByCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
		archive := &scripted{lists: []error{errPassing}, content: []byte("hello")}
		guarded, err := NewPolite(archive, DefaultPolitenessConfig(), log)
		if err != nil {
			t.Fatal(err)
		}
		if objects, err := guarded.List(t.Context(), Scope{}); err != nil || len(objects) != 2 {
			t.Fatalf("List() = %v, %v", objects, err)
		}
		src, err := guarded.Open(t.Context(), Object{Name: "a.nc", Size: 5}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(src); string(got) != "llo" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		src.Close()
		for _, want := range []string{"archive listed", "connection reset", "object read", "offset_bytes=2", "bytes=3"} {
			if !strings.Contains(lines.String(), want) {
				t.Errorf("no %q in the log:\n%s", want, lines.String())
			}
		}
	})
}

func TestPolitenessConfigIsChecked(t *testing.T) {
	for _, tt := range []struct {
		edit func(*PolitenessConfig)
		want string
	}{
		{func(*PolitenessConfig) {}, ""},
		{func(c *PolitenessConfig) { c.Concurrent = 0 }, "concurrent"},
		{func(c *PolitenessConfig) { c.Pace.Burst = 0 }, "pace: burst"},
		{func(c *PolitenessConfig) { c.Pace.RequestsPerSecond = 0 }, "pace: requests_per_second"},
		{func(c *PolitenessConfig) { c.Retry.Attempts = 0 }, "retry: attempts"},
		{func(c *PolitenessConfig) { c.Retry.Max = 1 }, "retry: max"},
		{func(c *PolitenessConfig) { c.Breaker.Failures = 0 }, "breaker: failures"},
		{func(c *PolitenessConfig) { c.Breaker.MaxHold = 1 }, "breaker: max_hold"},
	} {
		c := DefaultPolitenessConfig()
		tt.edit(&c)
		if err := c.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Validate() = %v, want a message that begins with %q", err, tt.want)
		}
	}
}

func TestScopeReachesAndRoots(t *testing.T) {
	s := Scope{Prefixes: []string{"2024/05/", "2024/", "2024/05/a", "2023/1"}}
	if got := strings.Join(s.Roots(), " "); got != "2023/1 2024/" {
		t.Errorf("Roots() = %q", got)
	}
	for folder, want := range map[string]bool{
		"": true, "2024": true, "2024/06": true, "2023": true, "2023/10": true, "2023/02": false, "2025": false, "202": false,
	} {
		if got := s.Reaches(folder); got != want {
			t.Errorf("Reaches(%q) = %v", folder, got)
		}
	}
	if got := (Scope{}).Roots(); len(got) != 1 || got[0] != "" {
		t.Errorf("Roots() of everything = %q", got)
	}
}
