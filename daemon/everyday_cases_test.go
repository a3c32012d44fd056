package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/operate"
	"lacuna/daemon/work"
	"lacuna/ledger"
	"lacuna/publish"
)

// dummy is the name of a file that a producer writes for want of data.
const dummy = "20240320_dummy.nc"

// told returns the products of every day as "input@revision", those that were
// retracted with a minus.
func (s *sea) told(t *testing.T) map[int]string {
	t.Helper()
	byDay := map[int]string{}
	for day, all := range s.products(t) {
		slices.SortFunc(all, func(a, b publish.Product) int { return a.Created.Compare(b.Created) })
		var words []string
		for _, p := range all {
			if p.Granule == dummy {
				continue
			}
			word := fmt.Sprintf("%s@%d", p.Input, p.Revision)
			if p.Retracted {
				word = "-" + word
			}
			words = append(words, word)
		}
		byDay[day] = strings.Join(words, " ")
	}
	return byDay
}

func (s *sea) wantTold(t *testing.T, day int, want string) {
	t.Helper()
	if got := s.told(t)[day]; got != want {
		t.Errorf("day %d has the products %q, want %q\n%s", day, got, want, s.log)
	}
}

// still is a sea whose products are not looked at again, so that each revision
// in a test has one cause.
func still(t *testing.T, days int) *sea {
	s := newSea(t, days)
	s.cfg.Datasets[0].Reanalysis.Enabled = false
	return s
}

// Without expect a day is known to be missing when a later one has come; the
// product is on the grid and at the time of the day, and says that there was none.
func TestADayWithoutAGranuleIsFilledWhenALaterOneHasCome(t *testing.T) {
	oneByOne(t)
	s := still(t, 8)
	s.open(t)
	defer s.close(t)
	for day := range 3 {
		s.deliver(t, day)
	}
	s.pass(t, 3)
	s.wantTold(t, 3, "") // it may still come
	s.deliver(t, 4)
	if done := s.pass(t, 4); done.Products != 2 {
		t.Errorf("the pass did %+v, want the products of two days", done)
	}
	s.wantTold(t, 3, "no-granule@1")
	if done := s.pass(t, 5); done != (work.Summary{}) {
		t.Errorf("another pass did %+v, want nothing", done)
	}
	missing, next := s.products(t)[3][0], s.products(t)[4][0]
	if missing.Granule != s.day[3].Name || missing.BBox != next.BBox || missing.CoverageBefore != 0 || missing.CoverageAfter < 0.9 || !(missing.MeanUncertainty > 0) {
		t.Errorf("the product is %+v", missing)
	}
	file := read(t, missing.Path, "CHL")
	if want := s.world.Day(3).Time; !file.Fields[0].Time.Equal(want) || file.Empty() {
		t.Errorf("the file is of %v, want %v, filled", file.Fields[0].Time, want)
	}
	for _, words := range []string{"no-granule", "No granule of this time existed", s.day[2].Name + " sha256:"} {
		if !mentions(file, words) {
			t.Errorf("the file does not say %q", words)
		}
	}
	for _, a := range file.Source.Attrs {
		if a.Name == "lacuna_fetched" || a.Name == "lacuna_published" {
			t.Errorf("the file says %s = %v of a granule that was not there", a.Name, a.Value)
		}
	}
	if !missing.Fetched.IsZero() || !missing.Published.IsZero() {
		t.Errorf("published %v, fetched %v; there was no granule", missing.Published, missing.Fetched)
	}
	if mentions(file, s.day[3].Name+" sha256:") {
		t.Error("the file names the granule that was not there among its inputs")
	}
	stories, err := operate.New(s.cfg.Operate(), s.book, func() time.Time { return s.now }).Why(t.Context(), s.world.Day(3).Time.Format(time.DateOnly), "sea")
	if err != nil || len(stories) != 1 || !strings.Contains(stories[0].Lines[0].Text, "the archive has no granule of this time") {
		t.Errorf("why: %+v, %v", stories, err)
	}
}

func TestAGranuleThatComesLateTakesThePlaceOfTheProductThatStoodForIt(t *testing.T) {
	oneByOne(t)
	s := still(t, 10)
	s.open(t)
	defer s.close(t)
	for _, day := range []int{0, 1, 2, 4, 6, 7} {
		s.deliver(t, day)
	}
	s.pass(t, 7)
	s.wantTold(t, 3, "no-granule@1")
	s.wantTold(t, 5, "no-granule@1")
	g := s.world.Granule(s.day[3])
	put(t, s.archive(), g)
	other := s.world.Granule(s.day[5])
	other.Name = "reprocessed_" + other.Name
	put(t, s.archive(), other)
	s.pass(t, 8)
	input := map[bool]string{true: publish.Seen, false: publish.CloudedOut}
	s.wantTold(t, 3, "no-granule@1 "+input[g.Seen.ObservedMask().Count() > 0]+"@2")
	s.wantTold(t, 5, "-no-granule@1 "+input[other.Seen.ObservedMask().Count() > 0]+"@1")
	if got := s.alarms(t); len(got) > 0 {
		t.Errorf("alarms: %q", got)
	}
}

