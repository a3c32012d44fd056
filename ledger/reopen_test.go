package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const day = 24 * time.Hour

// window is the placement of the tests: products see three days back and two
// ahead, and settle after 36 hours, at most after 100.
func window(d int) Placement {
	return Placement{Times: []time.Time{at(24 * d)}, Past: 3 * day, Future: 2 * day, Settle: 36 * time.Hour, MaxWait: 100 * time.Hour}
}

// publishDay takes the granule of a day all the way to the queue.
func publishDay(t *testing.T, l *Ledger, d int, sha256 string, now time.Time) Granule {
	t.Helper()
	g, _, err := l.Arrive(t.Context(), arrival(fmt.Sprintf("%02d.nc", d), sha256), now)
	must(t, err)
	_, err = l.Place(t.Context(), g.ID, window(d), now)
	must(t, err)
	must(t, l.Advance(t.Context(), g.ID, Filled, now))
	o := outgoing(g, 24*d)
	o.Skill = true
	must(t, l.StoreAndQueue(t.Context(), g.ID, o, now))
	return g
}

// reopened returns the names of the open reopenings.
func reopened(t *testing.T, l *Ledger) []string {
	t.Helper()
	rs, err := l.Reopenings(t.Context(), ReopeningQuery{Dataset: "chl", OpenOnly: true})
	must(t, err)
	names := []string{}
	for _, r := range rs {
		names = append(names, r.Granule)
	}
	slices.Sort(names)
	return names
}

func TestGranuleReopensTheProductsThatHaveItInTheirWindow(t *testing.T) {
	l := outbox(t)
	for _, d := range []int{1, 2, 3, 4, 6, 7, 8, 9} {
		publishDay(t, l, d, "a", at(24*d))
	}
	// Every day but the first two has reopened the two before it, so all but
	// the last are open; close them to begin anew.
	open, err := l.Reopenings(t.Context(), ReopeningQuery{Dataset: "chl", OpenOnly: true})
	must(t, err)
	for _, r := range open {
		r.Outcome = Unchanged
		must(t, l.EndReopening(t.Context(), r, at(300)))
	}
	late, _, err := l.Arrive(t.Context(), arrival("05.nc", "a"), at(301))
	must(t, err)
	n, err := l.Place(t.Context(), late.ID, window(5), at(301))
	must(t, err)
	want := []string{"03.nc", "04.nc", "06.nc", "07.nc", "08.nc"} // two days back see it coming, three ahead look back on it
	if diff := cmp.Diff(want, reopened(t, l)); diff != "" || n != len(want) {
		t.Errorf("%d reopened (-want +got):\n%s", n, diff)
	}
	if n, err := l.Place(t.Context(), late.ID, window(5), at(302)); n != 0 || err != nil {
		t.Errorf("placed again after a crash it reopened %d, %v", n, err)
	}
	rs, err := l.Reopenings(t.Context(), ReopeningQuery{Dataset: "chl", Granule: "06.nc", OpenOnly: true})
	must(t, err)
	if r := rs[0]; r.Why != "05.nc of 2024-05-22 came" || r.Neighbours != 1 || !r.Due.Equal(at(301+36)) {
		t.Errorf("reopened as %+v", r)
	}
}

func TestReplacedGranuleReopensProductsThatSawTheOldOne(t *testing.T) {
	l := outbox(t)
	for _, d := range []int{1, 2, 8, 9} {
		publishDay(t, l, d, "a", at(24*d))
	}
	// The replacement of day 2 turns out to be of day 7.
	g, _, err := l.Arrive(t.Context(), arrival("02.nc", "b"), at(300))
	must(t, err)
	_, err = l.Place(t.Context(), g.ID, window(7), at(300))
	must(t, err)
	if diff := cmp.Diff([]string{"01.nc", "08.nc", "09.nc"}, reopened(t, l)); diff != "" {
		t.Errorf("reopened (-want +got):\n%s", diff)
	}
	rs, _ := l.Reopenings(t.Context(), ReopeningQuery{Dataset: "chl", Granule: "09.nc"})
	if !strings.Contains(rs[0].Why, "was replaced") {
		t.Errorf("why = %q", rs[0].Why)
	}
}

