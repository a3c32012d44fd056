package daemon

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/ledger"
	"lacuna/pipeline/simulate"

	"golang.org/x/sys/unix"
)

// enduring is a daemon whose fills cost nothing, with a new day as soon as the one
// before is done.
func enduring(t *testing.T) (*bench, *Daemon) {
	t.Helper()
	b := newBench(t)
	b.cfg.Publish.Disk.FloorMiB = 0
	set := &b.cfg.Datasets[0]
	set.Archive.PollInterval = 100 * time.Millisecond
	set.Archive.DiskFloor.Bytes, set.Archive.DiskFloor.Share = 0, 0
	set.Fill.Method, set.Fill.PastDays, set.Fill.FutureDays = "persistence", 3, 1
	set.Reanalysis.Settle = 50 * time.Millisecond // stands for a day
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(b.cfg, Parts{Log: slog.New(slog.DiscardHandler), Child: []string{self, "decode"}})
	if err != nil {
		t.Fatal(err)
	}
	return b, d
}

// usage is the memory, descriptors and goroutines of a process.
type usage struct {
	day         int
	heapBytes   float64 // heap after a garbage collection
	memoryBytes float64 // resident set size
	descriptors float64
	goroutines  float64
}

func takeUsage(day int) usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{day: day, heapBytes: float64(m.HeapAlloc), goroutines: float64(runtime.NumGoroutine())}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.descriptors = float64(len(fds))
	}
	var resident, skip float64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		_, _ = fmt.Sscan(string(text), &skip, &resident)
		u.memoryBytes = resident * float64(os.Getpagesize())
	}
	return u
}

// slope returns the growth of a figure in a year, by least squares, and its
// standard error.
func slope(all []usage, of func(usage) float64) (perYear, e float64) {
	var n, x, y, xx, xy float64
	for _, u := range all {
		d, v := float64(u.day)/365, of(u)
		n, x, y, xx, xy = n+1, x+d, y+v, xx+d*d, xy+d*v
	}
	spread := xx - x*x/n
	if n < 3 || spread == 0 {
		return 0, math.Inf(1)
	}
	perYear = (xy - x*y/n) / spread
	var squares float64
	for _, u := range all {
		miss := of(u) - y/n - perYear*(float64(u.day)/365-x/n)
		squares += miss * miss
	}
	return perYear, math.Sqrt(squares / (n - 2) / spread)
}

// Years of days go through the daemon: archive, spool, ledger, re-analysis,
// scores, store, disk. Its use of resources does not grow with them.
func TestYearsOfDaysLeaveMemoryAndDescriptorsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a year of days")
	}
	days := 60
	if os.Getenv("LACUNA_LONG") != "" {
		days = 30 * 365
	}
	if text := os.Getenv("LACUNA_TEST_DAYS"); text != "" {
		_, _ = fmt.Sscan(text, &days)
	}
	b, d := enduring(t)
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 8, Width: 8, Days: 40, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	templates := firstVersions(w, 20)
	stop := start(t, d)
	defer stop()
	until(t, "a start", func() bool { return d.ready.Load() })
	book, err := ledger.Join(t.Context(), b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()

	first := time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC)
	var seen []usage
	began := time.Now()
	sample := max(days/60, 1)
	for day := range days {
		g := w.Granule(templates[day%len(templates)])
		moveToDay(&g, first.AddDate(0, 0, day))
		if err := feed.Write(filepath.Join(b.archive(), g.Name), g); err != nil {
			t.Fatal(err)
		}
		if day >= 40 { // the archive keeps a month; only the ledger knows older days
			_ = os.Remove(filepath.Join(b.archive(), dayName(first.AddDate(0, 0, day-40))))
		}
		if day%20 == 19 || day == days-1 {
			waitForDay(t, book, first.AddDate(0, 0, day))
		}
		if day%100 == 99 {
			trim(t, b, first.AddDate(0, 0, day-40))
		}
		if day%sample == 0 {
			seen = append(seen, takeUsage(day))
		}
	}
	took := time.Since(began)
	if rows, err := book.Window(t.Context(), "sea", first, first.AddDate(0, 0, days)); err != nil || len(rows) != days {
		t.Errorf("the ledger has %d of %d days, %v", len(rows), days, err)
	}
	half := seen[len(seen)/2:] // the first half warms up
	t.Logf("%d days in %v, %.1f ms a day, of which the daemon's processor time is %.1f", days, took.Round(time.Second),
		1000*took.Seconds()/float64(days), 1000*processCPU(t).Seconds()/float64(days))
	last := seen[len(seen)-1]
	for name, of := range map[string]func(usage) float64{
		"heap MiB":     func(u usage) float64 { return u.heapBytes / (1 << 20) },
		"resident MiB": func(u usage) float64 { return u.memoryBytes / (1 << 20) },
		"descriptors":  func(u usage) float64 { return u.descriptors },
		"goroutines":   func(u usage) float64 { return u.goroutines },
	} {
		grows, e := slope(half, of)
		t.Logf("%s: %.1f at the end, %+.2f ± %.2f a year", name, of(last), grows, e)
	}
	if days >= 365 { // fewer cannot tell growth from warming up
		wantFlat(t, half)
	}
	if last.heapBytes > 64<<20 || last.descriptors > 100 || last.goroutines > 200 {
		t.Errorf("after %d days it holds on to %+v", days, last)
	}
}

