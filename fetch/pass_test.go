package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// notNetCDF is a validation as the daemon's child does it.
func notNetCDF(_ context.Context, path string) error {
	content, err := os.ReadFile(path)
	if err == nil && strings.HasPrefix(string(content), "<html>") {
		return fmt.Errorf("%w: it is a web page", ErrInvalid)
	}
	return err
}

func TestFileThatIsNoGranuleIsSetAsideUntilTheArchiveHasAnother(t *testing.T) {
	b := newBench(t, func(c *Config, p *Parts) { c.Settle, p.Validate = 0, notNetCDF })
	b.archive.put("a.nc", "<html>404", longAgo())
	b.archive.put("b.nc", "granule", longAgo())
	if diff := cmp.Diff([]string{"b.nc"}, b.pollNames(t)); diff != "" {
		t.Errorf("Poll() (-want +got):\n%s", diff)
	}
	if len(b.problems) != 1 || !errors.Is(b.problems[0].Err, ErrInvalid) {
		t.Errorf("problems = %v, want a.nc with ErrInvalid", b.problems)
	}
	aside := b.deliveries.newest["a.nc"]
	wantWhole(t, aside, "<html>404")
	why, err := os.ReadFile(aside.Path + ".why.txt")
	if filepath.Dir(aside.Path) != filepath.Join(b.spoolDir, "aside") || err != nil || !strings.Contains(string(why), "web page") {
		t.Errorf("set aside in %s with the reason %q, %v", aside.Path, why, err)
	}
	if got := b.pollNames(t); len(got) != 0 || b.archive.opened != 2 {
		t.Errorf("Poll() again = %v after %d reads, want it left alone", got, b.archive.opened)
	}
	b.archive.put("a.nc", "<html>404", longAgo().Add(time.Hour)) // touched
	if got := b.pollNames(t); len(got) != 0 || len(b.problems) != 1 {
		t.Errorf("Poll() of the same bytes = %v, problems %v; want nothing new", got, b.problems)
	}
	if files := granulesIn(t, b.spoolDir); len(files) != 4 { // b.nc, a.nc with a name aside, and why
		t.Errorf("spool holds %v, want no second copy", files)
	}
	// To another dataset the same bytes may be a granule, which it has in the spool.
	place, err := os.Stat(NewSpool(b.spoolDir).path("a.nc", aside.SHA256))
	named, bad := os.Stat(aside.Path)
	if errors.Join(err, bad) != nil || !os.SameFile(place, named) {
		t.Errorf("in the spool %v, aside %v, %v, want one file under two names", place, named, errors.Join(err, bad))
	}
	b.archive.put("a.nc", "mended", longAgo().Add(2*time.Hour))
	if diff := cmp.Diff([]string{"a.nc"}, b.pollNames(t)); diff != "" {
		t.Errorf("Poll() once it is mended (-want +got):\n%s", diff)
	}
}

func TestValidationThatCannotBeDoneIsNotHeldAgainstTheFile(t *testing.T) {
	broken := errors.New("cannot start the child")
	b := newBench(t, func(_ *Config, p *Parts) { p.Validate = func(context.Context, string) error { return broken } })
	b.archive.put("a.nc", "granule", longAgo())
	if got := b.pollNames(t); len(got) != 0 || len(b.problems) != 1 || !errors.Is(b.problems[0].Err, broken) {
		t.Errorf("Poll() = %v with problems %v, want the failure", got, b.problems)
	}
	b.parts.Validate = notNetCDF
	if diff := cmp.Diff([]string{"a.nc"}, b.pollNames(t)); diff != "" {
		t.Errorf("Poll() once the child starts (-want +got):\n%s", diff)
	}
}

