package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/ingest"
)

// slowly is a decoding child that takes its time, and notes in a file when it
// begins and ends.
func slowly(t *testing.T) (child []string, most func() int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(t.TempDir(), "notes")
	child = []string{"/bin/sh", "-c", `echo + >>"$1"; sleep 0.2; "$0" decode; status=$?; echo - >>"$1"; exit $status`, self, notes}
	return child, func() int {
		text, err := os.ReadFile(notes)
		if err != nil {
			t.Fatal(err)
		}
		now, most := 0, 0
		for _, line := range strings.Fields(string(text)) {
			if line == "+" {
				now++
			} else {
				now--
			}
			most = max(most, now)
		}
		return most
	}
}

// Two datasets fetch eight files at a time each, and fill them meanwhile.
func TestNoMoreFilesAreDecodedAtATimeThanThereArePlaces(t *testing.T) {
	b := newBench(t)
	b.plain()
	const days = 10
	second := b.cfg.Datasets[0]
	second.Name, second.Archive.Dir = "sky", b.archive()+"-2"
	b.cfg.Datasets = append(b.cfg.Datasets, second)
	if err := os.MkdirAll(second.Archive.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := world(t, 24, 32)
	for _, d := range firstVersions(w, days) {
		put(t, b.archive(), w.Granule(d))
		put(t, second.Archive.Dir, w.Granule(d))
	}
	for i := range b.cfg.Datasets {
		b.cfg.Datasets[i].Archive.Parallel = 8
	}
	child, most := slowly(t)
	d, err := New(b.cfg, Parts{Log: slog.New(slog.NewTextHandler(b.log, nil)), Child: child})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(b.cfg.ProductsDir, 0o755); err != nil { // which is looked into at once
		t.Fatal(err)
	}
	stop := start(t, d)
	until(t, "twenty products", func() bool { return len(b.products(t)) == 2*days })
	stop()
	const spare = 1 // that the reader keeps ready
	if got, allowed := most(), fillSlots()+1+spare; got > allowed || got < 2 {
		t.Errorf("%d children ran at a time, want at most %d", got, allowed)
	}
}

func TestAPlaceIsLeftToFilling(t *testing.T) {
	d := newDecoders(nil)
	held, release := make(chan struct{}), make(chan struct{})
	hold := func() error { held <- struct{}{}; <-release; return nil }
	done := make(chan error)
	patient := d.patient()
	for range fillSlots() {
		go func() { done <- patient.places.within(t.Context(), patient.filled, hold) }()
		<-held
	}
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if err := patient.places.within(cut, patient.filled, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("one more who is patient: %v, want no place", err)
	}
	if err := d.places.within(t.Context(), d.filled, func() error { return nil }); err != nil {
		t.Errorf("filling: %v, want the place that is left", err)
	}
	close(release)
	for range fillSlots() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A validation that waits for a place ends when its watcher is told to stop.
func TestWaitingForAPlaceEndsWithItsContext(t *testing.T) {
	b := newBench(t)
	d := b.daemon(t)
	for range cap(d.reader.places.all) {
		d.reader.places.all <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := d.validate(b.cfg.Datasets[0], &fresh{most: 1})(ctx, filepath.Join(b.archive(), "a.nc"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("validate() = %v, want the end of its context", err)
	}
	if bad := (*ingest.BadGranule)(nil); errors.As(err, &bad) {
		t.Error(fmt.Sprint("the file was blamed: ", bad))
	}
}