// The neighbour that ends a window is not waited after; one that comes late into
// it, or is replaced, is.
func TestAProductWhoseWindowHasEndedIsDueAtOnce(t *testing.T) {
	l := outbox(t)
	place := func(d int, sha256 string, hour int) {
		t.Helper()
		g, _, err := l.Arrive(t.Context(), arrival(fmt.Sprintf("%02d.nc", d), sha256), at(hour))
		must(t, err)
		p := window(d)
		p.Step = day
		_, err = l.Place(t.Context(), g.ID, p, at(hour))
		must(t, err)
	}
	due := func() time.Time {
		t.Helper()
		rs, err := l.Reopenings(t.Context(), ReopeningQuery{Dataset: "chl", Granule: "05.nc", OpenOnly: true})
		must(t, err)
		if len(rs) != 1 {
			t.Fatalf("%d open reopenings of the product", len(rs))
		}
		return rs[0].Due
	}
	publishDay(t, l, 5, "a", at(0))
	for _, tt := range []struct {
		day    int
		sha256 string
		want   int // hours until it is due
		why    string
	}{
		{4, "a", 36, "a day before it is no future"},
		{6, "a", 36, "the first of two days ahead"},
		{7, "a", 0, "the second of two days ahead"},
		{7, "b", 36, "a replacement in a window that has ended"},
		{3, "a", 36, "a late day before it"},
		{8, "a", -1, "a day beyond its window"},
	} {
		before := time.Time{}
		if tt.want < 0 {
			before = due()
		}
		hour := 10 * tt.day
		place(tt.day, tt.sha256, hour)
		want := at(hour + tt.want)
		if tt.want < 0 {
			want = before
		}
		if last := at(40 + 100); want.After(last) {
			want = last
		}
		if got := due(); !got.Equal(want) {
			t.Errorf("%s: due %v, want %v", tt.why, got, want)
		}
	}
}

func TestReopenedProductIsDueWhenItsNeighboursHaveSettled(t *testing.T) {
	l := outbox(t)
	publishDay(t, l, 1, "a", at(0))
	due := func(hour int) bool {
		_, ok, err := l.DueReopening(t.Context(), "chl", Live, at(hour))
		must(t, err)
		return ok
	}
	publishDay(t, l, 2, "a", at(10))
	if due(45) || !due(46) {
		t.Error("it is not due 36 hours after the neighbour")
	}
	publishDay(t, l, 3, "a", at(40))
	if due(75) || !due(76) {
		t.Error("another neighbour does not put it off")
	}
	for hour := 41; hour < 109; hour++ { // a neighbour that is replaced every hour
		g, _, err := l.Arrive(t.Context(), arrival("02.nc", fmt.Sprint(hour)), at(hour))
		must(t, err)
		_, err = l.Place(t.Context(), g.ID, window(2), at(hour))
		must(t, err)
	}
	rs, err := l.Reopenings(t.Context(), ReopeningQuery{Dataset: "chl", Granule: "01.nc", OpenOnly: true})
	if err != nil || len(rs) != 1 || !rs[0].Due.Equal(at(110)) || rs[0].Neighbours != 70 {
		t.Errorf("%+v, %v, want it due 100 hours after the first of 70 neighbours", rs, err)
	}
	if _, ok, _ := l.DueReopening(t.Context(), "chl", Backfill, at(1000)); ok {
		t.Error("it is in the other lane too")
	}
}

func TestNextReopeningIsTheFirstThatIsNotDueYet(t *testing.T) {
	l := outbox(t)
	publishDay(t, l, 1, "a", at(0))
	publishDay(t, l, 2, "a", at(10))
	rs, err := l.Reopenings(t.Context(), ReopeningQuery{Dataset: "chl", OpenOnly: true})
	if err != nil || len(rs) != 1 {
		t.Fatalf("%+v, %v", rs, err)
	}
	if due, ok, err := l.NextReopening(t.Context(), "chl", at(10)); !ok || err != nil || !due.Equal(rs[0].Due) {
		t.Errorf("%v, %v, %v, want %v", due, ok, err, rs[0].Due)
	}
	if due, ok, err := l.NextReopening(t.Context(), "chl", rs[0].Due); ok || err != nil {
		t.Errorf("%v, %v: nothing comes after the one that is due", due, err)
	}
	if due, ok, err := l.NextReopening(t.Context(), "sst", at(10)); ok || err != nil {
		t.Errorf("%v, %v: it is of another dataset", due, err)
	}
}

