package ledger

import (
	"database/sql"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestALookWaitsForNoWalkAndChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	for _, name := range []string{"a.nc", "b.nc"} {
		_, _, err := l.Arrive(t.Context(), arrival(name, name), at(0))
		must(t, err)
	}
	look, err := l.Look(t.Context())
	must(t, err)
	defer look.Close()
	walked := 0
	for o, err := range l.Objects(t.Context(), "chl") { // the ledger does nothing else meanwhile
		must(t, err)
		if _, known, err := newest(t.Context(), look.db, "chl", o.Name); err != nil || !known {
			t.Errorf("%s beside a walk: %v, %v", o.Name, known, err)
		}
		walked++
	}
	if walked != 2 {
		t.Errorf("%d objects were walked through, want 2", walked)
	}
	counts, err := look.Counts(t.Context())
	must(t, err)
	if len(counts) != 1 || counts[0].Granules != 2 {
		t.Errorf("Counts() = %+v, want two granules", counts)
	}
	if _, _, err := look.Arrive(t.Context(), arrival("c.nc", "c"), at(1)); err == nil {
		t.Error("a look has changed the ledger")
	}
	_, _, err = l.Arrive(t.Context(), arrival("c.nc", "c"), at(1))
	must(t, err)
	if _, known, err := newest(t.Context(), look.db, "chl", "c.nc"); err != nil || !known {
		t.Errorf("a look does not see what was committed before it: %v", err)
	}
}

// A stamp is another one after every change, of this process or another, and the same
// until then.
func TestAStampTellsOfEveryChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	look, err := l.Look(t.Context())
	must(t, err)
	defer look.Close()
	stamp := func() int64 {
		t.Helper()
		n, err := look.Stamp(t.Context())
		must(t, err)
		return n
	}
	other, err := sql.Open("sqlite", path)
	must(t, err)
	defer other.Close()
	for what, change := range map[string]func() error{
		"a granule": func() error { _, _, err := l.Arrive(t.Context(), arrival("a.nc", "a"), at(0)); return err },
		"a poll":    func() error { return l.Polled(t.Context(), "chl", at(1)) },
		"another process": func() error {
			_, err := other.ExecContext(t.Context(), "INSERT INTO poll (dataset, at) VALUES ('sst', '')")
			return err
		},
	} {
		before := stamp()
		_, err := look.Counts(t.Context())
		must(t, err)
		if again := stamp(); again != before {
			t.Errorf("before %s the stamp goes from %d to %d by itself", what, before, again)
		}
		must(t, change())
		if stamp() == before {
			t.Errorf("%s leaves the stamp as it was", what)
		}
	}
	if _, err := l.Stamp(t.Context()); err == nil {
		t.Error("a ledger that is no look has a stamp")
	}
}

func TestAGranuleIsFoundByTheEndOfItsPath(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	for _, name := range []string{"2024/05/day.nc", "2023/05/day.nc", "day.nc", "2024/05/night-day.nc", "day.nc/odd", "05/d'ay.nc"} {
		_, _, err := l.Arrive(t.Context(), arrival(name, name), at(0))
		must(t, err)
	}
	for _, tt := range []struct {
		typed string
		want  []string
	}{
		{"day.nc", []string{"2023/05/day.nc", "2024/05/day.nc", "day.nc"}},
		{"05/day.nc", []string{"2023/05/day.nc", "2024/05/day.nc"}},
		{"2024/05/day.nc", []string{"2024/05/day.nc"}},
		{"5/day.nc", nil},
		{"d'ay.nc", []string{"05/d'ay.nc"}},
		{"odd", []string{"day.nc/odd"}},
		{"", nil},
		{"%.nc", nil},
	} {
		for _, dataset := range []string{"", "chl"} {
			found, err := l.Named(t.Context(), dataset, tt.typed)
			must(t, err)
			var got []string
			for _, o := range found {
				got = append(got, o.Name)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("Named(%q, %q) = %q, want %q", dataset, tt.typed, got, tt.want)
			}
		}
		if found, err := l.Named(t.Context(), "another", tt.typed); err != nil || len(found) > 0 {
			t.Errorf("Named(another, %q) = %v, %v", tt.typed, found, err)
		}
	}
}

