package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"lacuna/ledger/layout"

	"github.com/google/go-cmp/cmp"
)

// objects returns the objects of a dataset in the ledger.
func objects(t testing.TB, l *Ledger, dataset string) []Listed {
	t.Helper()
	var all []Listed
	for o, err := range l.Objects(t.Context(), dataset) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

func TestObjectsAreKeptAsListed(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	a := arrival("b.nc", "aa")
	a.ModTime = at(0).Add(123456789) // file systems keep nanoseconds
	a.ETag, a.MD5 = `"v1"`, "m1"
	arriveNow(t, l, a)
	arriveNow(t, l, arrival("a.nc", "bb"))
	arriveNow(t, l, arrival("Ω.nc", "cc"))
	other := arrival("a.nc", "dd")
	other.Dataset = "sst"
	arriveNow(t, l, other)
	got := objects(t, l, "chl")
	want := []Listed{
		{Object: arrival("a.nc", "bb").Object, SHA256: "bb", State: Fetched},
		{Object: a.Object, SHA256: "aa", State: Fetched},
		{Object: arrival("Ω.nc", "cc").Object, SHA256: "cc", State: Fetched},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Objects() (-want +got):\n%s", diff)
	}
	for range l.Objects(t.Context(), "chl") {
		break // the ledger must be usable afterwards
	}
	if _, err := l.Counts(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBatchTellsTouchedMovedAndVanishedApart(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	for _, name := range []string{"a.nc", "b.nc", "c.nc"} {
		arriveNow(t, l, arrival(name, "sum of "+name))
	}
	touched, moved := arrival("a.nc", "").Object, arrival("new/b.nc", "").Object
	touched.ModTime, touched.MD5 = at(5), "m1"
	moved.ModTime = at(5)
	must(t, l.Batch(t.Context(), func(b Batch) error {
		return errors.Join(b.Relist(t.Context(), touched), b.Move(t.Context(), moved, "b.nc"),
			b.Vanish(t.Context(), arrival("b.nc", "").Object, at(6)), b.Vanish(t.Context(), arrival("c.nc", "").Object, at(6)))
	}))
	want := []Listed{
		{Object: touched, SHA256: "sum of a.nc", State: Fetched},
		{Object: arrival("b.nc", "").Object, SHA256: "sum of b.nc", State: Fetched, Vanished: at(6)},
		{Object: arrival("c.nc", "").Object, SHA256: "sum of c.nc", State: Fetched, Vanished: at(6)},
		{Object: moved, SHA256: "sum of b.nc", State: Fetched},
	}
	if diff := cmp.Diff(want, objects(t, l, "chl")); diff != "" {
		t.Errorf("Objects() (-want +got):\n%s", diff)
	}
	held, err := l.Holding(t.Context(), "chl", "sum of b.nc")
	if err != nil || len(held) != 2 {
		t.Errorf("Holding() = %v, %v; want both names", held, err)
	}
	if pending, err := l.Pending(t.Context(), "chl"); err != nil || len(pending) != 3 {
		t.Errorf("Pending() = %d granules, %v; want the three of before", len(pending), err)
	}
	must(t, l.Batch(t.Context(), func(b Batch) error { return b.Relist(t.Context(), arrival("c.nc", "").Object) }))
	if got := objects(t, l, "chl")[2]; !got.Vanished.IsZero() {
		t.Errorf("listed again, c.nc is %+v", got)
	}
}

func TestBatchIsAllOrNothing(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	arriveNow(t, l, arrival("a.nc", "aa"))
	before := objects(t, l, "chl")
	err := l.Batch(t.Context(), func(b Batch) error {
		if err := b.Vanish(t.Context(), arrival("a.nc", "").Object, at(1)); err != nil {
			return err
		}
		return b.Move(t.Context(), arrival("b.nc", "").Object, "never seen")
	})
	if err == nil {
		t.Error("a move from a name that is not known was accepted")
	}
	if diff := cmp.Diff(before, objects(t, l, "chl")); diff != "" {
		t.Errorf("after a batch that failed (-before +after):\n%s", diff)
	}
}

func TestSetAsideObjectIsQuarantinedAndTriedAgainWhenItChanges(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	bad := arrival("a.nc", "bad")
	must(t, l.Batch(t.Context(), func(b Batch) error { return b.SetAside(t.Context(), bad, "is a web page; fetch it again", at(1)) }))
	if got := only(t, l); got.State != Quarantined || got.Reason == "" || got.SHA256 != "bad" || got.SpoolPath != bad.SpoolPath {
		t.Errorf("set aside, the row is %+v", got)
	}
	if got := objects(t, l, "chl"); len(got) != 1 || got[0].State != Quarantined {
		t.Errorf("Objects() = %+v, want it quarantined", got)
	}
	g, fresh, err := l.Arrive(t.Context(), arrival("a.nc", "good"), at(2))
	if err != nil || !fresh || g.Revision != 2 || g.State != Fetched {
		t.Errorf("Arrive() of other bytes = %+v, %v, %v; want revision 2, fetched", g, fresh, err)
	}
}

func TestPollsAreRememberedByDataset(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	for hour := 1; hour <= 2; hour++ {
		must(t, l.Polled(t.Context(), "chl", at(hour)))
	}
	if last, err := l.LastPoll(t.Context(), "chl"); err != nil || !last.Equal(at(2)) {
		t.Errorf("LastPoll() = %v, %v; want %v", last, err, at(2))
	}
	if last, err := l.LastPoll(t.Context(), "sst"); err != nil || !last.IsZero() {
		t.Errorf("LastPoll() = %v, %v of a dataset that never was", last, err)
	}
}

// A ledger from before objects were kept knows its granules as objects.
func TestOldLedgerKnowsItsObjects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := sql.Open("sqlite", dataSource(path))
	must(t, err)
	must(t, apply(t.Context(), db, layout.Steps()[0], 1))
	for _, row := range []struct {
		name     string
		revision int
		sum      string
	}{{"a.nc", 1, "aa"}, {"a.nc", 2, "bb"}, {"b.nc", 1, "cc"}} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO granule (dataset, name, revision, sha256, size, mod_time, spool_path,
			state, reason, first_time, last_time, product_path, product_sha256, recorded, changed)
			VALUES ('chl', ?, ?, ?, 7, ?, 'x', 'fetched', '', '', '', '', '', ?, ?)`,
			row.name, row.revision, row.sum, text(at(row.revision)), text(at(0)), text(at(0)))
		must(t, err)
	}
	must(t, db.Close())
	l := open(t, path)
	want := []Listed{
		{Object: Object{Dataset: "chl", Name: "a.nc", Size: 7, ModTime: at(2)}, SHA256: "bb", State: Fetched},
		{Object: Object{Dataset: "chl", Name: "b.nc", Size: 7, ModTime: at(1)}, SHA256: "cc", State: Fetched},
	}
	if diff := cmp.Diff(want, objects(t, l, "chl")); diff != "" {
		t.Errorf("Objects() (-want +got):\n%s", diff)
	}
}

// fillObjects puts n objects into a ledger.
func fillObjects(tb testing.TB, l *Ledger, n int) {
	tb.Helper()
	err := l.Batch(tb.Context(), func(b Batch) error {
		for i := range n {
			if _, _, err := b.Arrive(tb.Context(), arrival(fmt.Sprintf("2024/%06d.nc", i), fmt.Sprintf("%064d", i)), at(0)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// Memory must not grow with the archive: the live heap is the same for ten
// thousand objects as for a hundred.
func TestObjectsPassByInFlatMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("measures: the race detector makes SQLite thirty times slower")
	}
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	fillObjects(t, l, 10_000)
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	count, early, late := 0, uint64(0), uint64(0)
	for _, err := range l.Objects(t.Context(), "chl") {
		must(t, err)
		switch count++; count {
		case 100:
			early = live()
		case 9_900:
			late = live()
		}
	}
	const slack = 256 << 10 // one object in twenty bytes is 200 kB
	if count != 10_000 || late > early+slack {
		t.Errorf("%d objects; %d bytes live at the 100th and %d at the 9,900th, want no growth", count, early, late)
	}
}

func TestObjectsStopWhenCancelled(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	fillObjects(t, l, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range l.Objects(ctx, "chl") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Objects() = %v, want the cancellation", err)
		}
	}
}

// BenchmarkObjects measures the comparison with a listing.
func BenchmarkObjects(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, err := Open(b.Context(), filepath.Join(b.TempDir(), "ledger.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			fillObjects(b, l, n)
			b.ReportAllocs()
			for b.Loop() {
				if got := objects(b, l, "chl"); len(got) != n {
					b.Fatal(len(got))
				}
			}
		})
	}
}
