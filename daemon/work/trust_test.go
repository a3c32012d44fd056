package work

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/fill/filltest"
	"lacuna/daemon/jobs"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/skill"
)

// dayBook is a ledger of granules that were all read.
type dayBook struct {
	Books
	days []ingest.Granule
}

func (b dayBook) Window(_ context.Context, _ string, from, to time.Time) ([]ledger.Granule, error) {
	var rows []ledger.Granule
	for _, g := range b.days {
		if at := g.Fields[0].Time; !at.Before(from) && !at.After(to) {
			rows = append(rows, ledger.Granule{Arrival: ledger.Arrival{SHA256: g.SHA256}, First: at, Last: at})
		}
	}
	return rows, nil
}

func (b dayBook) CountTimes(context.Context, string) (int, error) { return len(b.days), nil }

func (b dayBook) LatestTimes(_ context.Context, _ string, n int) ([]time.Time, error) {
	var times []time.Time
	for _, g := range slices.Backward(b.days) {
		times = append(times, g.Fields[0].Time)
	}
	if n < 0 {
		return times, nil
	}
	return times[:min(n, len(times))], nil
}

// starterWorker returns a worker whose dataset has only a starter of random
// weights, with days that it knows and a state of its own.
func starterWorker(t *testing.T, n int) (*Worker, []ingest.Granule, field.Mask) {
	t.Helper()
	w := newTestWorker(t)
	world, days := someDays(t, w, n)
	device := enginetest.Open(t)
	models := fill.NewModels(fill.ModelParts{
		Starters: []*modelstore.Version{filltest.Starter(t, "CHL", "log10")}, Log: slog.New(slog.DiscardHandler),
		Open: func() (infer.Device, error) { return infer.Device{Backend: device}, nil },
	})
	t.Cleanup(models.Close)
	w.Models, w.cfg.State, w.set.Fill.Method, w.set.Fill.Step = models, state.Dir(t.TempDir()), infer.MethodAuto, 24*time.Hour
	w.know(days)
	return w, days, world.Sea()
}

// know replaces the granules that the worker knows.
func (w *Worker) know(days []ingest.Granule) {
	w.Books = dayBook{days: days}
	clear(w.decoded)
	for _, g := range days {
		w.decoded[g.SHA256] = g
	}
}

// keep writes a file of the state.
func keepState(t *testing.T, file string, v any) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := state.Save(file, v); err != nil {
		t.Fatal(err)
	}
}