// What a start, a page or a command asks follows an index, and one that leads to the
// dataset or the name that was asked for.
func TestNoLookWalksThroughATable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	must(t, open(t, path).Close())
	grow(t, path, 2000)
	r := &recorder{path: path, said: map[string]bool{}}
	l := &Ledger{path: path, db: prepare(sql.OpenDB(r))}
	defer l.Close()
	l.db.SetMaxOpenConns(1)
	ctx, set, day := t.Context(), "set7", at(0)
	for _, tt := range []struct {
		index string // that is followed
		call  func() error
	}{
		{"SEARCH publication", func() error { _, err := l.Behind(ctx); return err }},
		{"granule_by_file", func() error { _, err := l.Named(ctx, set, "granule-3.nc"); return err }},
		{"publication_by_dataset_time", func() error { _, err := l.Publications(ctx, set, day, day); return err }},
		{"publication_by_time", func() error { _, err := l.Publications(ctx, "", day, day); return err }},
		{"publication_by_dataset (", func() error { _, err := l.Turns(ctx, set, 60); return err }},
		{"history_by_granule", func() error { _, err := l.Delays(ctx, set, day, day); return err }},
		{"skill_by_day", func() error { _, err := l.LatestErrors(ctx, set, 74); return err }},
		{"PRIMARY KEY (dataset=?)", func() error { _, err := l.LatestTimes(ctx, set, 90); return err }},
		{"granule_by_state_change", func() error { _, err := l.SetAsideSince(ctx, day); return err }},
		{"PRIMARY KEY (dataset=?)", func() error { _, _, err := l.Span(ctx, set); return err }},
		{"delivery_by_publication", func() error { _, err := l.Deliveries(ctx, set, "granule-3.nc"); return err }},
		{"granule_unread", func() error {
			_, err := l.Granules(ctx, GranuleQuery{Dataset: set, State: Quarantined, Unread: true})
			return err
		}},
		{"PRIMARY KEY (dataset=? AND time>? AND time<?)", func() error {
			_, err := l.Granules(ctx, GranuleQuery{Dataset: set, From: day, To: day})
			return err
		}},
	} {
		clear(r.said)
		must(t, tt.call())
		for _, text := range slices.Collect(maps.Keys(r.said)) {
			steps := strings.Join(planOf(t, l, text), "\n")
			if !strings.Contains(steps, tt.index) {
				t.Errorf("does not follow %s:\n%s\n  of: %s", tt.index, steps, text)
			}
			wantIndexed(t, l, text, []string{"tally", "CONSTANT", "g", "p"}) // and results of subqueries
		}
	}
}

func TestTimesAreReadAsTheTimePackageReadsThem(t *testing.T) {
	for _, text := range []string{
		"2024-02-29T23:59:59.999999999Z", "1985-01-01T00:00:00.000000000Z", "0001-01-01T00:00:00.000000001Z", "9999-12-31T12:00:00.000000000Z",
		"2023-02-29T00:00:00.000000000Z", "2024-13-01T00:00:00.000000000Z", "2024-01-00T00:00:00.000000000Z", "2024-01-01T24:00:00.000000000Z",
		"2024-01-01T00:60:00.000000000Z", "2024-01-01T00:00:60.000000000Z", "2024-01-01T00:00:00.00000000xZ", "2024-01-01T00:00:00Z", "20x4-01-01T00:00:00.000000000Z",
	} {
		want, err := time.Parse(momentLayout, text)
		got, ok := parseMoment(text)
		if ok != (err == nil) || ok && !got.Equal(want) {
			t.Errorf("parseMoment(%q) = %v, %v; the time package has %v, %v", text, got, ok, want, err)
		}
	}
}