// The clock was ahead when a neighbour came, and was set right: nobody waits for a
// time that has not come.
func TestReopenedProductIsDueAfterAClockWasSetBack(t *testing.T) {
	l := outbox(t)
	publishDay(t, l, 1, "a", at(0))
	publishDay(t, l, 2, "a", at(24*365))
	r, ok, err := l.DueReopening(t.Context(), "chl", Live, at(10))
	must(t, err)
	if !ok {
		t.Fatal("it waits for a year")
	}
	must(t, l.PostponeReopening(t.Context(), r.ID, at(10), 2*time.Hour))
	if _, ok, err := l.DueReopening(t.Context(), "chl", Live, at(11)); ok || err != nil {
		t.Errorf("one that was postponed since is due before its time: %v", err)
	}
	if _, ok, err := l.DueReopening(t.Context(), "chl", Live, at(12)); !ok || err != nil {
		t.Errorf("one that was postponed is not due at its time: %v", err)
	}
	must(t, l.PostponeReopening(t.Context(), r.ID, at(24*365), 2*time.Hour))
	if _, ok, err := l.DueReopening(t.Context(), "chl", Live, at(12)); !ok || err != nil {
		t.Errorf("one that was postponed while the clock was ahead waits for a year: %v", err)
	}
	// Its neighbour was the last of its window: it was due at once.
	_, err = l.db.ExecContext(t.Context(), "UPDATE reopening SET due = latest")
	must(t, err)
	if _, ok, err := l.DueReopening(t.Context(), "chl", Live, at(12)); !ok || err != nil {
		t.Errorf("one that was due at once while the clock was ahead waits for a year: %v", err)
	}
}

func TestRevisionIsTheSameContentUnderTheNextNumber(t *testing.T) {
	l := outbox(t)
	g := publishDay(t, l, 1, "a", at(0))
	publishDay(t, l, 2, "a", at(24))
	next, err := l.Revise(t.Context(), Revision{Dataset: "chl", Granule: "01.nc", Cause: Reanalysis, Why: "02.nc came", Change: 0.7}, at(70))
	must(t, err)
	if next.Revision != 2 || next.State != Fetched || next.SHA256 != g.SHA256 || next.SpoolPath != g.SpoolPath || next.Cause != Reanalysis || !next.First.Equal(at(24)) {
		t.Errorf("revised to %+v", next)
	}
	rs, _ := l.Reopenings(t.Context(), ReopeningQuery{Dataset: "chl", Granule: "01.nc"})
	if len(rs) != 1 || rs[0].Outcome != Revised || rs[0].Change != 0.7 || !rs[0].Ended.Equal(at(70)) {
		t.Errorf("its reopening: %+v", rs)
	}
	if again, err := l.Revise(t.Context(), Revision{Dataset: "chl", Granule: "01.nc", Cause: Redo, Why: "again"}, at(71)); err != nil || again.ID != next.ID {
		t.Errorf("asked for again: %+v, %v, want the one that is unfinished", again, err)
	}
	pending, _ := l.Pending(t.Context(), "chl")
	if len(pending) != 1 || pending[0].Why != "02.nc came" {
		t.Errorf("pending: %+v", pending)
	}
	// The archive lists the same bytes as before: that makes no revision.
	if _, fresh, err := l.Arrive(t.Context(), arrival("01.nc", "a"), at(72)); fresh || err != nil {
		t.Errorf("the same bytes are fresh: %v, %v", fresh, err)
	}
	if _, err := l.Revise(t.Context(), Revision{Dataset: "chl", Granule: "99.nc", Cause: Redo, Why: "x"}, at(73)); !errors.Is(err, ErrNothingToRevise) {
		t.Errorf("revise a granule that is not there: %v", err)
	}
}

func TestRevisionPassesABadReplacementOver(t *testing.T) {
	l := outbox(t)
	publishDay(t, l, 1, "good", at(0))
	bad, _, err := l.Arrive(t.Context(), arrival("01.nc", "bad"), at(1))
	must(t, err)
	must(t, l.Quarantine(t.Context(), bad.ID, "wrong grid", at(1)))
	next, err := l.Revise(t.Context(), Revision{Dataset: "chl", Granule: "01.nc", Cause: Redo, Why: "asked for"}, at(2))
	must(t, err)
	if next.Revision != 3 || next.SHA256 != "good" {
		t.Errorf("revised to %+v, want the good content as revision 3", next)
	}
}