// wantFlat checks that the growth over thirty years would not matter, within the
// standard error of the measurement.
func wantFlat(t *testing.T, seen []usage) {
	t.Helper()
	const years, sure = 30, 3 // standard errors
	for what, most := range map[string]struct {
		of    func(usage) float64
		limit float64
	}{
		"bytes of heap": {func(u usage) float64 { return u.heapBytes }, 50 << 20},
		"descriptors":   {func(u usage) float64 { return u.descriptors }, 30},
		"goroutines":    {func(u usage) float64 { return u.goroutines }, 30},
	} {
		if grows, e := slope(seen, most.of); years*(grows-sure*e) > most.limit {
			t.Errorf("in thirty years %.0f %s would be lost", years*grows, what)
		}
	}
}

func dayName(day time.Time) string { return day.Format("20060102") + "_sea.nc" }

// moveToDay gives a simulated granule another day: its time is stored as whole
// seconds since 1981.
func moveToDay(g *simulate.Granule, day time.Time) {
	seconds := day.Sub(time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Second
	g.Name = dayName(day)
	g.File.Vars = slices.Clone(g.File.Vars)
	for i, v := range g.File.Vars {
		if v.Name == "time" {
			g.File.Vars[i].Raw = binary.LittleEndian.AppendUint32(nil, uint32(seconds))
		}
	}
}

// muteServer returns the address of a server that never answers.
func muteServer(t *testing.T, asked *atomic.Int32) string {
	t.Helper()
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(over); server.Close() })
	return server.URL
}

// waitForDay waits until the granule of a day was taken up; all earlier ones were
// taken up before it, because granules are filled in order.
func waitForDay(t *testing.T, book *ledger.Ledger, day time.Time) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		g, _, err := book.Newest(t.Context(), "sea")
		if err != nil {
			t.Fatal(err)
		}
		if !g.Last.Before(day) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v has not come after two minutes; the newest is of %v", day, g.Last)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// trim removes the products and the spool of old days, as retention does: the test
// is about the memory and the ledger of the daemon.
func trim(t *testing.T, b *bench, before time.Time) {
	t.Helper()
	for _, pattern := range []string{"sea/*/*/*", "sea/.revisions/*/*/*"} {
		files, _ := filepath.Glob(filepath.Join(b.cfg.ProductsDir, pattern))
		for _, file := range files {
			if name := filepath.Base(file); len(name) > 8 && name[:8] < before.Format("20060102") {
				_ = os.RemoveAll(file)
			}
		}
	}
}

