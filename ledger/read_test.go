package ledger

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWindowTakesTheNewestGoodRevisionOfEachName(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	day := 24
	put := func(name, sha256 string, times ...time.Time) Granule {
		g := arriveNow(t, l, arrival(name, sha256))
		if len(times) > 0 {
			must(t, l.SetTimes(t.Context(), g.ID, times))
		}
		return g
	}
	put("day1.nc", "1", at(1*day))
	put("day2.nc", "2a", at(2*day))
	put("day2.nc", "2b", at(2*day)) // a replacement
	put("day3.nc", "3a", at(3*day))
	bad := put("day3.nc", "3b", at(3*day)) // a bad replacement
	must(t, l.Quarantine(t.Context(), bad.ID, "truncated", at(1)))
	put("day4.nc", "4a", at(4*day))
	put("day4.nc", "4b") // a replacement that nobody has read yet
	put("week.nc", "w", at(0), at(2*day), at(6*day))
	put("ends.nc", "e", at(0), at(6*day)) // no field inside, only on both sides
	alone := put("day5.nc", "5", at(5*day))
	must(t, l.Quarantine(t.Context(), alone.ID, "all missing", at(1)))
	other := arrival("other.nc", "o")
	other.Dataset = "sst"
	g := arriveNow(t, l, other)
	must(t, l.SetTimes(t.Context(), g.ID, []time.Time{at(2 * day)}))

	got, err := l.Window(t.Context(), "chl", at(2*day), at(5*day))
	must(t, err)
	hashes := []string{}
	for _, g := range got {
		hashes = append(hashes, g.SHA256)
	}
	if diff := cmp.Diff([]string{"w", "2b", "3a", "4a"}, hashes); diff != "" {
		t.Errorf("Window() (-want +got):\n%s", diff)
	}
	newest, ok, err := l.Newest(t.Context(), "chl")
	if err != nil || !ok || newest.SHA256 != "e" {
		t.Errorf("Newest() = %+v, %v, %v; want the granule of the last day that came last", newest, ok, err)
	}
	if _, ok, err := l.Newest(t.Context(), "none"); ok || err != nil {
		t.Errorf("Newest() of nothing = %v, %v", ok, err)
	}
}

func TestTimesOfAGranuleAreItsEnds(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	g := arriveNow(t, l, arrival("a.nc", "aa"))
	must(t, l.SetTimes(t.Context(), g.ID, []time.Time{at(99)}))
	must(t, l.SetTimes(t.Context(), g.ID, []time.Time{at(5), at(2), at(9), at(2)}))
	if got := only(t, l); !got.First.Equal(at(2)) || !got.Last.Equal(at(9)) {
		t.Errorf("the granule spans %v to %v, want hours 2 to 9", got.First, got.Last)
	}
	if got, err := l.Window(t.Context(), "chl", at(99), at(99)); err != nil || len(got) != 0 {
		t.Errorf("Window() at a time that was corrected = %v, %v", got, err)
	}
}

func TestPendingIsTheWorkLeftByACrash(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	for _, state := range []State{Stored, Filled, Quarantined, Fetched, Announced} {
		g := arriveNow(t, l, arrival(string(state)+".nc", "1"))
		bring(t, l, g.ID, state)
	}
	arriveNow(t, l, arrival("fetched.nc", "2"))
	got, err := l.Pending(t.Context(), "chl")
	must(t, err)
	rows := []string{}
	for _, g := range got {
		rows = append(rows, fmt.Sprintf("%s %d", g.Name, g.Revision))
	}
	if diff := cmp.Diff([]string{"fetched.nc 1", "fetched.nc 2", "filled.nc 1"}, rows); diff != "" {
		t.Errorf("Pending() (-want +got):\n%s", diff)
	}
	if other, err := l.Pending(t.Context(), "sst"); err != nil || len(other) != 0 {
		t.Errorf("Pending() of another dataset = %v, %v", other, err)
	}
}

// Work is asked for all the time and the ledger grows for years, so these must
// not scan finished granules.
func TestQueriesFollowTheirIndexes(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	for where, index := range map[string]string{
		"dataset = 'chl' AND state IN ('fetched', 'filled') ORDER BY lane DESC, name, revision": "granule_pending (dataset=?)",
		"dataset = 'chl' AND name = 'a.nc' ORDER BY revision DESC LIMIT 1":                      "(dataset=? AND name=?)",
		"state = 'stored' ORDER BY changed DESC, id DESC LIMIT 9":                               "granule_by_state_change (state=?)",
	} {
		plan, err := query(t.Context(), l.db, func(row scanner) (detail string, err error) {
			var skip any
			return detail, row.Scan(&skip, &skip, &skip, &detail)
		}, "EXPLAIN QUERY PLAN SELECT * FROM granule WHERE "+where)
		must(t, err)
		if len(plan) != 1 || !strings.Contains(plan[0], index) {
			t.Errorf("%s goes by %q, want %s and no sorting", where, plan, index)
		}
	}
}

func TestRecentAndCounts(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	for hour, name := range []string{"c.nc", "a.nc", "b.nc", "d.nc"} {
		g, _, err := l.Arrive(t.Context(), arrival(name, "x"), at(hour))
		must(t, err)
		if name == "a.nc" {
			must(t, l.Quarantine(t.Context(), g.ID, "reason", at(10)))
		}
		if name == "c.nc" {
			must(t, l.Advance(t.Context(), g.ID, Filled, at(9)))
		}
	}
	for _, tt := range []struct {
		states []State
		n      int
		want   []string
	}{
		{nil, 3, []string{"a.nc", "c.nc", "d.nc"}},
		{[]State{Quarantined}, 3, []string{"a.nc"}},
		{[]State{Fetched, Filled}, 2, []string{"c.nc", "d.nc"}},
		{[]State{Stored}, 2, []string{}},
	} {
		gs, err := l.Recent(t.Context(), tt.n, tt.states...)
		must(t, err)
		names := []string{}
		for _, g := range gs {
			names = append(names, g.Name)
		}
		if diff := cmp.Diff(tt.want, names); diff != "" {
			t.Errorf("Recent(%d, %v) (-want +got):\n%s", tt.n, tt.states, diff)
		}
	}
	counts, err := l.Counts(t.Context())
	must(t, err)
	want := []Count{{"chl", Fetched, 2}, {"chl", Filled, 1}, {"chl", Quarantined, 1}}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("Counts() (-want +got):\n%s", diff)
	}
}

func TestGridIsRememberedByDataset(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	if _, ok, err := l.Grid(t.Context(), "chl"); ok || err != nil {
		t.Errorf("Grid() = %v, %v before any was set", ok, err)
	}
	must(t, l.SetGrid(t.Context(), "chl", Grid{Fingerprint: "old", JSON: "{}", Since: at(0)}))
	want := Grid{Fingerprint: "new", JSON: `{"rows":790}`, Since: at(1)}
	must(t, l.SetGrid(t.Context(), "chl", want))
	must(t, l.SetGrid(t.Context(), "sst", Grid{Fingerprint: "other", JSON: "{}", Since: at(2)}))
	got, ok, err := l.Grid(t.Context(), "chl")
	if diff := cmp.Diff(want, got); diff != "" || !ok || err != nil {
		t.Errorf("Grid() = %v, %v (-want +got):\n%s", ok, err, diff)
	}
}