func TestStoredRevisionEndsItsReopening(t *testing.T) {
	l := outbox(t)
	publishDay(t, l, 1, "a", at(0))
	publishDay(t, l, 2, "a", at(1))
	publishDay(t, l, 1, "b", at(2)) // replaced before anybody looked again
	rs, _ := l.Reopenings(t.Context(), ReopeningQuery{Dataset: "chl", Granule: "01.nc"})
	if len(rs) != 1 || rs[0].Outcome != Overtaken {
		t.Errorf("its reopening: %+v", rs)
	}
}

func TestLiveLaneGoesFirst(t *testing.T) {
	l := outbox(t)
	for i, lane := range []Lane{Backfill, Live, Backfill, ""} {
		a := arrival(fmt.Sprintf("%d.nc", i), "x")
		a.Lane = lane
		arriveNow(t, l, a)
	}
	all, err := l.Pending(t.Context(), "chl")
	must(t, err)
	names := ""
	for _, g := range all {
		names += g.Name[:1]
	}
	if first, err := l.FirstPending(t.Context(), "chl", 1); names != "1302" || err != nil || len(first) != 1 || first[0].Name != "1.nc" {
		t.Errorf("pending in the order %s, first %v, %v", names, first, err)
	}
}

// Workers store products in any order; a score has a part in the next.
func TestScoresAreDueInTheOrderOfGranules(t *testing.T) {
	l := outbox(t)
	for i, day := range []int{3, 1, 2} {
		publishDay(t, l, day, "a", at(i))
	}
	for _, want := range []string{"01.nc", "02.nc", "03.nc"} {
		d, ok, err := l.NextSkill(t.Context(), "chl")
		must(t, err)
		if !ok || d.Granule.Name != want {
			t.Errorf("%s is scored next, want %s", d.Granule.Name, want)
		}
		must(t, l.SkipSkill(t.Context(), d.ID, "done", at(5)))
	}
}

func TestEveryNewContentIsScoredOnce(t *testing.T) {
	l := outbox(t)
	publishDay(t, l, 1, "a", at(0))
	kinds := func() (all []string) {
		for {
			d, ok, err := l.NextSkill(t.Context(), "chl")
			must(t, err)
			if !ok {
				return all
			}
			all = append(all, fmt.Sprintf("%s %s@%d of @%d", d.Kind, d.Granule.Name, d.Granule.Revision, d.Scored.Revision))
			if d.Kind == Overlay {
				must(t, l.EndSkill(t.Context(), d.ID, Skill{Method: "oi", MSE: 0.2, Bias: -0.1, Covered90: 0.88, Pixels: 40}, at(5)))
			} else {
				must(t, l.SkipSkill(t.Context(), d.ID, "nothing revealed", at(5)))
			}
		}
	}
	if diff := cmp.Diff([]string{"overlay 01.nc@1 of @0"}, kinds()); diff != "" {
		t.Error(diff)
	}
	publishDay(t, l, 1, "b", at(6))
	if diff := cmp.Diff([]string{"overlay 01.nc@2 of @0", "revealed 01.nc@2 of @1"}, kinds()); diff != "" {
		t.Error(diff)
	}
	g, err := l.Revise(t.Context(), Revision{Dataset: "chl", Granule: "01.nc", Cause: Redo, Why: "x"}, at(7))
	must(t, err)
	must(t, l.Advance(t.Context(), g.ID, Filled, at(8)))
	o := outgoing(g, 24)
	o.Skill = true
	must(t, l.StoreAndQueue(t.Context(), g.ID, o, at(8)))
	if again := kinds(); len(again) != 0 {
		t.Errorf("the same content is scored again: %v", again)
	}
	publishDay(t, l, 2, "a", at(30))
	kinds()
	got, err := l.Skills(t.Context(), SkillQuery{Dataset: "chl", Kind: Overlay, Limit: 2})
	want := []Skill{
		{Dataset: "chl", Granule: "01.nc", Revision: 2, Day: at(24), Kind: Overlay, Method: "oi", MSE: 0.2, Bias: -0.1, Covered90: 0.88, Pixels: 40, At: at(5)},
		{Dataset: "chl", Granule: "02.nc", Revision: 1, Day: at(48), Kind: Overlay, Method: "oi", MSE: 0.2, Bias: -0.1, Covered90: 0.88, Pixels: 40, At: at(5)},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Skills() %v (-want +got):\n%s", err, diff)
	}
	if none, err := l.Skills(t.Context(), SkillQuery{Dataset: "chl", Kind: Revealed}); len(none) != 0 || err != nil {
		t.Errorf("a skipped score counts: %v, %v", none, err)
	}
	if one, err := l.Skills(t.Context(), SkillQuery{Dataset: "chl", From: at(25), To: at(48)}); len(one) != 1 || err != nil {
		t.Errorf("Skills() of a day = %v, %v", one, err)
	}
}