// processCPU returns the processor time that this process has used.
func processCPU(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Two hundred datasets that have nothing to do cost next to nothing.
func TestTwoHundredIdleDatasetsCostNextToNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("measures times")
	}
	const datasets = 200
	const most = 0.05
	watched := 2 * time.Second
	if os.Getenv("LACUNA_LONG") != "" {
		watched = time.Minute
	}
	share := func(of time.Duration) float64 {
		before, began := processCPU(t), time.Now()
		time.Sleep(of) // the cost of waiting is measured
		return (processCPU(t) - before).Seconds() / time.Since(began).Seconds()
	}
	others := share(time.Second) // what tests before this one have left running
	b := manySets(t, datasets)
	for i := range b.cfg.Datasets { // the default interval, spread as schedules and starts are
		b.cfg.Datasets[i].Archive.PollInterval = 2 * time.Minute
	}
	d := b.daemon(t)
	stop := start(t, d)
	defer stop()
	until(t, "a start", func() bool { return d.ready.Load() })
	for _, set := range b.cfg.Datasets {
		until(t, "the first poll of "+set.Name, func() bool { return !d.intakes[set.Name].State().LastPoll.IsZero() })
	}
	own := share(watched) - others
	for range 4 { // what a start leaves to do ends, later where the machine is busy
		if own <= most {
			break
		}
		own = share(watched) - others
	}
	t.Logf("%d idle datasets: %.2f %% of a processor over %v, beside %.2f %%", datasets, 100*own, watched, 100*others)
	if own > most {
		t.Errorf("idle datasets take %.1f %% of a processor, want at most %.0f %%", 100*own, 100*most)
	}
}

// manySets is a bench with n datasets, each with an archive of its own.
func manySets(t *testing.T, n int) *bench {
	t.Helper()
	b := newBench(t)
	set := b.cfg.Datasets[0]
	set.Fill.Method, set.DailySkill = "persistence", false
	b.cfg.Publish.Disk.FloorMiB = 0
	b.cfg.Datasets = nil
	for i := range n {
		one := set
		one.Name = fmt.Sprintf("set%03d", i)
		one.Archive.Dir = filepath.Join(filepath.Dir(b.cfg.StateDir), "archives", one.Name)
		if err := os.MkdirAll(one.Archive.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		b.cfg.Datasets = append(b.cfg.Datasets, one)
	}
	return b
}

// One archive never answers and one dataset always fails; the other datasets are
// not held up.
func TestHangingArchiveAndFailingDatasetDelayNobody(t *testing.T) {
	b := manySets(t, 6)
	asked := atomic.Int32{}
	b.cfg.Datasets[0].Archive.Type = "http"
	b.cfg.Datasets[0].Archive.HTTP.URL = muteServer(t, &asked) + "/"
	b.cfg.Datasets[1].SeaMask = filepath.Join(t.TempDir(), "not-there.nc") // a failure of our own, at every granule
	w := world(t, 16, 24)
	days := firstVersions(w, 3)
	for _, set := range b.cfg.Datasets[1:] {
		for _, day := range days {
			put(t, set.Archive.Dir, w.Granule(day))
		}
	}
	d := b.daemon(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	until(t, "a start", func() bool { return d.ready.Load() })
	book, err := ledger.Join(t.Context(), b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	products := func(state ledger.State) map[string]int {
		counts, err := book.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]int{}
		for _, c := range counts {
			if c.State == state {
				all[c.Dataset] = c.Granules
			}
		}
		return all
	}
	until(t, "the products of the healthy datasets", func() bool {
		done := products(ledger.Announced)
		return done["set002"] == 3 && done["set003"] == 3 && done["set004"] == 3 && done["set005"] == 3
	})
	if asked.Load() == 0 {
		t.Error("the archive that hangs was never asked")
	}
	if got := products(ledger.Fetched)["set001"]; got != 3 {
		t.Errorf("%d granules of the dataset that fails wait, want 3: they are tried again", got)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Run() = %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the archive that hangs keeps the daemon from stopping")
	}
}
