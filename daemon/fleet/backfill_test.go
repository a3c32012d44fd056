package fleet

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"lacuna/daemon/operate"
	"lacuna/ledger"
	"lacuna/pipeline/simulate"

	"github.com/twmb/franz-go/pkg/kfake"
)

// A backfill without a daemon is coordinated by the command itself: workers fill all of
// its days, more are fetched before the first are filled, and a rate holds it back.
func TestWorkersFillABackfillAheadAndAtItsRate(t *testing.T) {
	if testing.Short() {
		t.Skip("fills many days")
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "100"}))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	const days, anHour = operate.BackfillDays + 14, 36_000 // ten a second
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 8, Width: 12, Days: days, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := newSea(t, w, 0)
	s.cfg.Datasets[0].Archive.Lookback = 48 * time.Hour // the simulated days are years ago: nothing is live
	granules := 0
	for _, d := range w.Schedule() {
		if g := w.Granule(d); d.Revision == 1 && g.Seen.ObservedMask().Count() > 0 {
			put(t, s.cfg.Datasets[0].Archive.Dir, g)
			granules++
		}
	}
	byWorkers(&s.cfg, "backfill", cluster.ListenAddrs())
	defer s.startWorkers(t, 2)()
	d, err := newDaemon(s.cfg, slog.New(slog.NewTextHandler(&s.log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	station := d.Station()
	first := time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)
	ask, err := station.AskBackfill(operate.Backfill{Dataset: "sea", From: first, To: first.AddDate(0, 0, days-1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := station.SetBackfillRate("sea", anHour); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	news, err := d.Backfill(t.Context(), ask, func(n operate.BackfillNews) {
		if n.Most != anHour {
			t.Errorf("the news have the rate %g", n.Most)
		}
	})
	took := time.Since(began)
	if err != nil || !news.Done || news.Products != granules || news.Waiting != 0 || news.SetAside != 0 {
		t.Fatalf("%+v, %v, want %d products\n%s", news, err, granules, s.log.String())
	}
	if least := time.Duration(granules-1) * time.Hour / anHour; took < least {
		t.Errorf("%d products in %v, at ten a second", granules, took)
	}
	if done, _ := filepath.Glob(filepath.Join(s.cfg.StateDir, "shared", "done", "*", "*.json")); len(done) < granules {
		t.Errorf("%d jobs of %d granules", len(done), granules)
	}
	if rate := station.BackfillRate("sea"); rate != 0 {
		t.Errorf("the rate %g outlasts its backfill", rate)
	}
	wantFetchedAhead(t, stateOf(s.cfg).Ledger(), first)
}

// wantFetchedAhead checks that days after the first 31 were fetched before those were
// all filled.
func wantFetchedAhead(t *testing.T, path string, first time.Time) {
	t.Helper()
	book, err := ledger.Join(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	all, err := book.Publications(t.Context(), "sea", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := book.Recent(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	next := first.AddDate(0, 0, operate.BackfillDays)
	var stored, fetched time.Time // of the last product of the first days, and of the first granule after them
	for _, p := range all {
		for _, g := range rows {
			if g.Name == p.Granule && g.First.Before(next) && p.Stored.After(stored) {
				stored = p.Stored
			}
		}
	}
	for _, g := range rows {
		if !g.First.Before(next) && (fetched.IsZero() || g.Recorded.Before(fetched)) {
			fetched = g.Recorded
		}
	}
	if fetched.IsZero() || fetched.After(stored) {
		t.Errorf("the next days were fetched at %v, when the first were filled at %v", fetched, stored)
	}
}
