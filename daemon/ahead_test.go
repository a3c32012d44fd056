package daemon

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/daemon/operate"
	"lacuna/daemon/outbox"
	"lacuna/daemon/slots"
	"lacuna/daemon/work"
	"lacuna/fetch"
	"lacuna/ledger"
)

// countedFleet counts the jobs that are under way.
type countedFleet struct {
	work.Fleet
	mu             sync.Mutex
	now, most, all int
}

func (f *countedFleet) Send(ctx context.Context, m jobs.Message, live bool, answer func(jobs.Result)) error {
	count := func(n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now += n
		f.most, f.all = max(f.most, f.now), f.all+max(n, 0)
	}
	count(1)
	return f.Fleet.Send(ctx, m, live, func(r jobs.Result) {
		count(-1)
		answer(r)
	})
}

// backlog is a worker with granules of the backfill lane, and a clock that stands.
type backlog struct {
	*bench
	worker *work.Worker
	intake interface {
		Sync(ctx context.Context, days fetch.Days, progress fetch.Progress) (fetch.Summary, error)
	}
	book  *ledger.Ledger
	turns *slots.Slots // of what is filled beside the worker
	fleet *countedFleet
	names []string
}

// newBacklog asks for the first days of a sea; what lies in the archive besides is live.
func newBacklog(t *testing.T, days int) *backlog {
	t.Helper()
	b := newBench(t)
	set := b.plain()
	set.Fill.Method, set.Fill.PastDays, set.Fill.FutureDays = "oi", 3, 2
	set.Archive.Lookback, set.EmptyDays = 48*time.Hour, work.SkipEmptyDays
	w := world(t, 24, 32)
	deliveries := firstVersions(w, days)
	published := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &backlog{bench: b, turns: slots.New(2)}
	for _, d := range deliveries {
		put(t, b.archive(), w.Granule(d))
		if err := os.Chtimes(filepath.Join(b.archive(), d.Name), published, published); err != nil {
			t.Fatal(err)
		}
		l.names = append(l.names, d.Name)
	}
	d := b.daemon(t)
	now := published.AddDate(1, 0, 0)
	d.parts.Now = func() time.Time { return now }
	var err error
	if l.book, err = d.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := d.openOutbox(t.Context(), l.book)
	if err != nil {
		t.Fatal(err)
	}
	renewal := d.openRenewal(l.book)
	t.Cleanup(func() {
		renewal.close()
		out.Close()
		d.books().Close(context.Background(), l.book)
	})
	worker, in, err := d.dataset(*set, shared{book: l.book, out: out, renewal: renewal, beside: l.turns})
	if err != nil {
		t.Fatal(err)
	}
	l.worker, l.intake, l.fleet = worker, in, &countedFleet{Fleet: worker.Remote.Fleet}
	worker.Remote.Fleet = l.fleet
	day := func(i int) time.Time { return w.Granule(deliveries[i]).Seen.Time.UTC().Truncate(24 * time.Hour) }
	ask, err := d.Station().AskBackfill(operate.Backfill{Dataset: "sea", From: day(0), To: day(days - 1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Station().BackfillChunk(t.Context(), &ask, l.book); err != nil {
		t.Fatal(err)
	}
	return l
}

// products returns the hashes of the products by granule. Each granule has one.
func (l *backlog) products(t *testing.T) map[string]string {
	t.Helper()
	all, err := l.book.Publications(t.Context(), "sea", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, p := range all {
		if _, twice := sums[p.Granule]; twice || p.Revision != 1 {
			t.Errorf("%s has another product, revision %d", p.Granule, p.Revision)
		}
		sums[p.Granule] = outbox.Delivery(ledger.Delivery{Publication: p}).Product.SHA256
	}
	return sums
}

// wantTidy asserts that no file of an unfinished product is left.
func (l *backlog) wantTidy(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(l.cfg.ProductsDir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".put-") {
			t.Errorf("%s was left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What is filled beside the worker is what it would have filled itself, to the last
// byte, and several are under way at a time.
func TestABackfillIsTheSameBesideTheWorker(t *testing.T) {
	const days = 9
	beside, inTurn := newBacklog(t, days), newBacklog(t, days)
	inTurn.worker.Remote = nil
	var sums [2]map[string]string
	for i, l := range []*backlog{beside, inTurn} {
		if s, err := l.worker.WorkOff(t.Context()); err != nil || s.Products != days || s.Unfinished != 0 {
			t.Fatalf("WorkOff() = %+v, %v, want %d products\n%s", s, err, days, l.log)
		}
		sums[i] = l.products(t)
		l.wantTidy(t)
	}
	if beside.fleet.all != days || beside.fleet.most < 2 || beside.fleet.most > jobs.InFlight {
		t.Errorf("%d jobs, %d at a time", beside.fleet.all, beside.fleet.most)
	}
	for _, name := range beside.names {
		if sums[0][name] == "" || sums[0][name] != sums[1][name] {
			t.Errorf("%s is %q beside the worker and %q in turn", name, sums[0][name], sums[1][name])
		}
	}
}

// A live granule is filled at once: what is filled beside the worker is dropped for it,
// and filled afterwards.
func TestALiveGranuleDoesNotWaitForABackfill(t *testing.T) {
	const days = 4
	l := newBacklog(t, days)
	held, release := make(chan struct{}), make(chan struct{})
	go func() { // nothing beside the worker gets a turn
		_ = l.turns.Within(context.Background(), false, func() error { close(held); <-release; return nil })
	}()
	<-held
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	arrive, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- l.worker.Run(ctx, ctx, func(ctx context.Context, came chan<- fetch.Granule) error {
			defer close(came)
			<-arrive
			if _, err := l.intake.Sync(ctx, fetch.Days{}, nil); err != nil {
				return err
			}
			came <- fetch.Granule{}
			<-ctx.Done()
			return nil
		})
	}()
	under := func() int {
		l.fleet.mu.Lock()
		defer l.fleet.mu.Unlock()
		return l.fleet.all
	}
	until(t, "jobs are under way", func() bool { return under() == jobs.InFlight })
	if len(l.products(t)) != 0 {
		t.Fatal("a product without a turn")
	}
	// The archive's files are new as of now: one of today is within the lookback.
	w := world(t, 24, 32)
	deliveries := firstVersions(w, days+1)
	live := w.Granule(deliveries[days]).At(time.Date(2025, 12, 31, 12, 0, 0, 0, time.UTC))
	put(t, l.archive(), live)
	close(arrive)
	until(t, "the live granule has its product", func() bool { return len(l.products(t)) == 1 })
	for name := range l.products(t) {
		for _, older := range l.names {
			if name == older {
				t.Errorf("%s of the backfill was filled, and it has no turn", name)
			}
		}
	}
	close(release)
	until(t, "the backfill is done", func() bool { return len(l.products(t)) == days+1 })
	stop()
	if err := <-ended; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	if got := under(); got <= days {
		t.Errorf("%d jobs were sent for %d granules: none was dropped", got, days)
	}
	l.wantTidy(t)
}

// A product that cannot be written stays to be done, and nothing of it is left behind.
func TestAJobBesideTheWorkerThatFailsIsTriedAgain(t *testing.T) {
	const days = 3
	l := newBacklog(t, days)
	folder := filepath.Join(l.cfg.ProductsDir, "sea")
	if err := os.MkdirAll(l.cfg.ProductsDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := l.worker.WorkOff(t.Context()); err == nil || s.Products != 0 || s.Unfinished != days {
		t.Fatalf("WorkOff() = %+v, %v with a file in the way", s, err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if s, err := l.worker.WorkOff(t.Context()); err != nil || s.Products != days {
		t.Fatalf("WorkOff() = %+v, %v when it is gone", s, err)
	}
	if got := l.products(t); len(got) != days {
		t.Errorf("products of %v", got)
	}
	l.wantTidy(t)
}

// owing are trainings that have their turn until they are paid.
type owing struct {
	paid            chan struct{}
	mu              sync.Mutex
	urgent, patient int // holds so far
}

func (o *owing) count(n *int) func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	*n++
	return func() {}
}

func (o *owing) Hold() (release func()) { return o.count(&o.urgent) }

func (o *owing) HoldInTurn() (release func()) { return o.count(&o.patient) }

func (o *owing) Owed() time.Duration {
	select {
	case <-o.paid:
		return 0
	default:
		return 50 * time.Millisecond
	}
}

// While it is the turn of a training a backfill waits, and a live granule does not.
func TestABackfillWaitsForTheTurnOfATrainingAndALiveGranuleDoesNot(t *testing.T) {
	const days = 3
	l := newBacklog(t, days)
	trainings := &owing{paid: make(chan struct{})}
	l.worker.Trainings = trainings
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	arrive, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- l.worker.Run(ctx, ctx, func(ctx context.Context, came chan<- fetch.Granule) error {
			defer close(came)
			<-arrive
			if _, err := l.intake.Sync(ctx, fetch.Days{}, nil); err != nil {
				return err
			}
			came <- fetch.Granule{}
			<-ctx.Done()
			return nil
		})
	}()
	time.Sleep(300 * time.Millisecond)
	if len(l.products(t)) != 0 {
		t.Fatalf("%d products in the turn of a training", len(l.products(t)))
	}
	live := world(t, 24, 32).Granule(firstVersions(world(t, 24, 32), days+1)[days]).At(time.Date(2025, 12, 31, 12, 0, 0, 0, time.UTC))
	put(t, l.archive(), live)
	close(arrive)
	until(t, "the live granule has its product", func() bool { return len(l.products(t)) == 1 })
	for _, older := range l.names {
		if l.products(t)[older] != "" {
			t.Errorf("%s of the backfill was filled in the turn of a training", older)
		}
	}
	close(trainings.paid)
	until(t, "the backfill is done", func() bool { return len(l.products(t)) == days+1 })
	stop()
	if err := <-ended; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	if trainings.urgent != 1 || trainings.patient < days {
		t.Errorf("trainings were paused %d times for what is urgent and %d times for what can wait, want 1 and at least %d", trainings.urgent, trainings.patient, days)
	}
}
