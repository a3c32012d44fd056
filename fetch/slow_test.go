package fetch

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// drip delivers an object a few bytes at a time, so many in a second.
type drip struct {
	ctx    context.Context
	rest   int64
	perSec int64
}

func (d *drip) Read(p []byte) (int, error) {
	if d.rest == 0 {
		return 0, io.EOF
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
	n := min(int64(len(p)), d.rest, d.perSec)
	d.rest -= n
	return copy(p[:n], strings.Repeat("d", int(n))), nil
}

func (d *drip) Close() error { return nil }

// drippy is an archive on which some objects come slowly.
type drippy struct {
	*memArchive
	perSec map[string]int64 // bytes a second, by name
}

func (a drippy) Open(ctx context.Context, o Object, offset int64) (io.ReadCloser, error) {
	if rate, ok := a.perSec[o.Name]; ok {
		return &drip{ctx: ctx, rest: o.Size - offset, perSec: rate}, nil
	}
	return a.memArchive.Open(ctx, o, offset)
}

// putSize lists an object of so many bytes, which a drip makes up.
func (a drippy) putSize(name string, size, perSec int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[name] = Object{Name: name, Size: size, ModTime: longAgo()}
	a.perSec[name] = perSec
}

func newDrippy(t *testing.T, edit func(*Config)) (*bench, drippy) {
	t.Helper()
	a := drippy{perSec: map[string]int64{}}
	b := newBench(t, func(c *Config, p *Parts) {
		a.memArchive = p.Archive.(*memArchive)
		p.Archive = a
		if edit != nil {
			edit(c)
		}
	})
	return b, a
}

func TestObjectThatDripsDoesNotHoldUpTheOthers(t *testing.T) {
	for _, parallel := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			b, a := newDrippy(t, func(c *Config) { c.Parallel = parallel })
			a.putSize(dated(1), 40_000, 1) // for eleven hours
			for day := 2; day <= 9; day++ {
				b.archive.put(dated(day), dated(day), longAgo())
			}
			began := time.Now()
			got := b.pollNames(t)
			if want := []string{dated(2), dated(3), dated(4), dated(5), dated(6), dated(7), dated(8), dated(9)}; !slices.Equal(got, want) {
				t.Errorf("parallel %d: Poll() = %v, want the others in their order", parallel, got)
			}
			if took := time.Since(began); took > rateWindow+time.Second {
				t.Errorf("parallel %d: the poll took %v", parallel, took)
			}
			if len(b.problems) != 1 || !errors.Is(b.problems[0].Err, ErrSlow) || !strings.Contains(b.problems[0].Err.Error(), "least_kib_per_second") {
				t.Errorf("parallel %d: problems = %v, want that it comes too slowly and the setting", parallel, b.problems)
			}
			if files := filesIn(t, b.spoolDir); len(files) != 8+2 { // the part and its note
				t.Errorf("parallel %d: the spool holds %v, want the part to resume", parallel, files)
			}
		})
	}
}

func TestObjectThatIsLateGivesWayAndIsHandedOnWhenItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a := newDrippy(t, func(c *Config) { c.Parallel = 1 })
		const slow = 10 << 10 // a little more than the least rate
		a.putSize(dated(1), 3600*slow, slow)
		b.archive.put(dated(2), "second", longAgo())
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		began := time.Now()
		go func() { done <- b.Run(ctx, out) }()
		came := func(want string, within time.Duration) {
			t.Helper()
			if g := <-out; g.Name != want || time.Since(began) > within {
				t.Errorf("%s came after %v, want %s within %v", g.Name, time.Since(began), want, within)
			}
		}
		came(dated(2), b.cfg.Patience)
		b.archive.put(dated(3), "appears later", longAgo()) // at the next poll, while the first is under way
		came(dated(3), b.cfg.Patience+2*b.cfg.PollInterval)
		if opened := b.archive.reads(); opened != 2 {
			t.Errorf("%d objects were read beside the late one, want 2", opened)
		}
		if !b.deliveries.lastPoll.IsZero() {
			t.Error("the archive counts as brought in while an object is under way")
		}
		came(dated(1), time.Hour+b.cfg.PollInterval)
		if state := b.State(); state.Slow != "" {
			t.Errorf("a slow line is held against the archive: %q", state.Slow)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
}

func TestLateDownloadEndsWithTheWatcherAndIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a := newDrippy(t, nil)
		a.putSize(dated(1), 3600*20<<10, 20<<10)
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		go func() { done <- b.Run(ctx, out) }()
		time.Sleep(30 * time.Minute)
		cancel()
		<-done
		began := time.Now()
		if got := b.pollNames(t); len(got) != 1 || time.Since(began) > 31*time.Minute {
			t.Errorf("Poll() = %v after %v, want the second half", got, time.Since(began))
		}
	})
}

func TestObjectMustBeWholeWithinItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a := newDrippy(t, func(c *Config) { c.LeastRate, c.Deadline = 1, time.Hour })
		a.putSize("in-time.nc", 3590*2<<10, 2<<10)
		a.putSize("too-late.nc", 3610*2<<10, 2<<10)
		if diff := cmp.Diff([]string{"in-time.nc"}, b.pollNames(t)); diff != "" {
			t.Errorf("Poll() (-want +got):\n%s", diff)
		}
		if len(b.problems) != 1 || !errors.Is(b.problems[0].Err, ErrSlow) || !strings.Contains(b.problems[0].Err.Error(), "raise deadline") {
			t.Errorf("problems = %v, want that one is not whole in time", b.problems)
		}
	})
}

func TestDefaultsLetALargeGranuleOverASlowLinePass(t *testing.T) {
	const granule = 200_000_000 // bytes
	cfg := DefaultConfig()
	if took := time.Duration(granule/(cfg.LeastRate<<10)) * time.Second; took >= cfg.Deadline {
		t.Errorf("200 MB at the least rate take %v, the deadline is %v", took, cfg.Deadline)
	}
}

func TestSlowObjectIsShownUntilItIsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a := newDrippy(t, nil)
		a.putSize(dated(1), 1<<20, 1)
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		go func() { done <- b.Run(ctx, out) }()
		for range 10 {
			time.Sleep(rateWindow + time.Minute)
			if state := b.State(); !strings.Contains(state.Slow, dated(1)) {
				t.Errorf("State().Slow = %q, want the object", state.Slow)
			}
		}
		a.mu.Lock()
		delete(a.objects, dated(1))
		a.mu.Unlock()
		time.Sleep(b.cfg.PollInterval + rateWindow)
		if state := b.State(); state.Slow != "" {
			t.Errorf("State().Slow = %q after the object is gone", state.Slow)
		}
		cancel()
		<-done
	})
}

// silent is an archive whose listing says nothing, or an entry a minute.
type silent struct {
	*memArchive
	entries bool
}

func (a silent) List(ctx context.Context, scope Scope) ([]Object, error) {
	for {
		select {
		case <-time.After(time.Minute):
			if a.entries {
				scope.Progress()
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestPollWithoutProgressIsStalled(t *testing.T) {
	for _, entries := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(_ *Config, p *Parts) { p.Archive = silent{newMemArchive(), entries} })
			ctx, cancel := context.WithCancel(t.Context())
			out, done := make(chan Granule), make(chan error)
			go func() { done <- b.Run(ctx, out) }()
			time.Sleep(b.cfg.Stall + time.Second)
			if got := b.State().Stalled(time.Now(), b.cfg.Stall); got == entries {
				t.Errorf("entries %v: Stalled() = %v", entries, got)
			}
			time.Sleep(b.cfg.Deadline - b.cfg.Stall)
			if state := b.State(); state.Working || !strings.Contains(state.Err, "deadline") {
				t.Errorf("entries %v: after the deadline the state is %+v", entries, state)
			}
			cancel()
			<-done
		})
	}
}

func TestWatcherThatWaitsForOthersIsNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.archive.put("a.nc", "a", longAgo())
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		go func() { done <- b.Run(ctx, out) }()
		for range 2 { // while nobody takes the granule, and while the next poll is not due
			time.Sleep(b.cfg.Stall + 90*time.Second)
			if b.State().Stalled(time.Now(), b.cfg.Stall) {
				t.Error("a watcher that waits is stalled")
			}
			select {
			case <-out:
			default:
			}
		}
		cancel()
		<-done
	})
}

func TestLateDownloadsLeaveRoomForOthers(t *testing.T) {
	for _, tt := range []struct {
		parallel, readers int
		want              lanes
	}{
		{2, 0, lanes{2, 2}},
		{2, 4, lanes{2, 2}},
		{1, 4, lanes{1, 1}},
		{4, 4, lanes{3, 1}},
		{64, 4, lanes{3, 1}},
		{2, 2, lanes{1, 1}},
		{2, 1, lanes{1, 0}},
		{8, 100, lanes{8, 8}},
	} {
		if got := newLanes(tt.parallel, tt.readers); got != tt.want {
			t.Errorf("newLanes(%d, %d) = %+v, want %+v", tt.parallel, tt.readers, got, tt.want)
		}
	}
}

func TestArchiveWithFewReadersStillLetsOthersPassALateOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := drippy{memArchive: newMemArchive(), perSec: map[string]int64{}}
		limited, err := NewLimited(a, 2)
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, func(c *Config, p *Parts) { c.Parallel, p.Archive, p.Readers = 4, limited, 2 })
		a.putSize(dated(1), 3600*20<<10, 20<<10)
		for day := 2; day <= 9; day++ {
			a.put(dated(day), dated(day), longAgo())
		}
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		began := time.Now()
		go func() { done <- b.Run(ctx, out) }()
		for day := 2; day <= 9; day++ {
			if g := <-out; g.Name != dated(day) || time.Since(began) > b.cfg.Patience {
				t.Errorf("%s came after %v, want %s within %v", g.Name, time.Since(began), dated(day), b.cfg.Patience)
			}
		}
		cancel()
		<-done
	})
}
