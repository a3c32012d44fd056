package daemon

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill/filltest"
	"lacuna/daemon/operate"
	"lacuna/daemon/outbox"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/infer"
)

// newReprocessing returns a bench with a store and the products of some days, filled
// by interpolation, and the first and last day.
func newReprocessing(t *testing.T, days int) (b *bench, store *modelstore.Store, from, to time.Time) {
	t.Helper()
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	b = newBench(t)
	set := b.plain()
	set.Name, set.Fill.Method, set.Fill.Network.Tier = "chl", "auto", infer.Fast // who made a product is asked, not how well
	b.cfg.Train.Store, b.cfg.Train.Engine = filepath.Join(t.TempDir(), "store"), "ort"
	w := world(t, 16, 24)
	deliveries := firstVersions(w, days)
	for _, d := range deliveries {
		put(t, b.archive(), w.Granule(d))
	}
	b.once(t)
	day := func(i int) time.Time { return w.Granule(deliveries[i]).Seen.Time.UTC().Truncate(24 * time.Hour) }
	return b, modelstore.New(b.cfg.Train.Store, time.Now), day(0), day(days - 1)
}

// promoteAnother makes a version of random weights champion, one for each seed.
func promoteAnother(t *testing.T, store *modelstore.Store, seed uint64) string {
	t.Helper()
	files := filltest.UntrainedFiles(t, seed)
	delete(files, modelstore.ScalingFile) // fields are scaled by the days around them
	return filltest.Promote(t, store, files)
}

// current returns the newest revision of each product that holds, by granule.
func (b *bench) current(t *testing.T) map[string]ledger.Publication {
	t.Helper()
	book := b.book(t)
	defer book.Close()
	all, err := book.Publications(t.Context(), "chl", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	holds := map[string]ledger.Publication{}
	for _, p := range all {
		if p.Retracted.IsZero() && p.Revision > holds[p.Granule].Revision {
			holds[p.Granule] = p
		}
	}
	return holds
}

// filledBy returns the model that a product was filled by.
func filledBy(p ledger.Publication) string {
	return outbox.Delivery(ledger.Delivery{Publication: p}).Product.Model
}

// Each product is superseded once by the champion, with the reason; one that was
// retracted stays so, and the same request again makes none twice.
func TestProductsAreMadeAgainByTheChampion(t *testing.T) {
	skipInShort(t)
	b, store, from, to := newReprocessing(t, 8)
	station := b.daemon(t).Station()
	if _, err := station.ChampionOf("chl"); !errors.Is(err, operate.ErrNoChampion) {
		t.Fatalf("ChampionOf() = %v without one", err)
	}
	champion := promoteAnother(t, store, 1)
	before := b.current(t)
	var withdrawn string
	for name := range before {
		withdrawn = name
		break
	}
	book := b.book(t)
	if _, err := book.QueueRetraction(t.Context(), ledger.Retraction{Dataset: "chl", Granule: withdrawn, Why: "a test"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	book.Close()

	ask := operate.Backfill{Dataset: "chl", From: from, To: to, Again: true, Model: champion}
	estimate, err := station.EstimateBackfill(t.Context(), ask, 0)
	if err != nil || estimate.Products != len(before)-1 || estimate.Measured == 0 || estimate.Seconds <= 0 {
		t.Errorf("EstimateBackfill() = %+v, %v, want %d products and a time", estimate, err, len(before)-1)
	}
	if ask, err = station.AskBackfill(ask); err != nil {
		t.Fatal(err)
	}
	news, err := b.daemon(t).Backfill(t.Context(), ask, func(operate.BackfillNews) {})
	if err != nil || !news.Done || news.Waiting != 0 {
		t.Fatalf("Backfill() = %+v, %v\n%s", news, err, b.log)
	}
	after := b.current(t)
	for name, was := range before {
		p := after[name]
		switch {
		case name == withdrawn:
			if p.Revision != 0 {
				t.Errorf("the retracted product of %s is back as revision %d", name, p.Revision)
			}
		case p.Revision != was.Revision+1 || filledBy(p) != champion:
			t.Errorf("%s went from revision %d by %s to %d by %s, want the next by %s", name, was.Revision, filledBy(was), p.Revision, filledBy(p), champion)
		}
	}
	b.operate(t, func(o *operate.Operations) error {
		for name := range before {
			if name == withdrawn {
				continue
			}
			stories, err := o.Why(t.Context(), name, "")
			text := ""
			for _, line := range stories[0].Lines {
				text += line.Text + "\n"
			}
			if err != nil || !strings.Contains(text, "made again, in the backfill lane: reprocessing of") || !strings.Contains(text, champion) {
				t.Errorf("Why() = %s, %v", text, err)
			}
			return nil
		}
		return nil
	})

	// A crash after the last revision was asked for and before the request was
	// removed: the same request is taken up once more.
	if err := state.Save(b.cfg.state().Backfill("chl"), ask); err != nil {
		t.Fatal(err)
	}
	if _, err := b.daemon(t).Backfill(t.Context(), ask, func(operate.BackfillNews) {}); err != nil {
		t.Fatal(err)
	}
	for name, p := range b.current(t) {
		if p.Revision != after[name].Revision {
			t.Errorf("%s was made twice: revision %d after %d", name, p.Revision, after[name].Revision)
		}
	}
}

// A daemon whose rule says so makes the last days again when a version is promoted,
// rests while it is told to, fills what is live meanwhile, and starts over for the
// next champion.
func TestAPromotionHasTheLastDaysMadeAgain(t *testing.T) {
	skipInShort(t)
	b, store, _, to := newReprocessing(t, 8)
	b.cfg.Train.ReprocessDays = 4
	within := map[string]bool{}
	for name, p := range b.current(t) {
		within[name] = !p.Time.Before(to.AddDate(0, 0, -3))
	}
	stop := start(t, b.daemon(t))
	defer stop()
	noted := b.cfg.state().Champion("chl")
	until(t, "the rule has looked", func() bool { return exists(noted) })
	station := b.daemon(t).Station()
	if err := station.PauseBackfill("chl", true); err != nil {
		t.Fatal(err)
	}
	first := promoteAnother(t, store, 1)
	until(t, "the rule has asked", func() bool { return exists(b.cfg.state().Backfill("chl")) })
	w := world(t, 16, 24)
	live := firstVersions(w, 9)[8]
	put(t, b.archive(), w.Granule(live))
	until(t, "what is live is filled beside a backfill that rests", func() bool { return filledBy(b.current(t)[live.Name]) == first })
	for name, p := range b.current(t) {
		if name != live.Name && p.Revision != 1 {
			t.Errorf("%s was made again while the backfill rests", name)
		}
	}

	second := promoteAnother(t, store, 2)
	if err := station.PauseBackfill("chl", false); err != nil {
		t.Fatal(err)
	}
	until(t, "the last days are of the second champion", func() bool {
		for name, p := range b.current(t) {
			if within[name] && filledBy(p) != second {
				return false
			}
		}
		return !exists(b.cfg.state().Backfill("chl"))
	})
	for name, p := range b.current(t) {
		if known, last := within[name]; known && !last && p.Revision != 1 {
			t.Errorf("%s of %s is older than the rule says and was made again", name, p.Time.Format(time.DateOnly))
		}
	}
}
