package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/slots"
)

// slowly is a slow decoding child that writes its start and its end to a file.
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

// Two datasets each fetch eight files at a time, and fill them meanwhile.
func TestNoMoreFilesAreDecodedAtATimeThanThereArePlaces(t *testing.T) {
	b := newBench(t)
	b.plain()
	const days = 5
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
	if err := os.MkdirAll(b.cfg.ProductsDir, 0o755); err != nil { // the wait below lists it at once
		t.Fatal(err)
	}
	stop := start(t, d)
	until(t, "ten products", func() bool { return len(b.products(t)) == 2*days })
	stop()
	const spare = 1 // child that the reader keeps ready
	if got, allowed := most(), slots.Fills()+1+spare; got > allowed || got < 2 {
		t.Errorf("%d children ran at a time, want at most %d", got, allowed)
	}
}