func TestArchiveThatTouchesOrMovesAllItsFilesIsNotReadAgain(t *testing.T) {
	b := newBench(t, func(c *Config, _ *Parts) { c.Settle = 0 })
	put := func(folder string, day int, modTime time.Time) {
		name := fmt.Sprintf("%s/202405%02d_chl.nc", folder, day)
		b.archive.put(name, fmt.Sprint("field of day ", day), modTime)
		o := b.archive.objects[name]
		o.MD5 = md5Of(b.archive.content[name])
		b.archive.objects[name] = o
	}
	for day := 1; day <= 30; day++ {
		put("v1", day, longAgo())
	}
	if got := b.pollNames(t); len(got) != 30 {
		t.Fatalf("Poll() = %v, want 30", got)
	}
	for day := 1; day <= 30; day++ {
		put("v1", day, longAgo().Add(time.Hour))
	}
	if got := b.pollNames(t); len(got) != 0 || b.archive.opened != 30 {
		t.Errorf("touched: Poll() = %v after %d reads, want none beside the first 30", got, b.archive.opened)
	}
	clear(b.archive.objects)
	for day := 1; day <= 30; day++ {
		put("v2", day, longAgo().Add(2*time.Hour))
	}
	for range 2 {
		if got := b.pollNames(t); len(got) != 0 || b.archive.opened != 30 {
			t.Errorf("moved: Poll() = %v after %d reads, want none beside the first 30", got, b.archive.opened)
		}
	}
	if k := b.deliveries.objects["v1/20240501_chl.nc"]; k.Vanished.IsZero() {
		t.Errorf("the old name is on record as %+v, want it vanished", k)
	}
}

func TestMoveWithoutHashesIsReadOnceAndNotHandedOn(t *testing.T) {
	b := newBench(t, func(c *Config, _ *Parts) { c.Settle = 0 })
	b.archive.put("old/20240501_a.nc", "the field", longAgo())
	b.pollNames(t)
	delete(b.archive.objects, "old/20240501_a.nc")
	b.archive.put("new/20240501_renamed.nc", "the field", longAgo())
	b.archive.put("copy/20240501_a.nc", "the field", longAgo())
	for range 2 {
		if got := b.pollNames(t); len(got) != 0 || b.archive.opened != 3 {
			t.Errorf("Poll() = %v after %d reads, want nothing and each new name read once", got, b.archive.opened)
		}
	}
	if files := granulesIn(t, b.spoolDir); len(files) != 1 {
		t.Errorf("spool holds %v, want the granule once", files)
	}
	b.archive.put("old/20240502_a.nc", "the field", longAgo()) // another day: its name may be all that says so
	if diff := cmp.Diff([]string{"old/20240502_a.nc"}, b.pollNames(t)); diff != "" {
		t.Errorf("the same bytes for another day (-want +got):\n%s", diff)
	}
}

func TestEmptyListingIsNoReasonToFetchAgain(t *testing.T) {
	b := newBench(t, nil)
	b.archive.put("a.nc", "a", longAgo())
	b.pollNames(t)
	hidden := b.archive.objects
	b.archive.objects = map[string]Object{} // a listing that lies
	b.pollNames(t)
	b.archive.objects = hidden
	b.pollNames(t)
	if diff := cmp.Diff([]string{"arrived a.nc", "vanished a.nc", "returned a.nc"}, b.deliveries.kinds()); diff != "" || b.archive.opened != 1 {
		t.Errorf("%d reads, recorded (-want +got):\n%s", b.archive.opened, diff)
	}
}

func TestObjectThatKeepsFailingIsTriedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config, _ *Parts) { c.PollInterval = time.Minute })
		b.archive.put("a.nc", "a", longAgo())
		b.archive.onOpen = func(Object) (io.ReadCloser, error) { return nil, errors.New("internal server error") }
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		go func() { done <- b.Run(ctx, out) }()
		time.Sleep(7*24*time.Hour + time.Second)
		// At 0, 1, 2, 4, 8... minutes up to a day apart: 12 in the first day.
		if reads := b.archive.reads(); reads < 15 || reads > 20 {
			t.Errorf("%d tries in a week, want about 18", reads)
		}
		cancel()
		<-done
	})
}

func TestDownloadsRunSideBySideAndAreHandedOnInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config, _ *Parts) { c.Parallel = 3 })
		for day := 1; day <= 9; day++ {
			b.archive.put(dated(day), dated(day), longAgo())
		}
		var now, most atomic.Int64
		b.archive.onOpen = func(o Object) (io.ReadCloser, error) {
			content := strings.NewReader(o.Name)
			return io.NopCloser(readerFunc(func(p []byte) (int, error) {
				if content.Len() == len(o.Name) {
					most.Store(max(most.Load(), now.Add(1)))
					// The earlier the day, the slower.
					time.Sleep(time.Duration(40-int(o.Name[len(o.Name)-8])+'0') * time.Second)
					now.Add(-1)
				}
				return content.Read(p)
			})), nil
		}
		started := time.Now()
		got := b.pollNames(t)
		if !slices.IsSorted(got) || len(got) != 9 {
			t.Errorf("Poll() = %v, want nine days in order", got)
		}
		if most.Load() != 3 || time.Since(started) > 3*40*time.Second {
			t.Errorf("%d at a time, %v in all; want 3 and two minutes at most", most.Load(), time.Since(started))
		}
	})
}

