package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/ledger"
	"lacuna/pipeline/ingest"
)

// textOf returns a text attribute of a product.
func textOf(g ingest.Granule, name string) string {
	for _, a := range g.Source.Attrs {
		if text, ok := a.Value.(string); ok && a.Name == name {
			return text
		}
	}
	return ""
}

// A file and its event say when upstream published the granule, when it was
// fetched and when it was filled, also of a revision that was made later.
func TestDatesOfTheMakingAreTrue(t *testing.T) {
	oneByOne(t)
	r := newRolling(t, 2)
	r.cfg.Datasets[0].Reanalysis.LeastChange = 0
	r.deliver(t, 0)
	published := time.Date(2024, 4, 30, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(r.archive(), r.days[0].Name), published, published); err != nil {
		t.Fatal(err)
	}
	r.pass(t, 0)
	fetched := r.now
	check := func(filled time.Time) {
		t.Helper()
		file := read(t, r.fileOf(t, 0), "CHL")
		for name, want := range map[string]time.Time{
			"lacuna_published": published, "lacuna_fetched": fetched, "lacuna_filled": filled, "date_created": filled,
		} {
			if got := textOf(file, name); got != want.Format(time.RFC3339) {
				t.Errorf("%s = %q, want %v", name, got, want)
			}
		}
		current, ok, err := r.book(t).Current(t.Context(), "sea", r.days[0].Name)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		told := outbox.Delivery(ledger.Delivery{Publication: current}).Product
		if !told.Published.Equal(published) || !told.Fetched.Equal(fetched) || !told.Filled.Equal(filled) {
			t.Errorf("told %v, %v and %v, want %v, %v and %v", told.Published, told.Fetched, told.Filled, published, fetched, filled)
		}
	}
	check(r.now)
	r.deliver(t, 1)
	r.pass(t, 24*time.Hour)
	r.pass(t, 48*time.Hour) // the first day is made anew, with the second
	if got := r.revisions(t)[0]; got != nrt1+"2 delayed over 1; " {
		t.Fatalf("day 0 has %q", got)
	}
	check(r.now)
}

// A crash between filling and storing may leave the file behind. The next start
// makes the same bytes again, so it must not say another time.
func TestAfterACrashAProductSaysWhenItWasFilledBefore(t *testing.T) {
	oneByOne(t)
	r := newRolling(t, 1)
	r.deliver(t, 0)
	r.pass(t, 0)
	book := r.book(t)
	filled := r.now.Add(time.Minute)
	next, err := book.Revise(t.Context(), ledger.Revision{Dataset: "sea", Granule: r.days[0].Name, Cause: ledger.Redo, Why: "crash"}, r.now)
	if err != nil {
		t.Fatal(err)
	}
	if err := book.Advance(t.Context(), next.ID, ledger.Filled, filled); err != nil {
		t.Fatal(err)
	}
	if s := r.pass(t, time.Hour); s.Products != 1 {
		t.Fatalf("the next pass made %d products, want 1", s.Products)
	}
	if got := textOf(read(t, r.fileOf(t, 0), "CHL"), "lacuna_filled"); got != filled.Format(time.RFC3339) {
		t.Errorf("lacuna_filled = %q, want %v, from before the crash", got, filled)
	}
}
