package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGranuleWalksThroughItsStates(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	g := arriveNow(t, l, arrival("a.nc", "aa"))
	if g.State != Fetched || g.Revision != 1 || !g.Recorded.Equal(at(0)) {
		t.Errorf("Arrive() = %+v, want revision 1, fetched", g)
	}
	must(t, l.Advance(t.Context(), g.ID, Filled, at(1)))
	product := Product{Path: "chl/a_l4.nc", SHA256: "cc"}
	must(t, l.Store(t.Context(), g.ID, product, at(2)))
	must(t, l.Advance(t.Context(), g.ID, Announced, at(3)))

	want := []Event{
		{State: Discovered, At: at(0)},
		{State: Fetched, At: at(0)},
		{State: Filled, At: at(1)},
		{State: Stored, At: at(2), Note: product.Path},
		{State: Announced, At: at(3)},
	}
	if diff := cmp.Diff(want, history(t, l, g.ID)); diff != "" {
		t.Errorf("History() (-want +got):\n%s", diff)
	}
	got := only(t, l)
	if got.Product != product || !got.Changed.Equal(at(3)) || !got.Recorded.Equal(at(0)) {
		t.Errorf("at the end the row is %+v", got)
	}
}

// The steps that are allowed from each state, and no others: the arrows of
// the package comment.
func TestOnlyTheArrowsCanBeFollowed(t *testing.T) {
	allowed := map[State][]State{
		Fetched:     {Fetched, Filled, Quarantined},
		Filled:      {Filled, Stored, Quarantined},
		Stored:      {Stored, Announced},
		Announced:   {Announced},
		Quarantined: {Quarantined, Fetched},
	}
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	for from, targets := range allowed {
		for _, to := range []State{Discovered, Fetched, Filled, Stored, Announced, Quarantined, "lost"} {
			g := arriveNow(t, l, arrival(fmt.Sprintf("%s_%s.nc", from, to), "aa"))
			bring(t, l, g.ID, from)
			before := history(t, l, g.ID)
			err := moveTo(t, l, g.ID, to)
			legal := false
			for _, target := range targets {
				legal = legal || target == to
			}
			switch {
			case legal && err != nil:
				t.Errorf("%s to %s: %v, want it done", from, to, err)
			case !legal && !errors.Is(err, ErrTransition):
				t.Errorf("%s to %s: %v, want ErrTransition", from, to, err)
			}
			grown := len(history(t, l, g.ID)) - len(before)
			if moved := legal && from != to; moved != (grown == 1) || grown > 1 {
				t.Errorf("%s to %s added %d lines to the history", from, to, grown)
			}
		}
	}
}

func TestSecondProductUnderOneRevisionIsRefused(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	g := arriveNow(t, l, arrival("a.nc", "aa"))
	bring(t, l, g.ID, Stored)
	err := l.Store(t.Context(), g.ID, Product{Path: "chl/a_l4.nc", SHA256: "other"}, at(9))
	if !errors.Is(err, ErrTransition) || !strings.Contains(err.Error(), "a.nc revision 1") {
		t.Errorf("Store() of another product = %v, want ErrTransition that names the granule", err)
	}
}

