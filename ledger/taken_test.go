package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// taken is revision 2 of a granule as a sink has it.
func taken(name string, revision int) Taken {
	return Taken{Dataset: "chl", Granule: name, Revision: revision, Sink: "kafka", SHA256: "theirs", At: at(60)}
}

func TestRevisionsGoAboveThoseThatAreTaken(t *testing.T) {
	l := outbox(t)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	pending := arriveNow(t, l, arrival("b.nc", "1"))
	for _, name := range []string{"a.nc", "b.nc", "c.nc"} {
		if news, err := l.Take(t.Context(), taken(name, 4)); err != nil || !news {
			t.Fatalf("Take(%s) = %v, %v", name, news, err)
		}
		if news, err := l.Take(t.Context(), taken(name, 4)); err != nil || news {
			t.Errorf("taking %s again is news (%v), %v", name, news, err)
		}
	}
	if g := arriveNow(t, l, arrival("a.nc", "2")); g.Revision != 5 {
		t.Errorf("new bytes of a product that was published get revision %d, want 5", g.Revision)
	}
	if g := arriveNow(t, l, arrival("c.nc", "1")); g.Revision != 5 {
		t.Errorf("the first bytes of a granule that a sink knows get revision %d, want 5", g.Revision)
	}
	g, err := l.Renumber(t.Context(), pending.ID, Taken{})
	if must(t, err); g.Revision != 5 || g.State != Fetched {
		t.Errorf("the unfinished granule is revision %d and %s, want 5 and fetched", g.Revision, g.State)
	}
	o := outgoing(pending, 1)
	o.Publication.Revision = pending.Revision // made before it got another number
	must(t, l.Advance(t.Context(), g.ID, Filled, at(2)))
	if err := l.StoreAndQueue(t.Context(), g.ID, o, at(2)); !errors.Is(err, ErrRenumbered) {
		t.Errorf("StoreAndQueue() = %v of a product with the number before, want ErrRenumbered", err)
	}
	o.Publication.Revision = g.Revision
	must(t, l.StoreAndQueue(t.Context(), g.ID, o, at(2)))
}

func TestADisplacedPublicationIsTakenBackWhereItWasToldAndFollowed(t *testing.T) {
	l := outbox(t)
	g := sendOut(t, l, "chl", "a.nc", "1", 1)
	if got := deliverAll(t, l, "disk"); len(got) != 1 {
		t.Fatal(got)
	}
	conflict := taken("a.nc", 1)
	conflict.Ours = "s1"
	for i, want := range []bool{true, false} { // a second time there is nothing left to displace
		if known, err := l.Displace(t.Context(), 1, conflict); err != nil || known != want {
			t.Fatalf("Displace() = %v, %v the %dth time", known, err, i+1)
		}
	}
	wantDue(t, l, "disk", "-chl/a.nc@1") // it had the revision
	wantDue(t, l, "kafka")               // this one has other bytes
	ds, err := l.Due(t.Context(), "disk")
	if must(t, err); !ds[0].Publication.Displaced {
		t.Error("the retraction does not say that the revision was displaced")
	}
	if _, ok, err := l.Promised(t.Context(), "chl", "a.nc", 1); err != nil || ok {
		t.Errorf("Promised() = %v, %v of a displaced revision", ok, err)
	}
	for sum, want := range map[string]bool{"s1": true, "": true, "theirs": false} {
		seen := taken("a.nc", 1)
		seen.SHA256 = sum
		if ours, known, err := l.Knows(t.Context(), seen); err != nil || known != want || ours != "" {
			t.Errorf("Knows() = %q, %v, %v of a sink's revision with sha256 %q, want %v", ours, known, err, sum, want)
		}
	}
	next, err := l.Pending(t.Context(), "chl")
	if must(t, err); len(next) != 1 || next[0].Revision != 2 || next[0].SHA256 != g.SHA256 || !strings.Contains(next[0].Why, "kafka") {
		t.Errorf("the next revision is %+v, want revision 2 of the same bytes", next)
	}
	found, err := l.TakenSince(t.Context(), at(59), 10)
	if must(t, err); len(found) != 1 || found[0] != conflict {
		t.Errorf("TakenSince() = %+v, want %+v", found, conflict)
	}
	if n, err := l.CountTaken(t.Context(), at(59)); err != nil || !slices.Equal(n, []Takings{{Sink: "kafka", Conflicts: 1}}) {
		t.Errorf("CountTaken() = %+v, %v", n, err)
	}
	if none, err := l.TakenSince(t.Context(), at(61), 10); err != nil || len(none) > 0 {
		t.Errorf("TakenSince() = %+v, %v afterwards", none, err)
	}
}

