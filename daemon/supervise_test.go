package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lacuna/ledger"
)

// A stage that panics, one that fails and one that hangs are named and started
// again, and the one beside them does not notice.
func TestStageThatEndsIsNamedAndStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		v := newSupervisor(slog.New(slog.NewTextHandler(&log, nil)))
		vital := &vitals{now: time.Now}
		intake, stop := context.WithCancel(t.Context())
		runs := map[string]int{}
		var mu sync.Mutex
		count := func(name string) int {
			mu.Lock()
			defer mu.Unlock()
			runs[name]++
			return runs[name]
		}
		slow := vital.pulse("slow", time.Minute)
		stages := []stage{
			lasting("panics", nil, func(ctx context.Context) error {
				if count("panics") < 4 {
					panic("index out of range")
				}
				<-ctx.Done()
				return nil
			}),
			lasting("fails", nil, func(ctx context.Context) error {
				if count("fails") < 3 {
					return errors.New("no space left")
				}
				<-ctx.Done()
				return nil
			}),
			{name: "slow", pulse: slow, run: func(intake, work context.Context) error {
				if count("slow") == 1 {
					slow.beat()
					<-work.Done() // for ever, if nobody looked
					return work.Err()
				}
				<-intake.Done()
				return nil
			}},
			lasting("steady", nil, func(ctx context.Context) error { count("steady"); <-ctx.Done(); return nil }),
			lasting("short", nil, func(context.Context) error { count("short"); return nil }),
		}
		ended := make(chan error, len(stages))
		for _, s := range stages {
			go func() { ended <- v.keep(intake, t.Context(), s) }()
		}
		time.Sleep(10 * time.Minute)
		stop()
		for range stages {
			if err := <-ended; err != nil {
				t.Errorf("a stage ended with %v", err)
			}
		}
		if want := "map[fails:3 panics:4 short:1 slow:2 steady:1]"; fmt.Sprint(runs) != want {
			t.Errorf("starts %v, want %s", runs, want)
		}
		for _, want := range []string{"stage=panics", "index out of range", "stage=fails", "no space left", "stage=slow", "no sign of life"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q", want)
			}
		}
		if strings.Contains(log.String(), "steady") || strings.Contains(log.String(), "short") {
			t.Errorf("the log names stages that are well:\n%s", log.String())
		}
	})
}

func TestDamagedLedgerEndsTheDaemon(t *testing.T) {
	v := newSupervisor(slog.New(slog.DiscardHandler))
	err := v.keep(t.Context(), t.Context(), lasting("x", nil, func(context.Context) error {
		return fmt.Errorf("check: %w", ledger.ErrDamaged)
	}))
	if !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("keep() = %v", err)
	}
}

// Whatever makes a worker panic, its dataset goes on, and the granule with it
// where the cause is gone.
func TestDatasetOutlivesAPanicOfItsWorker(t *testing.T) {
	b := newBench(t)
	b.cfg.Datasets[0].Fill.Method = "persistence"
	deliverDays(t, b, 2)
	d := b.daemon(t)
	book, err := d.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	out, err := d.openOutbox(t.Context(), book)
	if err != nil {
		t.Fatal(err)
	}
	defer out.close()
	w, in, err := d.dataset(b.cfg.Datasets[0], shared{book: book, out: out, renewal: d.openRenewal(book)})
	if err != nil {
		t.Fatal(err)
	}
	falls := 2
	w.hold = func() func() {
		if falls--; falls >= 0 {
			panic("the sky falls")
		}
		return func() {}
	}
	v := newSupervisor(d.log)
	v.pause = func(int) time.Duration { return time.Millisecond }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- v.keep(ctx, t.Context(), stage{name: "worker", run: func(intake, work context.Context) error { return w.run(intake, work, in.Watcher) }})
	}()
	until(t, "two stored granules", func() bool {
		done, err := book.Recent(t.Context(), 9, ledger.Stored)
		return err == nil && len(done) == 2
	})
	stop()
	if err := <-ended; err != nil || !strings.Contains(b.log.String(), "the sky falls") {
		t.Errorf("keep() = %v, log:\n%s", err, b.log)
	}
}

// A stop waits for the granule in hand as long as it was told, and the next
// start takes it up again.
func TestDrainEndsAtItsDeadlineAndTheNextStartGoesOn(t *testing.T) {
	b := newBench(t)
	b.cfg.Datasets[0].Fill.Method = "persistence"
	b.cfg.Drain = 300 * time.Millisecond
	deliverDays(t, b, 1)
	if _, err := b.daemon(t).Fetch(t.Context(), Fetch{}); err != nil {
		t.Fatal(err)
	}
	d, err := New(b.cfg, Parts{Log: slog.New(slog.DiscardHandler), Child: []string{"sleep", "60"}}) // never decodes anything
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	until(t, "a granule in hand", func() bool {
		d.vitals.mu.Lock()
		defer d.vitals.mu.Unlock()
		for _, p := range d.vitals.pulses {
			if strings.HasPrefix(p.stage, "worker") && !p.last.IsZero() {
				return true
			}
		}
		return false
	})
	began := time.Now()
	stop()
	if err := <-ended; !errors.Is(err, errDrainTimeout) {
		t.Errorf("Run() = %v, want %v", err, errDrainTimeout)
	}
	if took := time.Since(began); took < b.cfg.Drain || took > 20*time.Second {
		t.Errorf("the drain took %v", took)
	}
	if s := b.once(t); s.Products != 1 {
		t.Errorf("the next start made %d products, want the one that was in hand", s.Products)
	}
}

// A second daemon, or a pass by cron, is told who is at work, and changes
// nothing.
func TestOnceBesideARunningDaemonIsRefused(t *testing.T) {
	b := newBench(t)
	b.cfg.Datasets[0].Fill.Method = "persistence"
	deliverDays(t, b, 1)
	d := b.daemon(t)
	stop := start(t, d)
	until(t, "a product", func() bool { return len(b.productsIfAny()) == 1 })
	deliverDays(t, b, 1)
	_, err := b.daemon(t).Once(t.Context())
	if !errors.Is(err, ledger.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("Once() = %v, want that the ledger is in use and by whom", err)
	}
	if _, err := b.daemon(t).Fetch(t.Context(), Fetch{}); !errors.Is(err, ledger.ErrLocked) {
		t.Errorf("Fetch() = %v", err)
	}
	stop()
	if _, err := b.daemon(t).Once(t.Context()); err != nil {
		t.Errorf("Once() after the daemon = %v", err)
	}
}

// productsIfAny is products before the folder is there.
func (b *bench) productsIfAny() []string {
	files, _ := filepath.Glob(filepath.Join(b.cfg.ProductsDir, "*", "*", "*", "*.nc"))
	return files
}