func TestStepsThatLackSomethingAreRefused(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	g := arriveNow(t, l, arrival("a.nc", "aa"))
	must(t, l.Advance(t.Context(), g.ID, Filled, at(1)))
	for what, err := range map[string]error{
		"a quarantine without a reason": l.Quarantine(t.Context(), g.ID, "", at(2)),
		"storing no product":            l.Store(t.Context(), g.ID, Product{}, at(2)),
		"advancing to stored":           l.Advance(t.Context(), g.ID, Stored, at(2)),
		"advancing to quarantined":      l.Advance(t.Context(), g.ID, Quarantined, at(2)),
		"a granule nobody knows":        l.Advance(t.Context(), 99, Filled, at(2)),
		"no times":                      l.SetTimes(t.Context(), g.ID, nil),
		"times of an unknown granule":   l.SetTimes(t.Context(), 99, []time.Time{at(0)}),
	} {
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	if _, _, err := l.Arrive(t.Context(), arrival("b.nc", ""), at(2)); err == nil {
		t.Error("an arrival without a hash was accepted")
	}
	if got := only(t, l); got.State != Filled {
		t.Errorf("after refusals the granule is %s, want filled", got.State)
	}
}

func TestChangedContentIsTheNextRevision(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	tests := []struct {
		name     string
		sha256   string
		revision int
		fresh    bool
	}{
		{"the first content", "aa", 1, true},
		{"the same, as after a crash", "aa", 1, false},
		{"a replacement", "bb", 2, true},
		{"the replacement taken back", "aa", 3, true},
		{"touched", "aa", 3, false},
	}
	for i, tt := range tests {
		a := arrival("a.nc", tt.sha256)
		a.ModTime = at(i)
		g, fresh, err := l.Arrive(t.Context(), a, at(i))
		if err != nil || g.Revision != tt.revision || fresh != tt.fresh {
			t.Errorf("%s: revision %d, fresh %v, %v; want %d, %v", tt.name, g.Revision, fresh, err, tt.revision, tt.fresh)
		}
		want := []Listed{{Object: a.Object, SHA256: tt.sha256, State: Fetched}}
		if diff := cmp.Diff(want, objects(t, l, "chl")); diff != "" {
			t.Errorf("%s: Objects() (-want +got):\n%s", tt.name, diff)
		}
	}
	if held, err := l.Holding(t.Context(), "chl", "bb"); len(held) != 0 || err != nil {
		t.Errorf("Holding() = %v, %v of a content that was replaced", held, err)
	}
}

func TestRefusedObjectIsRefusedOnce(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	o := Object{Dataset: "chl", Name: `..\evil.nc`, Size: 1, ModTime: at(0)}
	g, err := l.Refuse(t.Context(), o, "backslash in the name; rename it", at(1))
	must(t, err)
	if g.State != Quarantined || g.SHA256 != "" {
		t.Errorf("Refuse() = %+v, want it quarantined, unread", g)
	}
	if diff := cmp.Diff([]Listed{{Object: o, State: Quarantined}}, objects(t, l, "chl")); diff != "" {
		t.Errorf("Objects() (-want +got):\n%s", diff)
	}
	o.Size = 2
	_, err = l.Refuse(t.Context(), o, "backslash in the name; rename it", at(2))
	must(t, err)
	if got := only(t, l); got.Size != 2 || got.Revision != 1 {
		t.Errorf("refused again, the row is %+v; want one row with the new size", got)
	}
	if err := l.Advance(t.Context(), g.ID, Fetched, at(3)); !errors.Is(err, ErrTransition) {
		t.Errorf("trying a granule that was never read = %v, want ErrTransition", err)
	}
	arrived, fresh, err := l.Arrive(t.Context(), Arrival{Object: o, SHA256: "aa", SpoolPath: "aa.nc"}, at(4))
	if err != nil || !fresh || arrived.Revision != 1 || arrived.State != Fetched || arrived.Reason != "" {
		t.Errorf("once its name is accepted: %+v, %v, %v; want revision 1, fetched", arrived, fresh, err)
	}
}

func TestQuarantinedGranuleCanBeTriedAgain(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	g := arriveNow(t, l, arrival("a.nc", "aa"))
	must(t, l.Quarantine(t.Context(), g.ID, "no latitude; give --lat", at(1)))
	must(t, l.Quarantine(t.Context(), g.ID, "another reason", at(2)))
	if got := only(t, l); got.Reason != "no latitude; give --lat" {
		t.Errorf("the reason is %q, want the first", got.Reason)
	}
	must(t, l.Advance(t.Context(), g.ID, Fetched, at(3)))
	if got := only(t, l); got.State != Fetched || got.Reason != "" {
		t.Errorf("tried again, the row is %+v", got)
	}
	if got := history(t, l, g.ID); len(got) != 4 || got[2].Note != "no latitude; give --lat" {
		t.Errorf("History() = %+v, want the reason kept", got)
	}
}

func TestHistoryCannotBeRewritten(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	arriveNow(t, l, arrival("a.nc", "aa"))
	for _, statement := range []string{"UPDATE history SET note = 'x'", "DELETE FROM history"} {
		if _, err := l.db.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "only appended") {
			t.Errorf("%s: %v, want it refused", statement, err)
		}
	}
}

func TestStepThatFailsHalfWayLeavesNothing(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	g := arriveNow(t, l, arrival("a.nc", "aa"))
	_, err := l.db.ExecContext(t.Context(), `CREATE TEMP TRIGGER disk_full BEFORE INSERT ON main.history
		WHEN NEW.state <> 'discovered' BEGIN SELECT RAISE (ABORT, 'disk full'); END`)
	must(t, err)
	if _, _, err := l.Arrive(t.Context(), arrival("b.nc", "bb"), at(1)); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("Arrive() = %v, want the failure", err)
	}
	if err := l.Advance(t.Context(), g.ID, Filled, at(1)); err == nil {
		t.Error("Advance() hid the failure")
	}
	if got := only(t, l); got.State != Fetched || len(history(t, l, g.ID)) != 2 {
		t.Errorf("after failed steps the row is %+v, want it as it was", got)
	}
}

func open(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func arrival(name, sha256 string) Arrival {
	return Arrival{Object: Object{Dataset: "chl", Name: name, Size: 7, ModTime: at(0)}, SHA256: sha256, SpoolPath: "spool/" + sha256}
}

func arriveNow(t *testing.T, l *Ledger, a Arrival) Granule {
	t.Helper()
	g, fresh, err := l.Arrive(t.Context(), a, at(0))
	must(t, err)
	if !fresh {
		t.Fatalf("%s was there already", a.Name)
	}
	return g
}

// bring advances a fetched granule to a state, step by step.
func bring(t *testing.T, l *Ledger, id int64, to State) {
	t.Helper()
	for _, state := range map[State][]State{
		Filled: {Filled}, Stored: {Filled, Stored}, Announced: {Filled, Stored, Announced}, Quarantined: {Quarantined},
	}[to] {
		must(t, moveTo(t, l, id, state))
	}
}

func moveTo(t *testing.T, l *Ledger, id int64, to State) error {
	t.Helper()
	switch to {
	case Stored:
		return l.Store(t.Context(), id, Product{Path: "chl/a_l4.nc", SHA256: "cc"}, at(1))
	case Quarantined:
		return l.Quarantine(t.Context(), id, "reason", at(1))
	default:
		return l.Advance(t.Context(), id, to, at(1))
	}
}

func history(t *testing.T, l *Ledger, id int64) []Event {
	t.Helper()
	events, err := l.History(t.Context(), id)
	must(t, err)
	return events
}

// only returns the one granule in the ledger.
func only(t *testing.T, l *Ledger) Granule {
	t.Helper()
	gs, err := l.Recent(t.Context(), 10)
	must(t, err)
	if len(gs) != 1 {
		t.Fatalf("the ledger has %d granules, want one", len(gs))
	}
	return gs[0]
}

// at is a time, the given number of hours into the tests' day.
func at(hour int) time.Time {
	return time.Date(2024, 5, 17, 0, 0, 0, 0, time.UTC).Add(time.Duration(hour) * time.Hour)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	if path := os.Getenv(workerEnv); path != "" {
		work(path)
		return
	}
	os.Exit(m.Run())
}