// A starter of random weights is harmful: however many days are scored, products
// stay those of optimal interpolation, and what is scored is kept for both.
func TestAHarmfulStarterIsNeverFollowed(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	w, days, sea := starterWorker(t, 26)
	w.set.Fill.OI = infer.OI{LengthKM: 50, Days: 5, Nugget: 0.1} // tuned ones would be those of another method
	for at := 11; at < len(days)-1; at++ {
		g := ledger.Granule{Arrival: ledger.Arrival{SHA256: days[at].SHA256}, Revision: 1}
		if _, err := w.scoreOverlay(t.Context(), g, scene{granule: days[at], history: days, sea: sea}); err != nil && !strings.Contains(err.Error(), "no day around") {
			t.Fatal(err)
		}
	}
	last := len(days) - 1
	job := fill.Job{Dataset: "sea", Granule: days[last], History: days[:last], Sea: sea, Fill: w.set.Fill}
	outcome, done, err := w.analyse(t.Context(), job)
	if err != nil || done.Trust == nil {
		t.Fatalf("no starter was at hand: %v", err)
	}
	p := outcome.Product
	if done.Trust.Days < skill.TrustDays || done.Trust.Weight != 0 || p.Model != "oi" || p.Trust == nil || p.Trust.Days != done.Trust.Days || !strings.HasPrefix(p.Trust.Model, "starter-chl-") {
		t.Errorf("after %d scored days the weight is %g, and the product is of %s with %+v", done.Trust.Days, done.Trust.Weight, p.Model, p.Trust)
	}
	departed := 0.0
	for _, d := range w.evidence().of(done.Model.Name()).Departures {
		departed += d.DD
	}
	if departed == 0 {
		t.Error("the starter did not depart: nothing was tested")
	}
	job.Fill.Method = "oi"
	plain, _, err := w.analyse(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(plain.Analyses[0].Value, outcome.Analyses[0].Value, sameFloat) || !slices.EqualFunc(plain.Analyses[0].Sigma, outcome.Analyses[0].Sigma, sameFloat) {
		t.Error("the product is not that of optimal interpolation, to the bit")
	}
	if plain.Scored == 0 || plain.Scored != outcome.Scored {
		t.Errorf("interpolation is calibrated by %d scored days, beside the starter by %d", plain.Scored, outcome.Scored)
	}
}

func sameFloat(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// Days that show the way of a model to be right outlast a restart, hold for that
// version only, and for products after them.
func TestScoredDaysMakeAStarterFollowed(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	w, days, sea := starterWorker(t, 16)
	last := len(days) - 1
	at := func(i int) fill.Job {
		return fill.Job{Dataset: "sea", Granule: days[i], History: days[:i], Sea: sea, Fill: w.set.Fill}
	}
	_, done, err := w.analyse(t.Context(), at(last))
	if err != nil || done.Trust == nil || done.Trust.Weight != 0 {
		t.Fatalf("without scored days the trust is %+v, %v", done.Trust, err)
	}
	for d := range 2 * skill.TrustDays {
		day := days[last].Fields[0].Time.AddDate(0, 0, -1-d)
		if err := w.keepScored(scored{job: done, day: skill.ScoredDay{Day: day}, departure: &skill.Departure{Day: day, DE: 0.4, DD: 1, Cells: 9}}); err != nil {
			t.Fatal(err)
		}
	}
	again := New(w.set, w.cfg, w.Parts) // after a restart
	again.know(days)
	outcome, done, err := again.analyse(t.Context(), at(last))
	if err != nil || done.Trust == nil || math.Abs(done.Trust.Weight-0.4) > 1e-9 || done.Trust.Days != 2*skill.TrustDays {
		t.Fatalf("twenty days that are right for 0.4 of the way make %+v, %v", done.Trust, err)
	}
	p := outcome.Product
	if p.Model != done.Model.Name() || p.Trust == nil || p.Trust.Weight != done.Trust.Weight || !strings.Contains(p.Method, "0.40 of the way") {
		t.Errorf("the product says %q of model %s, %+v", p.Method, p.Model, p.Trust)
	}
	if text := jobs.Describe(days[last], outcome).Trust.String(); text != ", followed to 0.40 of its way from optimal interpolation, from 20 scored days" {
		t.Errorf("receivers are told %q", text)
	}
	if _, before, err := again.analyse(t.Context(), at(last-5)); err != nil || before.Trust == nil || before.Trust.Days != 2*skill.TrustDays-5 {
		t.Errorf("five days before, the trust is %+v (%v): later days had a part", before.Trust, err)
	}
	// The evidence is of one version, and what is known of it elsewhere counts too.
	if kept := again.evidence().of("starter-chl-another"); len(kept.Departures) > 0 {
		t.Errorf("another version begins with %d scored days", len(kept.Departures))
	}
	few := fill.Choice{Model: done.Model}
	if got := again.trust(at(last-12), few); got.Weight != 0 || got.Days >= skill.TrustDays {
		t.Errorf("a few days make %+v", got)
	}
	few.Elsewhere = &skill.Elsewhere{Share: 0.5, Spread: 0.1, Seas: 7}
	if got := again.trust(at(last-12), few); got.Weight < 0.3 || got.Days >= skill.TrustDays {
		t.Errorf("a few days and seven seas that say the same make %+v", got)
	}
}

// The truth of a scored day, and everything of later days, must not reach its
// score: neither by the scaling nor by constants, calibration or trust.
func TestAScoredDayAndLaterOnesHaveNoPartInItsScore(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	w, days, sea := starterWorker(t, 26)
	const target = 18
	truth := days[target].Fields[0]
	at := truth.Time
	_, hidden, ok := fill.Overlay(truth, fieldsOfAll(days[:target]), "key")
	if !ok {
		t.Fatal(jobs.ErrNoOverlay)
	}
	fillIt := func(known []ingest.Granule, later float64) infer.Analysis {
		t.Helper()
		w.cfg.State = state.Dir(t.TempDir())
		w.know(known)
		grid := truth.Grid
		tuned := func(km float64, to int) fill.Tuning {
			return fill.Tuning{Constants: infer.Constants{LengthKM: km, Days: 4, Nugget: 0.2, SigmaScale: 1, Evidence: infer.Evidence{From: at.AddDate(0, 0, to), To: at.AddDate(0, 0, to)}}}
		}
		keepState(t, w.cfg.State.Constants("sea"), fill.Tunings{}.Of(grid, known[target].Transform).Add(tuned(60, -1)).Add(tuned(30*later, 3)))
		// A later granule was filled before, as in a backfill: what it left must not serve.
		if _, err := w.localScaling(t.Context(), fill.Job{Granule: known[target+5], Sea: sea}); err != nil {
			t.Fatal(err)
		}
		shown := known[target]
		shown.Fields = []field.Field{fill.Hide(known[target].Fields[0], hidden)}
		outcome, done, err := w.analyse(t.Context(), fill.Job{
			Dataset: "sea", Granule: shown, History: upTo(known, at), Sea: sea, Fill: w.set.Fill, Scored: true,
		})
		if err != nil || done.Model == nil || done.Scaling == nil || outcome.Analyses[0].Apart == nil {
			t.Fatalf("the starter did not fill: %v", err)
		}
		return outcome.Analyses[0]
	}
	plain := fillIt(days, 1)
	changed := slices.Clone(days)
	for i := target; i < len(changed); i++ {
		changed[i].Fields = slices.Clone(changed[i].Fields)
		f := &changed[i].Fields[0]
		f.Values = slices.Clone(f.Values)
		for c := range f.Values {
			if i > target || hidden[c] {
				f.Values[c] *= 3
			}
		}
	}
	moved := fillIt(changed, 2)
	for name, pair := range map[string][2][]float32{
		"the product":           {plain.Value, moved.Value},
		"its sigma":             {plain.Sigma, moved.Sigma},
		"optimal interpolation": {plain.Apart.Interpolated.Mean, moved.Apart.Interpolated.Mean},
		"the starter":           {plain.Apart.Modelled.Mean, moved.Apart.Modelled.Mean},
	} {
		if !slices.EqualFunc(pair[0], pair[1], sameFloat) {
			t.Errorf("%s knows of the scored day, or of later ones", name)
		}
	}
	// The test sees what it should: an earlier day does have a part.
	early := slices.Clone(days)
	early[3].Fields = slices.Clone(early[3].Fields)
	early[3].Fields[0].Values = slices.Clone(early[3].Fields[0].Values)
	for c := range early[3].Fields[0].Values {
		early[3].Fields[0].Values[c] *= 3
	}
	if slices.EqualFunc(fillIt(early, 1).Apart.Modelled.Mean, plain.Apart.Modelled.Mean, sameFloat) {
		t.Error("an earlier day has no part either: nothing was tested")
	}
}
