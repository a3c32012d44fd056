package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/operate"
	"lacuna/daemon/outbox"
	"lacuna/daemon/work"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
	"lacuna/publish"
	"lacuna/publish/netcdf"
)

// rolling is a bench whose clock is set by hand.
type rolling struct {
	*bench
	world *simulate.World
	days  []simulate.Delivery
	now   time.Time
}

func newRolling(t *testing.T, days int) *rolling {
	t.Helper()
	b := newBench(t)
	set := &b.cfg.Datasets[0]
	set.Fill.Method, set.Fill.PastDays, set.Fill.FutureDays = "climatology", 3, 2
	set.DailySkill, set.EmptyDays = false, work.SkipEmptyDays
	w := world(t, 24, 32)
	return &rolling{bench: b, world: w, days: firstVersions(w, days), now: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
}

// deliver puts the granules of some days into the archive.
func (r *rolling) deliver(t *testing.T, days ...int) {
	t.Helper()
	for _, i := range days {
		put(t, r.archive(), r.world.Granule(r.days[i]))
	}
}

// pass moves the clock and makes a pass.
func (r *rolling) pass(t *testing.T, later time.Duration) work.Summary {
	t.Helper()
	r.now = r.now.Add(later)
	d := r.daemon(t)
	d.parts.Now = func() time.Time { return r.now }
	s, err := d.Once(t.Context())
	if err != nil {
		t.Fatalf("Once() = %v\n%s", err, r.log)
	}
	return s
}

// revisions returns the revisions of the product of each day with their modes.
func (r *rolling) revisions(t *testing.T) map[int]string {
	t.Helper()
	all, err := r.book(t).Publications(t.Context(), "sea", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	byDay := map[int]string{}
	for _, p := range all {
		product := outbox.Delivery(ledger.Delivery{Publication: p}).Product
		for i, d := range r.days {
			if d.Name == p.Granule {
				byDay[i] += fmt.Sprintf("%d %s over %d; ", p.Revision, product.Mode, product.Supersedes)
			}
		}
	}
	return byDay
}

const nrt1, late1 = "1 near-real-time over 0; ", "1 delayed over 0; "

func TestDelayedRevisionFollowsWhenTheWindowEndsOrHasSettled(t *testing.T) {
	oneByOne(t)
	r := newRolling(t, 6)
	r.cfg.Datasets[0].Reanalysis.LeastChange = 0 // any change is published
	for i := range 5 {                           // a granule a day
		r.deliver(t, i)
		want := 1
		if i >= 2 {
			want = 2
		}
		if s := r.pass(t, 24*time.Hour); s.Products != want {
			t.Fatalf("day %d made %d products, want its own and that of the day whose window it ends: %d", i, s.Products, want)
		}
	}
	got := r.revisions(t)
	for i := range 5 {
		want := nrt1
		if i < 3 { // two days ahead have come
			want += "2 delayed over 1; "
		}
		if got[i] != want {
			t.Errorf("day %d has %q, want %q", i, got[i], want)
		}
	}
	plan, err := r.planned(t)
	if err != nil || len(plan.Reanalyse) != 1 || !strings.Contains(plan.Reanalyse[0].Why, r.days[4].Name) {
		t.Errorf("plan: %+v, %v, want day 3, which saw one of two days come", plan.Reanalyse, err)
	}
	if s := r.pass(t, 48*time.Hour); s.Products != 1 {
		t.Errorf("after the settle time %d products were made anew, want that of day 3", s.Products)
	}
	if s := r.pass(t, 48*time.Hour); s != (work.Summary{}) {
		t.Errorf("then %+v, want nothing: a revision of a product is no neighbour", s)
	}
	file := read(t, r.fileOf(t, 2), "CHL")
	for _, want := range []int{0, 1, 3, 4} {
		if !mentions(file, r.days[want].Name) {
			t.Errorf("the delayed product of day 2 does not name day %d among its inputs", want)
		}
	}
}

// One pass over a finished archive makes every product once, with the days after
// it, and leaves nothing to be made again.
func TestAFinishedArchiveIsMadeOnceWithTheDaysThatFollow(t *testing.T) {
	oneByOne(t)
	r := newRolling(t, 6)
	r.deliver(t, 0, 1, 2, 3, 4, 5)
	if s := r.pass(t, 0); s.Products != 6 {
		t.Fatalf("%d products, want 6\n%s", s.Products, r.log)
	}
	got := r.revisions(t)
	for i := range 5 {
		if got[i] != late1 {
			t.Errorf("day %d has %q, want one product that saw the days after it", i, got[i])
		}
		file := read(t, r.fileOf(t, i), "CHL")
		for j := range r.days {
			away := r.days[j].Day - r.days[i].Day
			if mentions(file, r.days[j].Name) != (away >= -3 && away <= 2) {
				t.Errorf("day %d has day %d among its inputs, or lacks it, against its window", i, j)
			}
		}
	}
	if got[5] != nrt1 {
		t.Errorf("the last day has %q", got[5])
	}
	if plan, err := r.planned(t); err != nil || len(plan.Reanalyse) != 0 {
		t.Errorf("to be looked at again: %+v, %v, want nothing", plan.Reanalyse, err)
	}
}

func (r *rolling) planned(t *testing.T) (operate.Plan, error) {
	t.Helper()
	d := r.daemon(t)
	d.parts.Now = func() time.Time { return r.now }
	return d.Station().Plan(t.Context(), "")
}

// fileOf returns the visible file of a day's product.
func (r *rolling) fileOf(t *testing.T, i int) string {
	t.Helper()
	p, ok, err := r.book(t).Current(t.Context(), "sea", r.days[i].Name)
	if err != nil || !ok {
		t.Fatalf("day %d has no product: %v", i, err)
	}
	return p.File
}

// mentions reports whether an attribute of a product holds text.
func mentions(g ingest.Granule, text string) bool {
	for _, a := range g.Source.Attrs {
		if value, ok := a.Value.(string); ok && strings.Contains(value, text) {
			return true
		}
	}
	return false
}

func TestLateGranuleReopensTheProductsAroundIt(t *testing.T) {
	skipInShort(t)
	r := newRolling(t, 9)
	r.cfg.Datasets[0].Reanalysis.LeastChange = 0
	r.deliver(t, 0, 1, 2, 4, 5, 6, 7, 8)
	r.pass(t, 0)
	r.pass(t, 40*time.Hour) // longer than settle after the last neighbour
	before := r.revisions(t)
	r.deliver(t, 3)
	if s := r.pass(t, time.Hour); s.Products != 2 {
		t.Errorf("the late granule made %d products at once, want its own and that of the day whose window it ends", s.Products)
	}
	if got := r.revisions(t)[3]; got != late1 {
		t.Errorf("the late granule's own product is %q: later days were there already", got)
	}
	r.pass(t, 40*time.Hour)
	after := r.revisions(t)
	for i := range r.days {
		away := r.days[i].Day - r.days[3].Day
		concerned := away >= -2 && away <= 3 // the window is three days back and two ahead
		if revised := after[i] != before[i]; revised != concerned && i != 3 {
			t.Errorf("day %d: %q became %q", i, before[i], after[i])
		}
	}
	rs, err := r.book(t).Reopenings(t.Context(), ledger.ReopeningQuery{Dataset: "sea", Granule: r.days[5].Name})
	if err != nil || rs[0].Outcome != ledger.Revised || !strings.Contains(rs[0].Why, r.days[3].Name) {
		t.Errorf("the story of day 5: %+v, %v", rs, err)
	}
}

func TestProductThatDoesNotMoveIsNotPublishedAnew(t *testing.T) {
	skipInShort(t)
	r := newRolling(t, 4)
	r.cfg.Datasets[0].Fill.Method = "persistence" // its values use earlier days only, but its sigma uses all neighbours
	for i := range 4 {
		r.deliver(t, i)
		if s := r.pass(t, time.Hour); s.Products != 1 {
			t.Errorf("day %d made %d products, want its own", i, s.Products)
		}
	}
	if s := r.pass(t, 40*time.Hour); s != (work.Summary{}) {
		t.Errorf("the second pass did %+v, want nothing published", s)
	}
	rs, err := r.book(t).Reopenings(t.Context(), ledger.ReopeningQuery{Dataset: "sea"})
	if err != nil || len(rs) != 3 {
		t.Fatalf("reopened: %+v, %v, want days 0 to 2", rs, err)
	}
	for _, o := range rs {
		if o.Outcome != ledger.Unchanged || o.Change <= 0 || o.Change >= 0.25 {
			t.Errorf("%s: %+v, want it unchanged but for noise", o.Granule, o)
		}
	}
	for i, got := range r.revisions(t) {
		if got != nrt1 {
			t.Errorf("day %d has %q", i, got)
		}
	}
}

// A crash between the decision to revise and the product leaves a revision that
// the next pass finishes.
func TestBrokenOffRevisionIsFinished(t *testing.T) {
	skipInShort(t)
	r := newRolling(t, 3)
	r.deliver(t, 0, 1, 2)
	r.pass(t, 0)
	book := r.book(t)
	if _, err := book.Revise(t.Context(), ledger.Revision{Dataset: "sea", Granule: r.days[0].Name, Cause: ledger.Reanalysis, Why: "crash"}, r.now); err != nil {
		t.Fatal(err)
	}
	plan, err := r.planned(t)
	if err != nil || len(plan.Fill) != 1 || plan.Fill[0].Why != "crash" {
		t.Errorf("plan: %+v, %v", plan.Fill, err)
	}
	if s := r.pass(t, time.Hour); s.Products != 1 {
		t.Errorf("the next pass made %d products, want 1", s.Products)
	}
	if got := r.revisions(t)[0]; got != late1+"2 delayed over 1; " {
		t.Errorf("day 0 has %q", got)
	}
}

// firstStep is a ledger and a reader that note which task a worker takes up, and
// stop it there.
type firstStep struct {
	*ledger.Ledger
	stop func()
	took string
}

func (f *firstStep) LastGood(ctx context.Context, _, granule string) (ledger.Granule, bool, error) {
	f.took = "reopened product of " + granule
	f.stop()
	return ledger.Granule{}, false, ctx.Err()
}

func (f *firstStep) Read(ctx context.Context, path string, _ ingest.Options) (ingest.Granule, error) {
	f.took = "granule in " + path
	f.stop()
	return ingest.Granule{}, ctx.Err()
}

func (f *firstStep) ReadSea(context.Context, string, field.Grid) (field.Mask, error) {
	panic("no granule was read")
}

// A granule of today is filled before a thousand of the past, and before reopened
// products.
func TestWorkerTakesTheLiveLaneFirst(t *testing.T) {
	r := newRolling(t, 4)
	for i := range 2 {
		r.deliver(t, i)
		r.pass(t, 0)
	}
	r.deliver(t, 2, 3)
	if _, err := r.daemon(t).Station().Fetch(t.Context(), operate.Fetch{Backfill: true}); err != nil {
		t.Fatal(err)
	}
	book := r.book(t)
	d := r.daemon(t)
	next := func() string {
		ctx, stop := context.WithCancel(t.Context())
		first := &firstStep{Ledger: book, stop: stop}
		w := work.New(d.cfg.Datasets[0].work(), d.cfg.work(), work.Parts{
			Books: first, Reader: first, Log: d.log, Now: func() time.Time { return r.now.Add(100 * time.Hour) },
		})
		if _, err := w.WorkOff(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("WorkOff() = %v, want it stopped at its first step", err)
		}
		return first.took
	}
	if got, want := next(), "reopened product of "+r.days[0].Name; got != want {
		t.Errorf("first is %q, want %q: it is live, the granules are of the backfill", got, want)
	}
	a := ledger.Arrival{Object: ledger.Object{Dataset: "sea", Name: "z.nc"}, SHA256: "z", SpoolPath: "z", Lane: ledger.Live}
	if _, _, err := book.Arrive(t.Context(), a, r.now); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "granule in z" {
		t.Errorf("then %q, want the live granule", got)
	}
}

// The products of a backfill are made once, with all their neighbours, and not
// again.
func TestBackfillIsMadeOnceWithTheDaysThatFollow(t *testing.T) {
	skipInShort(t)
	r := newRolling(t, 7)
	r.deliver(t, 0, 1, 2, 3, 4, 5, 6)
	if _, err := r.daemon(t).Station().Fetch(t.Context(), operate.Fetch{Backfill: true}); err != nil {
		t.Fatal(err)
	}
	if s := r.pass(t, 0); s.Products != 7 {
		t.Fatalf("%d products, want 7\n%s", s.Products, r.log)
	}
	got := r.revisions(t)
	for i := range 6 {
		if got[i] != late1 {
			t.Errorf("day %d has %q, want a product that saw the days after it", i, got[i])
		}
	}
	if got[6] != nrt1 {
		t.Errorf("the last day has %q", got[6])
	}
	if plan, err := r.planned(t); err != nil || len(plan.Reanalyse) != 0 {
		t.Errorf("to be looked at again: %+v, %v, want nothing", plan.Reanalyse, err)
	}
}

func TestModeSaysWhatAProductSaw(t *testing.T) {
	if publish.Delayed != netcdf.Delayed || publish.NearRealTime != netcdf.NearRealTime {
		t.Error("the modes of packages publish and netcdf differ")
	}
}
