package fetch_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/dir"
	"lacuna/ops/ledger"
)

// deliveries is the ledger as the daemon shows it to a watcher. That the two
// fit is tested here, for neither package knows the other.
type deliveries struct{ ledger *ledger.Ledger }

func (d deliveries) Seen(ctx context.Context, o fetch.Object) (bool, error) {
	return d.ledger.Seen(ctx, ledger.Object{Dataset: "chl", Name: o.Name, Size: o.Size, ModTime: o.ModTime})
}

func (d deliveries) Arrived(ctx context.Context, g fetch.Granule) (bool, error) {
	object := ledger.Object{Dataset: "chl", Name: g.Name, Size: g.Size, ModTime: g.ModTime}
	_, fresh, err := d.ledger.Arrive(ctx, ledger.Arrival{Object: object, SHA256: g.SHA256, SpoolPath: g.Path}, time.Now())
	return fresh, err
}

func TestFolderToLedgerLosesNothingOverRestarts(t *testing.T) {
	archive, state := t.TempDir(), t.TempDir()
	long := time.Now().Add(-time.Hour)
	put := func(name, content string, modTime time.Time) {
		t.Helper()
		file := filepath.Join(archive, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(content), 0o644))
		must(t, os.Chtimes(file, modTime, modTime))
	}
	// session is one life of the process: it polls twice and dies before it
	// has worked on anything. It returns how many granules were new, and how
	// many the ledger has as unfinished.
	session := func() (fresh, pending int) {
		t.Helper()
		l, err := ledger.Open(t.Context(), filepath.Join(state, "ledger.db"))
		must(t, err)
		defer l.Close()
		cfg := fetch.DefaultConfig()
		cfg.Name = "folder"
		w, err := fetch.NewWatcher(cfg, fetch.Parts{
			Archive: dir.New(archive), Spool: fetch.NewSpool(filepath.Join(state, "spool")),
			Deliveries: deliveries{l}, Log: slog.New(slog.DiscardHandler),
		})
		must(t, err)
		for range 2 {
			granules, err := w.Poll(t.Context())
			must(t, err)
			fresh += len(granules)
		}
		left, err := l.Pending(t.Context(), "chl")
		must(t, err)
		for _, g := range left {
			if info, err := os.Stat(g.SpoolPath); err != nil || info.Size() != g.Size {
				t.Errorf("%s revision %d is pending, its file is not there: %v", g.Name, g.Revision, err)
			}
		}
		return fresh, len(left)
	}
	put("2024/a.nc", "first", long)
	put("2024/b.nc", "second", long)
	put("2024/c.nc", "being written", time.Now())
	steps := []struct {
		what           string
		edit           func()
		fresh, pending int
	}{
		{"at first", func() {}, 2, 2},
		{"restarted", func() {}, 0, 2},
		{"the third came to rest", func() { put("2024/c.nc", "being written", long) }, 1, 3},
		{"all touched", func() { put("2024/a.nc", "first", long.Add(time.Minute)) }, 0, 3},
		{"one replaced", func() { put("2024/b.nc", "SECOND", long.Add(time.Minute)) }, 1, 4},
		{"one taken away", func() { must(t, os.Remove(filepath.Join(archive, "2024/a.nc"))) }, 0, 4},
	}
	for _, s := range steps {
		s.edit()
		if fresh, pending := session(); fresh != s.fresh || pending != s.pending {
			t.Errorf("%s: %d new and %d pending, want %d and %d", s.what, fresh, pending, s.fresh, s.pending)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