func TestADisplacedRevisionThatALaterOneReplacedIsNotMadeAgain(t *testing.T) {
	l := outbox(t)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	sendOut(t, l, "chl", "a.nc", "2", 2)
	conflict := taken("a.nc", 1)
	conflict.Ours = "s1"
	_, err := l.Displace(t.Context(), 1, conflict)
	must(t, err)
	if next, err := l.Pending(t.Context(), "chl"); err != nil || len(next) > 0 {
		t.Errorf("Pending() = %+v, %v", next, err)
	}
	wantDue(t, l, "disk", "chl/a.nc@2")
}

func TestUnheardRevisionsWereStoredSinceAndWait(t *testing.T) {
	l := outbox(t)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	sendOut(t, l, "chl", "a.nc", "2", 5)
	later := taken("a.nc", 3)
	if got, err := l.Unheard(t.Context(), later, at(3)); err != nil || !slices.Equal(got, []int{2}) {
		t.Errorf("Unheard() = %v, %v, want the one that was stored after", got, err)
	}
	deliverAll(t, l, "kafka")
	if got, err := l.Unheard(t.Context(), later, at(3)); err != nil || len(got) > 0 {
		t.Errorf("Unheard() = %v, %v of a delivered revision", got, err)
	}
}

func TestAStateKeepsItsIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	fresh := func(name string) Identity { return Identity{State: name, Epoch: 1, Since: at(1)} }
	want := func(when string, l *Ledger, state string, epoch int) {
		t.Helper()
		got, err := l.Identity(t.Context(), fresh("another"))
		if must(t, err); got.State != state || got.Epoch != epoch {
			t.Errorf("%s it is %+v, want %s of epoch %d", when, got, state, epoch)
		}
		if beside, err := ReadIdentity(path); err != nil || beside.State != state || beside.Epoch != epoch {
			t.Errorf("%s the file beside the ledger has %+v, %v", when, beside, err)
		}
	}
	l := open(t, path)
	first, err := l.Identity(t.Context(), fresh("one"))
	if must(t, err); first != fresh("one") {
		t.Errorf("Identity() = %+v of a new state", first)
	}
	if behind, err := l.Behind(t.Context()); err != nil || behind {
		t.Errorf("Behind() = %v, %v: who a state is, is nothing that its ledger has lost", behind, err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	must(t, l.Backup(t.Context(), copied))
	must(t, l.SetIdentity(t.Context(), Identity{State: "one", Epoch: 2, Since: at(2), Why: "took over"}))
	must(t, l.Close())
	l = open(t, path)
	want("after a restart", l, "one", 2)
	must(t, l.Close())
	files, err := filepath.Glob(path + "*") // all that belongs to the ledger
	must(t, err)
	for _, file := range files {
		must(t, os.Remove(file))
	}
	l = open(t, path)
	want("with another ledger", l, "one", 2)
	must(t, l.Close())
	must(t, os.Rename(copied, path))
	l = open(t, path)
	want("with an older copy of the ledger", l, "one", 2)
	must(t, l.Close())
	must(t, os.Remove(filepath.Join(filepath.Dir(path), "identity.json")))
	l = open(t, path)
	want("with the ledger alone", l, "one", 2)
}
