package ledger

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// absent records that there is no granule of a day of June 2024 under a name.
func absent(t *testing.T, l *Ledger, name string, d int) Granule {
	t.Helper()
	added, err := l.AddAbsence(t.Context(), Absence{Dataset: "chl", Name: name, Times: []time.Time{june(d)}, Lane: Live}, at(0))
	must(t, err)
	if !added {
		t.Fatalf("the absence of %s was not recorded", name)
	}
	return granuleNamed(t, l, name)
}

func june(d int) time.Time { return time.Date(2024, 6, d, 12, 0, 0, 0, time.UTC) }

func granuleNamed(t *testing.T, l *Ledger, name string) Granule {
	t.Helper()
	gs, err := l.Granules(t.Context(), GranuleQuery{Dataset: "chl", Name: name, Limit: 1})
	must(t, err)
	if len(gs) != 1 {
		t.Fatalf("%d granules are named %s", len(gs), name)
	}
	return gs[0]
}

// give stores a product of a granule, with a share of the sea observed.
func give(t *testing.T, l *Ledger, g Granule, observed float64) {
	t.Helper()
	out := outgoing(g, 1)
	out.Product.Observed, out.Product.Covered = observed, 1
	out.Skill = g.Absent // only granules are scored
	must(t, l.Advance(t.Context(), g.ID, Filled, at(1)))
	must(t, l.StoreAndQueue(t.Context(), g.ID, out, at(1)))
}

func names(gs []Granule) []string {
	var all []string
	for _, g := range gs {
		all = append(all, g.Name)
	}
	return all
}

func TestAnAbsenceIsWorkLikeAGranuleButNobodysNeighbour(t *testing.T) {
	l := outbox(t)
	seen := arriveNow(t, l, arrival("1.nc", "1"))
	must(t, l.SetTimes(t.Context(), seen.ID, []time.Time{june(1)}))
	give(t, l, seen, 0.4)
	dark := arriveNow(t, l, arrival("2.nc", "2"))
	must(t, l.SetTimes(t.Context(), dark.ID, []time.Time{june(2)}))
	give(t, l, dark, 0)
	gone := absent(t, l, "3.nc", 3)
	if again, err := l.AddAbsence(t.Context(), Absence{Dataset: "chl", Name: "3.nc", Times: []time.Time{june(3)}}, at(9)); again || err != nil {
		t.Errorf("recorded twice: %v, %v", again, err)
	}
	pending, err := l.Pending(t.Context(), "chl")
	must(t, err)
	if len(pending) != 1 || !pending[0].Absent || pending[0].ID != gone.ID || pending[0].SHA256 != NoContent || !pending[0].First.Equal(june(3)) {
		t.Errorf("to be done: %+v, want the absence", pending)
	}
	give(t, l, gone, 0)
	window, err := l.Window(t.Context(), "chl", june(1), june(5))
	must(t, err)
	if got := names(window); !slices.Equal(got, []string{"1.nc"}) {
		t.Errorf("neighbours are %v, want the one that was seen", got)
	}
	newest, _, err := l.Newest(t.Context(), "chl")
	must(t, err)
	if newest.Name != "2.nc" {
		t.Errorf("the newest granule is %s, want the clouded-out one: it did come, and 3.nc did not", newest.Name)
	}
	counts, err := l.Counts(t.Context())
	must(t, err)
	if len(counts) != 1 || counts[0] != (Count{Dataset: "chl", State: Stored, Granules: 2}) {
		t.Errorf("counted %+v, want the two granules", counts)
	}
	n, err := l.Unseen(t.Context(), "chl", june(1))
	must(t, err)
	if n != (Unseen{CloudedOut: 1, NoGranule: 1}) {
		t.Errorf("counted %+v", n)
	}
	if due, ok, err := l.NextSkill(t.Context(), "chl"); ok || err != nil {
		t.Errorf("to be scored: %+v, %v", due, err)
	}
}