// The tallies agree with a count of the rows after every kind of step.
func TestTalliesAgreeWithTheRows(t *testing.T) {
	l := outbox(t)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		d := random.IntN(9)
		switch random.IntN(6) {
		case 0:
			g, _, err := l.Arrive(t.Context(), arrival(fmt.Sprintf("%02d.nc", d), fmt.Sprint(i)), at(i))
			must(t, err)
			must(t, l.Quarantine(t.Context(), g.ID, "bad", at(i)))
		case 1, 2:
			publishDay(t, l, d, fmt.Sprint(i), at(i))
		case 3:
			for _, sink := range bothSinks {
				ds, err := l.Due(t.Context(), sink)
				must(t, err)
				if len(ds) > 0 {
					must(t, l.EndDelivery(t.Context(), ds[0].ID, at(i)))
				}
			}
		case 4:
			if ds, _ := l.Due(t.Context(), "kafka"); len(ds) > 0 {
				must(t, l.FailDelivery(t.Context(), ds[0].ID, "too large", true, at(i)))
			}
		case 5:
			_, err := l.RetryAside(t.Context(), "kafka", 0)
			must(t, err)
			_, err = l.QueueRetraction(t.Context(), Retraction{Dataset: "chl", Granule: fmt.Sprintf("%02d.nc", d), Why: "bad", Sinks: bothSinks}, at(i))
			if err != nil && !errors.Is(err, ErrNoPublication) {
				t.Fatal(err)
			}
		}
	}
	pairs := func(text string) []string {
		rows, err := query(t.Context(), l.db, func(row scanner) (string, error) {
			var a, b string
			var n int
			err := row.Scan(&a, &b, &n)
			return fmt.Sprint(a, " ", b, " ", n), err
		}, text)
		must(t, err)
		return rows
	}
	for tally, rows := range map[string]string{
		"SELECT dataset, state, granules FROM tally WHERE granules <> 0 ORDER BY 1, 2":           "SELECT dataset, state, count(*) FROM granule GROUP BY 1, 2 ORDER BY 1, 2",
		"SELECT sink, state, deliveries FROM delivery_tally WHERE deliveries <> 0 ORDER BY 1, 2": "SELECT sink, state, count(*) FROM delivery GROUP BY 1, 2 ORDER BY 1, 2",
	} {
		if diff := cmp.Diff(pairs(rows), pairs(tally)); diff != "" {
			t.Errorf("%s (-rows +tally):\n%s", tally, diff)
		}
	}
}

// A product may be reopened for what is no neighbour; one that does not hold is not.
func TestAProductIsReopenedForWhatIsNoNeighbour(t *testing.T) {
	l := outbox(t)
	publishDay(t, l, 1, "a", at(24))
	ask := Reopening{Dataset: "chl", Granule: "01.nc", Lane: Backfill, Why: "sst came"}
	how := Placement{Settle: time.Hour, MaxWait: time.Hour}
	if ok, err := l.Reopen(t.Context(), ask, how, at(30)); !ok || err != nil {
		t.Fatalf("Reopen() = %v, %v", ok, err)
	}
	if _, ok, err := l.DueReopening(t.Context(), "chl", Backfill, at(30)); ok || err != nil {
		t.Errorf("it is due at once, %v", err)
	}
	r, ok, err := l.DueReopening(t.Context(), "chl", Backfill, at(31))
	if err != nil || !ok || r.Granule != "01.nc" || !r.Time.Equal(at(24)) || r.Reason() != "sst came" {
		t.Errorf("due is %+v, %v, %v", r, ok, err)
	}
	ask.Granule = "02.nc"
	if ok, err := l.Reopen(t.Context(), ask, how, at(30)); ok || err != nil {
		t.Errorf("a granule without a product: %v, %v", ok, err)
	}
}
