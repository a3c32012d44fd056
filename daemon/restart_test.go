package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/operate"
	"lacuna/daemon/supervise"
	"lacuna/daemon/work"
	"lacuna/ledger"
)

// fallingSky panics as the first tasks begin.
type fallingSky struct {
	work.Trainings
	falls int
}

func (f *fallingSky) Hold() (release func()) {
	if f.falls--; f.falls >= 0 {
		panic("the sky falls")
	}
	return f.Trainings.Hold()
}

// After a panic of its worker a dataset goes on, and where the cause is gone so
// does the granule.
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
	defer out.Close()
	w, in, err := d.dataset(b.cfg.Datasets[0], shared{book: book, out: out, renewal: d.openRenewal(book)})
	if err != nil {
		t.Fatal(err)
	}
	w.Trainings = &fallingSky{Trainings: w.Trainings, falls: 2}
	v := supervise.New(d.log, isDamaged)
	v.Pause = func(int) time.Duration { return time.Millisecond }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- v.Keep(ctx, t.Context(), supervise.Stage{Name: "worker", Run: func(intake, work context.Context) error { return w.Run(intake, work, in.Run) }})
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

// A stop waits for the granule in hand as long as drain says, and the next start
// takes it up again.
func TestDrainEndsAtItsDeadlineAndTheNextStartGoesOn(t *testing.T) {
	b := newBench(t)
	b.cfg.Datasets[0].Fill.Method = "persistence"
	b.cfg.Drain = 300 * time.Millisecond
	deliverDays(t, b, 1)
	if _, err := b.daemon(t).Station().Fetch(t.Context(), operate.Fetch{}); err != nil {
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
		return slices.ContainsFunc(d.heartbeats.Working(), func(stage string) bool { return strings.HasPrefix(stage, "worker") })
	})
	began := time.Now()
	stop()
	if err := <-ended; !errors.Is(err, errDrainTimeout) {
		t.Errorf("Run() = %v, want %v", err, errDrainTimeout)
	}
	if took := time.Since(began); took < b.cfg.Drain || took > time.Minute {
		t.Errorf("the drain took %v", took)
	}
	if s := b.once(t); s.Products != 1 {
		t.Errorf("the next start made %d products, want the one that was in hand", s.Products)
	}
}

// A second daemon, or a pass by cron, gets an error that names the running one, and
// changes nothing.
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
	if _, err := b.daemon(t).Station().Fetch(t.Context(), operate.Fetch{}); !errors.Is(err, ledger.ErrLocked) {
		t.Errorf("Fetch() = %v", err)
	}
	stop()
	if _, err := b.daemon(t).Once(t.Context()); err != nil {
		t.Errorf("Once() after the daemon = %v", err)
	}
}

// productsIfAny returns the products, none where the folder does not exist yet.
func (b *bench) productsIfAny() []string {
	files, _ := filepath.Glob(filepath.Join(b.cfg.ProductsDir, "*", "*", "*", "*.nc"))
	return files
}

// A damaged ledger ends the service: starting a stage again does not help.
func TestADamagedLedgerIsFatal(t *testing.T) {
	if !isDamaged(fmt.Errorf("check: %w", ledger.ErrDamaged)) || isDamaged(ledger.ErrLocked) {
		t.Error("only a damaged ledger is fatal")
	}
}

// A daemon that is told to stop while it starts has not failed, whatever it was at.
func TestAStopDuringTheStartIsNoFailure(t *testing.T) {
	b := newBench(t)
	b.plain()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := b.daemon(t).Run(ctx); err != nil {
		t.Errorf("Run() = %v", err)
	}
}