func TestServiceThatWasDownCatchesUp(t *testing.T) {
	now := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	b := newBench(t, func(c *Config, p *Parts) {
		c.Lookback = 3 * 24 * time.Hour
		p.Now = func() time.Time { return now }
	})
	for day := 1; day <= 20; day++ {
		b.archive.put(dated(day), dated(day), longAgo())
	}
	if diff := cmp.Diff([]string{dated(17), dated(18), dated(19), dated(20)}, b.pollNames(t)); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	now = now.AddDate(0, 0, 8) // down for a week
	for day := 21; day <= 28; day++ {
		b.archive.put(dated(day), dated(day), longAgo())
	}
	b.archive.put(dated(15), "reprocessed before the last look", longAgo())
	if got := b.pollNames(t); len(got) != 8 || got[0] != dated(21) {
		t.Errorf("after a week = %v, want the eight days that were missed", got)
	}
}

func TestFailedObjectIsNotForgottenWhenItLeavesTheLookBack(t *testing.T) {
	now := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	b := newBench(t, func(c *Config, p *Parts) {
		c.Lookback = 2 * 24 * time.Hour
		p.Now = func() time.Time { return now }
	})
	b.archive.put(dated(20), "x", longAgo())
	b.pollNames(t)
	b.archive.put(dated(19), "y", longAgo())
	b.archive.onOpen = func(Object) (io.ReadCloser, error) { return nil, errors.New("internal server error") }
	for range 6 {
		now = now.AddDate(0, 0, 1)
		b.pollNames(t)
	}
	b.archive.onOpen = nil
	now = now.AddDate(0, 0, 1)
	if diff := cmp.Diff([]string{dated(19)}, b.pollNames(t)); diff != "" {
		t.Errorf("a week later (-want +got):\n%s", diff)
	}
}

func TestBackfillWaitsForWhatIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
		offset := time.Until(start)
		b := newBench(t, func(c *Config, p *Parts) {
			c.Lookback, c.Parallel, c.PollInterval, c.Settle = 24*time.Hour, 1, time.Minute, 0
			c.Backfill = Days{From: start.AddDate(0, 0, -19), To: start.AddDate(0, 0, -10)}
			p.Now = func() time.Time { return time.Now().Add(offset) }
		})
		for day := 1; day <= 20; day++ {
			b.archive.put(dated(day), dated(day), longAgo())
		}
		b.archive.onOpen = func(o Object) (io.ReadCloser, error) {
			time.Sleep(25 * time.Second) // so that a poll is due in the middle of the backfill
			return io.NopCloser(strings.NewReader(o.Name)), nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		go func() { done <- b.Run(ctx, out) }()
		var got []string
		for range 12 {
			g := <-out
			if got = append(got, g.Name); len(got) == 5 {
				b.archive.put("2024/20240520_late.nc", "2024/20240520_late.nc", longAgo())
			}
		}
		want := []string{dated(19), dated(20), dated(1), dated(2), dated(3)}
		if diff := cmp.Diff(want, got[:5]); diff != "" {
			t.Errorf("handed on (-want +got):\n%s", diff)
		}
		if i := slices.Index(got, "2024/20240520_late.nc"); i < 5 || i > 7 {
			t.Errorf("handed on %v, want the late live granule before the backfill", got)
		}
		cancel()
		<-done
	})
}

func TestListingThatLiesAboutSizesDoesNotHurtOthers(t *testing.T) {
	b := newBench(t, nil)
	b.archive.put("short.nc", "abc", longAgo())
	b.archive.put("long.nc", "abc", longAgo())
	b.archive.put("good.nc", "abc", longAgo())
	for name, size := range map[string]int64{"short.nc": 4, "long.nc": 2} {
		o := b.archive.objects[name]
		o.Size = size
		b.archive.objects[name] = o
	}
	if diff := cmp.Diff([]string{"good.nc"}, b.pollNames(t)); diff != "" {
		t.Errorf("Poll() (-want +got):\n%s", diff)
	}
	if len(b.problems) != 2 || !errors.Is(b.problems[0].Err, ErrChanged) || !errors.Is(b.problems[1].Err, ErrChanged) {
		t.Errorf("problems = %v, want both lies", b.problems)
	}
}

