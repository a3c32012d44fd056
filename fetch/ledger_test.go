package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/dir"
	"lacuna/ledger"
)

// deliveries is the ledger as the daemon shows it to a watcher. That the two
// fit is tested here, for neither package knows the other.
type deliveries struct{ ledger *ledger.Ledger }

func (d deliveries) Known(ctx context.Context) iter.Seq2[fetch.Known, error] {
	return func(yield func(fetch.Known, error) bool) {
		for o, err := range d.ledger.Objects(ctx, "chl") {
			if !yield(known(o), err) {
				return
			}
		}
	}
}

func (d deliveries) Holding(ctx context.Context, sha256 string) ([]fetch.Known, error) {
	held, err := d.ledger.Holding(ctx, "chl", sha256)
	var all []fetch.Known
	for _, o := range held {
		all = append(all, known(o))
	}
	return all, err
}

func (d deliveries) Record(ctx context.Context, changes ...fetch.Change) error {
	return d.ledger.Batch(ctx, func(b ledger.Batch) error {
		for _, c := range changes {
			o := ledger.Object{
				Dataset: "chl", Name: c.Object.Name, Size: c.Object.Size, ModTime: c.Object.ModTime,
				ETag: c.Object.ETag, MD5: c.Object.MD5,
			}
			var err error
			switch c.Kind {
			case fetch.Arrived:
				_, _, err = b.Arrive(ctx, ledger.Arrival{Object: o, SHA256: c.Granule.SHA256, SpoolPath: c.Granule.Path}, c.At)
			case fetch.Moved:
				err = b.Move(ctx, o, c.From)
			case fetch.Vanished:
				err = b.Vanish(ctx, o, c.At)
			default:
				err = b.Relist(ctx, o)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func known(o ledger.Listed) fetch.Known {
	return fetch.Known{
		Object: fetch.Object{Name: o.Name, Size: o.Size, ModTime: o.ModTime, ETag: o.ETag, MD5: o.MD5},
		SHA256: o.SHA256, Aside: o.State == ledger.Quarantined, Vanished: o.Vanished,
	}
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
			Archive: dir.New(archive, 100_000), Spool: fetch.NewSpool(filepath.Join(state, "spool")),
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

// manyArchive lists many objects and has none of them.
type manyArchive []fetch.Object

func (a manyArchive) List(context.Context, fetch.Scope) ([]fetch.Object, error) { return a, nil }

func (a manyArchive) Open(context.Context, fetch.Object, int64) (io.ReadCloser, error) {
	return nil, errors.New("nothing is to be read")
}

func TestTenThousandObjectsAreComparedInLessThanTwoSeconds(t *testing.T) {
	if testing.Short() {
		t.Skip("measures: the race detector makes SQLite thirty times slower")
	}
	const objects = 10_000
	l, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	defer l.Close()
	var archive manyArchive
	var arrived []fetch.Change
	for i := range objects {
		o := fetch.Object{Name: fmt.Sprintf("%04d/%06d.nc", i%50, i), Size: int64(i), ModTime: time.Now().Add(-time.Hour).UTC(), ETag: fmt.Sprint("tag", i)}
		archive = append(archive, o)
		g := fetch.Granule{Name: o.Name, Path: "spool/" + o.Name, SHA256: fmt.Sprintf("%064d", i), Size: o.Size}
		arrived = append(arrived, fetch.Change{Kind: fetch.Arrived, Object: o, Granule: g, At: time.Now()})
	}
	must(t, deliveries{l}.Record(t.Context(), arrived...))
	cfg := fetch.DefaultConfig()
	cfg.Name = "many"
	w, err := fetch.NewWatcher(cfg, fetch.Parts{
		Archive: archive, Spool: fetch.NewSpool(t.TempDir()), Deliveries: deliveries{l}, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	compare := func(what string) {
		t.Helper()
		started := time.Now()
		actions, err := w.Plan(t.Context(), fetch.Days{})
		took := time.Since(started)
		must(t, err)
		if len(actions) != 0 {
			t.Errorf("%s: %d actions after %v, want none", what, len(actions), took)
		}
		t.Logf("%s: %d objects compared in %v", what, objects, took)
	}
	compare("as they were")
	for i := range archive {
		archive[i].ModTime = archive[i].ModTime.Add(time.Minute)
	}
	if granules, err := w.Poll(t.Context()); len(granules) != 0 || err != nil { // all touched: nothing is read
		t.Errorf("Poll() = %d granules, %v; want none", len(granules), err)
	}
	compare("after all were touched")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