// A service that was killed between any two steps makes each product once.
func TestAnAbsenceThatWasRecordedBeforeACrashIsFilledOnce(t *testing.T) {
	oneByOne(t)
	s := still(t, 8)
	s.open(t)
	for _, day := range []int{0, 1, 2} {
		s.deliver(t, day)
	}
	s.pass(t, 2)
	absence := ledger.Absence{Dataset: "sea", Name: s.day[3].Name, Times: []time.Time{s.world.Day(3).Time}, Lane: ledger.Live}
	if added, err := s.book.AddAbsence(t.Context(), absence, s.now); !added || err != nil {
		t.Fatalf("AddAbsence() = %v, %v", added, err)
	}
	s.close(t)
	s.open(t)
	defer s.close(t)
	s.deliver(t, 4)
	s.pass(t, 4)
	s.wantTold(t, 3, "no-granule@1")
}

func TestALedgerThatIsRebuiltKnowsTheDaysWithoutAGranule(t *testing.T) {
	oneByOne(t)
	s := still(t, 8)
	s.open(t)
	for _, day := range []int{0, 1, 2, 4} {
		s.deliver(t, day)
	}
	s.pass(t, 4)
	s.close(t)
	for _, journal := range []bool{true, false} {
		if !journal {
			if err := os.Remove(s.cfg.state().Ledger() + ".journal"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.daemon(t).Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.open(t)
		if done := s.pass(t, 4); done.Products != 0 {
			t.Errorf("with the journal %v: the pass made %d products, want none", journal, done.Products)
		}
		s.wantTold(t, 3, "no-granule@1")
		rows, err := s.book.Granules(t.Context(), ledger.GranuleQuery{Dataset: "sea", Name: s.day[3].Name})
		if err != nil || len(rows) != 1 || !rows[0].Absent {
			t.Errorf("with the journal %v: the ledger has %+v, %v", journal, rows, err)
		}
		s.close(t)
	}
}

func TestEmptyDaysCanBeSkipped(t *testing.T) {
	oneByOne(t)
	s := still(t, 8)
	s.cfg.Datasets[0].EmptyDays = work.SkipEmptyDays
	s.open(t)
	defer s.close(t)
	for _, day := range []int{0, 1, 2, 4} {
		s.deliver(t, day)
	}
	s.pass(t, 4)
	s.wantTold(t, 3, "")
}

// The first granules hold nothing: a product without a value, until the days
// around it have come. An odd file without an observation does not set the grid.
func TestCloudedOutGranulesComeFirst(t *testing.T) {
	oneByOne(t)
	s := newSea(t, 8)
	s.open(t)
	defer s.close(t)
	odd := world(t, 24, 32)
	d := odd.Schedule()[0]
	d.Empty = true
	g := odd.Granule(d)
	g.Name = dummy
	put(t, s.archive(), g)
	s.deliverEmpty(t, 0)
	s.pass(t, 0)
	s.wantTold(t, 0, "clouded-out@1")
	for _, p := range s.products(t)[0] {
		if p.CoverageAfter != 0 {
			t.Errorf("%s: %.2f of the sea have a value, and nothing is known of it", p.Granule, p.CoverageAfter)
		}
	}
	for day := 1; day < 4; day++ {
		s.deliver(t, day)
		s.pass(t, day)
	}
	grid, known, err := s.book.Grid(t.Context(), "sea")
	if err != nil || !known || grid.Fingerprint != s.world.Grid().String() {
		t.Errorf("the grid is %+v, %v, want that of the granules with observations", grid, err)
	}
	s.pass(t, 5) // the days after it have settled
	s.wantTold(t, 0, "clouded-out@1 clouded-out@2")
	if all := s.products(t)[0]; all[len(all)-1].CoverageAfter < 0.9 {
		t.Errorf("%.2f of the sea have a value after the days around it came", all[len(all)-1].CoverageAfter)
	}
	if got := s.alarms(t); len(got) > 0 {
		t.Errorf("alarms: %q", got)
	}
}

// An archive that has gone silent is another matter than weather.
func TestASilentArchiveStillRings(t *testing.T) {
	oneByOne(t)
	s := still(t, 30)
	s.cfg.Datasets[0].Archive.Expect.By = "06:00"
	s.open(t)
	defer s.close(t)
	for _, day := range []int{0, 1, 2} {
		s.deliver(t, day)
	}
	s.pass(t, 9)
	if days := len(s.products(t)); days != 9 { // six days after the last one are in reach
		t.Errorf("%d days have products, want 9", days)
	}
	if got := s.alarms(t); len(got) != 1 || !strings.Contains(got[0], "the newest field of sea is 8 days old") {
		t.Errorf("alarms: %q, want that the archive is silent", got)
	}
}

func TestADatasetThatNeverShowsAnythingRings(t *testing.T) {
	oneByOne(t)
	s := still(t, 14)
	s.cfg.Datasets[0].Range = &[2]float64{1e6, 2e6} // refuses everything
	s.open(t)
	defer s.close(t)
	for day := range 12 {
		s.deliver(t, day)
	}
	s.pass(t, 11)
	if got := s.alarms(t); len(got) != 1 || !strings.Contains(got[0], "none of the 12 granules of sea holds an observation") {
		t.Errorf("alarms: %q", got)
	}
}

// The running service, with a watcher beside the worker.
func TestTheDaemonFillsADayWithoutAGranule(t *testing.T) {
	s := still(t, 8)
	for _, day := range []int{0, 1, 2, 4, 5} {
		s.deliver(t, day)
	}
	stop := start(t, s.daemon(t))
	until(t, "a ledger", func() bool { return exists(s.cfg.state().Ledger() + "-wal") })
	s.book = s.bench.book(t)
	until(t, "products of six days", func() bool { return len(s.products(t)) == 6 })
	s.deliver(t, 3)
	until(t, "the granule that came late", func() bool { return len(s.products(t)[3]) == 2 })
	stop()
	got := s.told(t)
	for day := range 6 {
		if day != 3 && strings.Contains(got[day], " ") {
			t.Errorf("day %d has the products %q, want one", day, got[day])
		}
	}
	if !strings.HasPrefix(got[3], "no-granule@1 ") {
		t.Errorf("day 3 has the products %q", got[3])
	}
}

func TestABackfillFillsTheDaysWithoutAGranule(t *testing.T) {
	s := still(t, 12)
	s.cfg.Datasets[0].Archive.Lookback = 48 * time.Hour
	for _, day := range []int{0, 1, 2, 4, 5, 7} {
		s.deliver(t, day)
	}
	d := s.daemon(t)
	first := s.world.Day(0).Time
	b, err := d.Station().AskBackfill(operate.Backfill{Dataset: "sea", From: first, To: first.AddDate(0, 0, 7)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Backfill(t.Context(), b, func(operate.BackfillNews) {}); err != nil {
		t.Fatal(err)
	}
	s.book = s.bench.book(t)
	for _, day := range []int{3, 6} {
		s.wantTold(t, day, "no-granule@1")
	}
	if days := len(s.products(t)); days != 8 {
		t.Errorf("%d days have products, want 8", days)
	}
}

func TestEveryMethodFillsDaysOfWhichNothingWasSeen(t *testing.T) {
	skipInShort(t)
	for _, method := range []string{"oi", "persistence", "climatology", "auto"} {
		s := still(t, 14)
		s.cfg.Datasets[0].Fill.Method, s.cfg.Datasets[0].Fill.Network.Members = method, 2
		s.cfg.Publish.QuickLook = true
		s.open(t)
		first := 8
		if method == "auto" {
			first = 0 // there are enough days for a starter model
		}
		for day := first; day < 14; day++ {
			switch day {
			case 11:
			case 12:
				s.deliverEmpty(t, day)
			default:
				s.deliver(t, day)
			}
		}
		s.pass(t, 13)
		products := s.products(t)
		for day, input := range map[int]string{11: publish.NoGranule, 12: publish.CloudedOut} {
			p := products[day][0]
			if p.Input != input || p.CoverageBefore != 0 || p.CoverageAfter < 0.8 || !(p.MeanUncertainty > 0) || p.Links["quick_look"] == "" {
				t.Errorf("%s, day %d: %+v", method, day, p)
			}
		}
		s.close(t)
	}
}

// The day of a granule that was set aside is filled like one without a granule,
// until a good one comes under its name. An operator may have it made again.
func TestTheDayOfADamagedGranuleIsFilledUntilAGoodOneComes(t *testing.T) {
	oneByOne(t)
	s := still(t, 8)
	s.open(t)
	defer s.close(t)
	for _, day := range []int{0, 1, 2, 4} {
		s.deliver(t, day)
	}
	file := filepath.Join(s.archive(), s.day[3].Name)
	if err := os.WriteFile(file, []byte("<html>404</html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.pass(t, 4)
	s.wantTold(t, 3, "no-granule@1")
	o := operate.New(s.cfg.Operate(), s.book, func() time.Time { return s.now })
	if redone, err := o.Redo(t.Context(), operate.RedoRequest{Selection: operate.Selection{Dataset: "sea", Names: []string{s.products(t)[3][0].Granule}}, Why: "test"}); err != nil || len(redone) != 1 {
		t.Fatalf("Redo() = %+v, %v", redone, err)
	}
	s.pass(t, 5)
	s.wantTold(t, 3, "no-granule@1 no-granule@2")
	if aside, err := o.Quarantine(t.Context(), "sea"); err != nil || len(aside) != 1 || aside[0].Granule != s.day[3].Name {
		t.Errorf("set aside: %+v, %v, want the damaged file", aside, err)
	}
	s.deliver(t, 3)
	s.pass(t, 6)
	input := map[bool]string{true: publish.Seen, false: publish.CloudedOut}[s.world.Granule(s.day[3]).Seen.ObservedMask().Count() > 0]
	s.wantTold(t, 3, "-no-granule@1 -no-granule@2 "+input+"@2")
}