func TestAGranuleThatComesAfterAllIsTheNextRevision(t *testing.T) {
	l := outbox(t)
	give(t, l, absent(t, l, "3.nc", 3), 0)
	g := arriveNow(t, l, arrival("3.nc", "late"))
	if g.Revision != 2 || g.Absent {
		t.Fatalf("it is %+v, want revision 2 of a granule that is there", g)
	}
	must(t, l.SetTimes(t.Context(), g.ID, []time.Time{june(3)}))
	give(t, l, g, 0.5)
	if got, want := deliverAll(t, l, "disk"), []string{"chl/3.nc@1", "chl/3.nc@2"}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
	if n, err := l.Unseen(t.Context(), "chl", june(1)); n != (Unseen{}) || err != nil {
		t.Errorf("counted %+v, %v, want none: it was superseded", n, err)
	}
	starts, err := l.Starts(t.Context(), "chl", june(1))
	must(t, err)
	if len(starts) != 1 || starts[0].Absent {
		t.Errorf("starts: %+v, want that of the granule", starts)
	}
}

// Where the name was guessed wrongly, the product that stood for the granule is
// retracted in the step that stores the granule's own.
func TestAGranuleUnderAnotherNameTakesTheProductInItsPlaceAway(t *testing.T) {
	l := outbox(t)
	give(t, l, absent(t, l, "guess-3.nc", 3), 0)
	give(t, l, absent(t, l, "guess-4.nc", 4), 0)
	g := arriveNow(t, l, arrival("3-v2.nc", "late"))
	must(t, l.SetTimes(t.Context(), g.ID, []time.Time{june(3).Add(5 * time.Hour)}))
	give(t, l, g, 0.5)
	got := deliverAll(t, l, "disk")
	want := []string{"chl/guess-3.nc@1", "chl/guess-4.nc@1", "-chl/guess-3.nc@1", "chl/3-v2.nc@1"}
	if !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
	if n, err := l.Unseen(t.Context(), "chl", june(1)); n != (Unseen{NoGranule: 1}) || err != nil {
		t.Errorf("counted %+v, %v", n, err)
	}
}

// A granule that comes before the product in its place was made, as after a
// crash, leaves nothing to be made, and nothing in quarantine.
func TestAnAbsenceWithoutAProductEndsWhenItsGranuleComes(t *testing.T) {
	for _, name := range []string{"3.nc", "3-v2.nc"} {
		l := outbox(t)
		give(t, l, absent(t, l, "2.nc", 2), 0)
		absent(t, l, "3.nc", 3)
		g := arriveNow(t, l, arrival(name, "late"))
		must(t, l.SetTimes(t.Context(), g.ID, []time.Time{june(3)}))
		give(t, l, g, 0.5)
		pending, err := l.Pending(t.Context(), "chl")
		must(t, err)
		aside, err := l.Granules(t.Context(), GranuleQuery{Dataset: "chl", State: Quarantined})
		must(t, err)
		since, err := l.SetAsideSince(t.Context(), time.Time{})
		must(t, err)
		recent, err := l.Recent(t.Context(), 9, Quarantined)
		must(t, err)
		if len(pending)+len(aside)+len(since)+len(recent) != 0 {
			t.Errorf("%s: pending %+v, quarantine %+v, counted %v, recent %+v; want none", name, pending, aside, since, recent)
		}
		starts, err := l.Starts(t.Context(), "chl", june(1))
		must(t, err)
		if len(starts) != 2 || starts[1].Name != name || starts[1].Absent {
			t.Errorf("%s: starts %+v, want the absence of the second and the granule of the third", name, starts)
		}
		if got, want := deliverAll(t, l, "disk"), 2; len(got) != want {
			t.Errorf("%s: delivered %v, want %d products", name, got, want)
		}
	}
}

func TestAbsencesComeBackFromTheJournal(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "ledger.db")
	l := open(t, path)
	give(t, l, absent(t, l, "3.nc", 3), 0)
	must(t, l.WriteJournal(t.Context()))
	fact := facts(t, path)["3.nc@1"]
	fresh := open(t, filepath.Join(folder, "fresh", "ledger.db"))
	if _, err := fresh.Restore(t.Context(), Found{Fact: fact, State: Stored, Sinks: bothSinks, At: at(9)}); err != nil {
		t.Fatal(err)
	}
	if g := granuleNamed(t, fresh, "3.nc"); !g.Absent || g.State != Stored || !g.First.Equal(june(3)) {
		t.Errorf("restored %+v", g)
	}
	for o, err := range fresh.Objects(t.Context(), "chl") {
		t.Errorf("the archive is said to have %+v, %v", o, err)
	}
}