func TestPlanSaysWhatWouldBeDoneAndDoesNothing(t *testing.T) {
	b := newBench(t, nil)
	b.archive.put("gone.nc", "g", longAgo())
	b.pollNames(t)
	delete(b.archive.objects, "gone.nc")
	b.archive.put("a.nc", "a", longAgo())
	b.archive.put("b.nc", "b", time.Now())
	b.archive.put("c\n.nc", "c", longAgo())
	before := len(b.deliveries.changes)
	for range 2 {
		actions, err := b.Plan(t.Context(), Days{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range actions {
			got = append(got, string(a.Kind)+" "+a.Object.Name)
		}
		if diff := cmp.Diff([]string{"new a.nc", "waiting b.nc", "refused c\n.nc", "vanished gone.nc"}, got); diff != "" {
			t.Errorf("Plan() (-want +got):\n%s", diff)
		}
	}
	if len(b.deliveries.changes) != before || b.archive.opened != 1 || len(b.sighting) != 0 {
		t.Errorf("Plan() left traces: %v, %d reads, %v", b.deliveries.kinds(), b.archive.opened, b.sighting)
	}
}

// heardProgress is a progress that adds up.
type heardProgress struct {
	objects, done, failed int
	bytes                 atomic.Int64
}

func (c *heardProgress) Begin(downloads []Action) { c.objects += len(downloads) }
func (c *heardProgress) Bytes(_ Object, n int)    { c.bytes.Add(int64(n)) }
func (c *heardProgress) Done(_ Object, err error) {
	c.done++
	if err != nil {
		c.failed++
	}
}

func TestSyncIsTruthfulAboutWhatIsMissing(t *testing.T) {
	b := newBench(t, func(_ *Config, p *Parts) { p.Validate = notNetCDF })
	for day := 1; day <= 5; day++ {
		b.archive.put(dated(day), dated(day), longAgo())
	}
	b.archive.put(dated(6), "<html>", longAgo())
	b.archive.put("a\n.nc", "x", longAgo())
	b.archive.put(dated(7), "being written", time.Now())
	b.archive.put(dated(20), "not asked for", longAgo())
	b.archive.onOpen = func(o Object) (io.ReadCloser, error) {
		if o.Name == dated(2) || o.Name == dated(4) {
			return nil, errors.New("internal server error")
		}
		return io.NopCloser(strings.NewReader(string(b.archive.content[o.Name]))), nil
	}
	var heard heardProgress
	days := Days{From: time.Date(1990, 5, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2024, 5, 9, 0, 0, 0, 0, time.UTC)}
	sum, err := b.Sync(t.Context(), days, &heard)
	want := Summary{Listed: 9, Arrived: 3, SetAside: 1, Refused: 1, Waiting: 1, Failed: 2, Bytes: 3 * int64(len(dated(1)))}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("Sync() (-want +got):\n%s", diff)
	}
	if err == nil || !strings.Contains(err.Error(), "2 of 6 objects could not be fetched") || !strings.Contains(err.Error(), dated(2)) {
		t.Errorf("Sync() = %v, want the count and an example", err)
	}
	if heard.objects != 6 || heard.done != 6 || heard.failed != 2 || heard.bytes.Load() != want.Bytes+6 {
		t.Errorf("progress heard of %d objects, %d done, %d failed, %d bytes", heard.objects, heard.done, heard.failed, heard.bytes.Load())
	}
}

func TestSyncLooksAgainAtWhatWasReplacedMeanwhile(t *testing.T) {
	b := newBench(t, func(c *Config, _ *Parts) { c.Settle = 0 })
	b.archive.put("a.nc", "first", longAgo())
	b.archive.onOpen = func(Object) (io.ReadCloser, error) {
		b.archive.onOpen = nil
		b.archive.objects["a.nc"] = Object{Name: "a.nc", Size: 6, ModTime: longAgo().Add(time.Hour)}
		b.archive.content["a.nc"] = []byte("second")
		return nil, ErrChanged
	}
	sum, err := b.Sync(t.Context(), Days{}, nil)
	if err != nil || sum.Arrived != 1 || sum.Failed != 0 {
		t.Errorf("Sync() = %+v, %v; want the second content", sum, err)
	}
	wantWhole(t, b.deliveries.newest["a.nc"], "second")
}
