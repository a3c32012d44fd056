package ledger

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// facts returns the last line of the journal on each revision.
func facts(t *testing.T, path string) map[string]Fact {
	t.Helper()
	all := map[string]Fact{}
	for f, err := range Journal(path) {
		must(t, err)
		all[f.Name+"@"+string(rune('0'+f.Revision))] = f
	}
	return all
}

func TestTheJournalIsEnoughToMakeTheRowsAnew(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "ledger.db")
	l := open(t, path)
	g := sendOut(t, l, "chl", "a.nc", "1", 1)
	must(t, l.SetTimes(t.Context(), g.ID, []time.Time{at(1), at(2)}))
	arriveNow(t, l, arrival("b.nc", "2"))
	must(t, l.SetGrid(t.Context(), "chl", Grid{Fingerprint: "f", JSON: `{"Lat":[1,2]}`, Since: at(0)}))
	must(t, l.WriteJournal(t.Context()))
	must(t, l.WriteJournal(t.Context())) // nothing came
	said := facts(t, path)
	a, b := said["a.nc@1"], said["b.nc@1"]
	if a.SHA256 != "1" || a.Publication == nil || a.Publication.File != "f/a.nc" || a.Publication.Product.SHA256 != "s1" || len(a.Times) != 2 ||
		!json.Valid(a.Publication.Body) || !a.Recorded.Equal(at(0)) {
		t.Errorf("the journal says of a.nc: %+v", a)
	}
	if b.SHA256 != "2" || b.SpoolPath != "spool/2" || b.Publication != nil {
		t.Errorf("the journal says of b.nc: %+v", b)
	}
	if grid := said["@0"]; grid.Fingerprint != "f" || string(grid.Grid) != `{"Lat":[1,2]}` {
		t.Errorf("the journal says of the grid: %+v", grid)
	}

	fresh := open(t, filepath.Join(folder, "fresh", "ledger.db"))
	for i, want := range []bool{true, false} { // the second time nothing is new
		added, err := fresh.Restore(t.Context(), Found{Fact: a, State: Stored, Sinks: bothSinks, At: at(9)})
		if added != want || err != nil {
			t.Errorf("Restore() %d = %v, %v", i, added, err)
		}
	}
	_, err := fresh.Restore(t.Context(), Found{Fact: b, State: Fetched, At: at(9)})
	must(t, err)
	wantDue(t, fresh, "kafka", "chl/a.nc@1")
	before, err := l.Granules(t.Context(), GranuleQuery{Name: "a.nc"})
	must(t, err)
	after, err := fresh.Granules(t.Context(), GranuleQuery{Name: "a.nc"})
	must(t, err)
	if before[0].Product != after[0].Product || !before[0].Recorded.Equal(after[0].Recorded) || !after[0].Last.Equal(at(2)) || after[0].State != Stored {
		t.Errorf("restored %+v, was %+v", after[0], before[0])
	}
	// An object that is listed as before is not fetched again, and other bytes
	// are the next revision.
	for o, err := range fresh.Objects(t.Context(), "chl") {
		must(t, err)
		if o.Size != 7 || !o.ModTime.Equal(at(0)) {
			t.Errorf("object %+v", o)
		}
	}
	if g, isNew, err := fresh.Arrive(t.Context(), arrival("a.nc", "9"), at(10)); !isNew || g.Revision != 2 || err != nil {
		t.Errorf("Arrive() = revision %d, %v, %v", g.Revision, isNew, err)
	}
	if due, ok, err := fresh.NextSkill(t.Context(), "chl"); ok || err != nil {
		t.Errorf("a restored granule is to be scored: %+v, %v", due, err)
	}
}

func TestALedgerThatLacksRowsOfItsJournalIsBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	arriveNow(t, l, arrival("a.nc", "1"))
	must(t, l.WriteJournal(t.Context()))
	if behind, err := l.Behind(t.Context()); behind || err != nil {
		t.Errorf("Behind() = %v, %v of a ledger that has all", behind, err)
	}
	must(t, l.Close())
	must(t, os.Remove(path))
	l = open(t, path)
	if behind, err := l.Behind(t.Context()); !behind || err != nil {
		t.Errorf("Behind() = %v, %v of an empty ledger beside a journal", behind, err)
	}
	must(t, l.BeginJournal(t.Context(), at(1)))
	if behind, err := l.Behind(t.Context()); behind || err != nil {
		t.Errorf("Behind() = %v, %v of a journal that was begun anew", behind, err)
	}
	if got := LastDamage(path); !got.Equal(at(1)) {
		t.Errorf("LastDamage() = %v, want %v", got, at(1))
	}
}

func TestRetractedAndSupersededRevisionsAreRestoredAsSuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	sendOut(t, l, "chl", "a.nc", "2", 1)
	must(t, l.WriteJournal(t.Context()))
	said := facts(t, path)
	fresh := outbox(t)
	_, err := fresh.Restore(t.Context(), Found{Fact: said["a.nc@1"], State: Stored, At: at(9)}) // superseded: no delivery is queued
	must(t, err)
	_, err = fresh.Restore(t.Context(), Found{Fact: said["a.nc@2"], State: Stored, Retracted: "fault", Sinks: bothSinks, At: at(9)})
	must(t, err)
	want := []string{"chl/a.nc@2", "-chl/a.nc@2"}
	if got := deliverAll(t, fresh, "disk"); !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	gs, err := fresh.Granules(t.Context(), GranuleQuery{Name: "a.nc"})
	must(t, err)
	if gs[1].State != Announced {
		t.Errorf("the superseded revision is %s", gs[1].State)
	}
	if now, ok, err := fresh.Current(t.Context(), "chl", "a.nc"); err != nil || !ok || now.Revision != 1 {
		t.Errorf("Current() = %+v, %v, %v", now, ok, err)
	}
}

func TestOnlyQuarantinedGranulesAreRetried(t *testing.T) {
	l := outbox(t)
	g := arriveNow(t, l, arrival("a.nc", "1"))
	if err := l.Retry(t.Context(), g.ID, "spool/new", "", at(1)); !errors.Is(err, ErrNotAside) {
		t.Errorf("Retry() = %v of a granule that waits", err)
	}
	must(t, l.Quarantine(t.Context(), g.ID, "bad", at(1)))
	must(t, l.Retry(t.Context(), g.ID, "spool/new", "", at(2)))
	pending, err := l.Pending(t.Context(), "chl")
	must(t, err)
	if len(pending) != 1 || pending[0].SpoolPath != "spool/new" || pending[0].Reason != "" {
		t.Errorf("Pending() = %+v after a retry", pending)
	}
	if _, err := l.Granules(t.Context(), GranuleQuery{}); err == nil {
		t.Error("Granules() without a question reads the whole ledger")
	}
	found, err := l.Named(t.Context(), "", "a.nc")
	must(t, err)
	deep := arrival("2024/05/a.nc", "3")
	arriveNow(t, l, deep)
	both, err := l.Named(t.Context(), "chl", "a.nc")
	must(t, err)
	if len(found) != 1 || len(both) != 2 {
		t.Errorf("Named() = %v, then %v", found, both)
	}
}
