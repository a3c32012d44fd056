package daemon

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/intake"
	"lacuna/daemon/outbox"
	"lacuna/daemon/work"
	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/pipeline/simulate"
	"lacuna/publish"
)

// sea is a bench with the granules of a simulated sea, a day each, and a clock
// that is set by hand.
type sea struct {
	*bench
	world *simulate.World
	day   []simulate.Delivery // the first version of every day
	now   time.Time

	d      *Daemon
	book   *ledger.Ledger
	out    *outbox.Outbox
	worker *work.Worker
	intake *intake.Intake

	fetched fetch.Summary // of the last pass
}

func newSea(t *testing.T, days int) *sea {
	t.Helper()
	b := newBench(t)
	set := &b.cfg.Datasets[0]
	set.Fill.Method, set.Fill.PastDays, set.Fill.FutureDays = "climatology", 6, 3
	set.DailySkill = false
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 12, Width: 16, Days: days, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	s := &sea{bench: b, world: w}
	for _, d := range w.Schedule() {
		if d.Empty = false; d.Revision == 1 {
			s.day = append(s.day, d)
		}
	}
	slices.SortFunc(s.day, func(a, b simulate.Delivery) int { return a.Day - b.Day })
	return s
}

// deliver puts the granule of a day into the archive.
func (s *sea) deliver(t *testing.T, day int) {
	t.Helper()
	put(t, s.archive(), s.world.Granule(s.day[day]))
}

// deliverEmpty puts a granule without an observation there.
func (s *sea) deliverEmpty(t *testing.T, day int) {
	t.Helper()
	d := s.day[day]
	d.Empty = true
	put(t, s.archive(), s.world.Granule(d))
}

// open starts the service: its ledger, its sinks and its worker. The test ends it.
func (s *sea) open(t *testing.T) {
	t.Helper()
	s.d = s.daemon(t)
	s.d.parts.Now = func() time.Time { return s.now }
	var err error
	if s.book, err = s.d.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.out, err = s.d.openOutbox(t.Context(), s.book); err != nil {
		t.Fatal(err)
	}
	s.d.renewal = s.d.openRenewal(s.book)
	s.worker, s.intake, err = s.d.dataset(s.cfg.Datasets[0], shared{book: s.book, out: s.out, renewal: s.d.renewal})
	if err != nil {
		t.Fatal(err)
	}
}

// close ends the service.
func (s *sea) close(t *testing.T) {
	t.Helper()
	s.d.renewal.close()
	s.out.Close()
	s.d.books().Close(t.Context(), s.book)
}

// pass makes a pass on the morning after a day, as the command once does.
func (s *sea) pass(t *testing.T, day int) work.Summary {
	t.Helper()
	s.now = s.world.Day(0).Time.Truncate(24*time.Hour).AddDate(0, 0, day+1).Add(8 * time.Hour)
	var err error
	if s.fetched, err = s.intake.Sync(t.Context(), fetch.Days{}, nil); err != nil {
		t.Fatalf("Sync() = %v\n%s", err, s.log)
	}
	done, err := s.worker.WorkOff(t.Context())
	if err == nil {
		err = s.out.Flush(t.Context())
	}
	if err != nil {
		t.Fatalf("WorkOff() = %v\n%s", err, s.log)
	}
	return done
}

// products returns the publications of each day, by the number of the day.
func (s *sea) products(t *testing.T) map[int][]publish.Product {
	t.Helper()
	all, err := s.book.Publications(t.Context(), "sea", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	first := s.world.Day(0).Time
	byDay := map[int][]publish.Product{}
	for _, p := range all {
		n := int((p.Time.Sub(first) + 12*time.Hour) / (24 * time.Hour))
		product := outbox.Delivery(ledger.Delivery{Publication: p}).Product
		product.Retracted = !p.Retracted.IsZero()
		byDay[n] = append(byDay[n], product)
	}
	return byDay
}

// alarms returns the alarms of the service, but those about this machine.
func (s *sea) alarms(t *testing.T) []string {
	t.Helper()
	status, err := s.d.pages().Status(s.book)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range status.Alarms {
		if a.Name != "disk" {
			all = append(all, a.Summary)
		}
	}
	return all
}

// fateOf returns the fate of a day: 15 of 100 are empty or missing, some of the
// latter for some days only.
func fateOf(day int) (empty bool, comes int) {
	switch n := (day*61 + day/7) % 100; {
	case day < 4:
		return false, day
	case n < 5:
		return true, day
	case n < 12:
		return false, -1
	case n < 15:
		return false, day + 2 + day%5
	}
	return false, day
}

// A year in which one granule of seven is empty or missing: a product for every
// day, each revision once, a late granule in the place of the product that stood
// for it, and no alarm.
func TestAYearOfWeatherHasAProductForEveryDayAndNoAlarm(t *testing.T) {
	skipInShort(t)
	days := 40 // a fifth of a second each
	if os.Getenv("LACUNA_LONG") != "" {
		days = 365
	}
	s := newSea(t, days)
	s.cfg.Datasets[0].Archive.Expect.By = "06:00" // on the next day
	s.open(t)
	defer func() { s.close(t) }()
	fates, counts := map[int]string{}, map[string]int{}
	for today := range days {
		for day := max(0, today-10); day <= today; day++ {
			empty, comes := fateOf(day)
			switch {
			case comes != today:
			case empty:
				s.deliverEmpty(t, day)
			default:
				s.deliver(t, day)
			}
		}
		if today%25 == 24 { // a restart
			s.close(t)
			s.open(t)
		}
		s.pass(t, today)
		if today%20 == 0 || today == days-1 {
			if got := s.products(t); len(got) != today+1 {
				t.Fatalf("on the morning after day %d there are products of %d days\n%s", today, len(got), s.log)
			}
			if got := s.alarms(t); len(got) > 0 {
				t.Fatalf("on the morning after day %d there are alarms: %q", today, got)
			}
		}
	}
	for day := range days {
		empty, comes := fateOf(day)
		fates[day] = publish.Seen
		switch {
		case empty || s.world.Granule(s.day[day]).Seen.ObservedMask().Count() == 0:
			fates[day] = publish.CloudedOut
		}
		switch {
		case comes < 0 || comes >= days:
			fates[day] = publish.NoGranule
		}
		if comes > day {
			counts["late"]++
		}
		counts[fates[day]]++
	}
	revisions := 0
	for day, all := range s.products(t) {
		slices.SortFunc(all, func(a, b publish.Product) int { return a.Revision - b.Revision })
		for i, p := range all {
			if revisions++; p.Revision != i+1 || p.Supersedes != i || p.Retracted {
				t.Errorf("day %d: revision %d in place of %d, retracted %v, is number %d of its day", day, p.Revision, p.Supersedes, p.Retracted, i+1)
			}
		}
		first, last := all[0], all[len(all)-1]
		if last.Input != fates[day] || last.CoverageAfter < 0.9 || (last.CoverageBefore == 0) != (fates[day] != publish.Seen) {
			t.Errorf("day %d: the last product is of input %s, observed %.2f, covered %.2f; want %s", day, last.Input, last.CoverageBefore, last.CoverageAfter, fates[day])
		}
		if _, comes := fateOf(day); comes > day && comes < days && first.Input != publish.NoGranule {
			t.Errorf("day %d came %d days late, and its first product is of input %s", day, comes-day, first.Input)
		}
	}
	if aside := strings.Count(s.log.String(), "set aside"); aside > 0 {
		t.Errorf("%d lines of the log are about granules that were set aside", aside)
	}
	t.Logf("%d days, %d revisions: %v", days, revisions, counts)
}
