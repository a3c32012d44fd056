package work

import (
	"context"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish"
)

// process makes the product of one granule. A *ingest.BadGranule says that
// the granule is at fault and must be set aside.
func (w *Worker) process(ctx context.Context, g ledger.Granule) error {
	started := w.Now()
	if err := w.accept(ctx, g); err != nil {
		return err
	}
	s, err := w.scene(ctx, g, g.Lane == ledger.Live)
	if err != nil {
		return err
	}
	s.began = started
	w.Metrics.Took(w.set.Name, ops.Decode, w.Now().Sub(started))
	return w.produce(ctx, g, s)
}

// scene is a granule with its neighbours and its sea mask.
type scene struct {
	granule ingest.Granule
	history []ingest.Granule
	sea     field.Mask
	seen    field.Mask // cells that were observed on any known day; nil: too few are known
	seaMask string     // where the sea mask comes from
	began   time.Time  // start of the work on it

	screened fill.Screened // what was taken out of the granule
}

// scene reads a granule that was accepted before, its neighbours and its sea mask,
// and takes out what tests refuse.
func (w *Worker) scene(ctx context.Context, g ledger.Granule, live bool) (scene, error) {
	s, err := w.rawScene(ctx, g, live)
	if err == nil {
		err = w.screened(ctx, &s)
	}
	return s, err
}

// rawScene is scene with all observations.
func (w *Worker) rawScene(ctx context.Context, g ledger.Granule, live bool) (scene, error) {
	s := scene{began: w.Now()}
	var err error
	if s.granule, err = w.granule(ctx, g); err != nil {
		return s, err
	}
	if err := w.findStep(ctx); err != nil {
		return s, err
	}
	first, last := field.Span(s.granule.Fields)
	if s.history, err = w.history(ctx, g, [2]time.Time{first, last}, live); err != nil {
		return s, err
	}
	sea, err := w.sea(ctx, s.granule, s.history)
	s.sea, s.seen, s.seaMask = sea.Mask, sea.Seen, sea.Origin
	return s, err
}

// screened takes the observations out of a scene that tests refuse.
func (w *Worker) screened(ctx context.Context, s *scene) (err error) {
	s.granule, s.history, s.screened, err = w.screen.Granule(ctx, s.granule, s.history, s.sea)
	w.Heartbeat.Beat()
	return err
}

// fill analyses a granule for the revision g; first says that it has no product
// yet, which may be waited for.
func (w *Worker) fill(ctx context.Context, g ledger.Granule, s scene, first bool) (fill.Outcome, error) {
	started := w.Now()
	fetched, err := w.Books.FetchedAt(ctx, g)
	if err != nil {
		return fill.Outcome{}, err
	}
	outcome, _, err := w.analyse(ctx, w.jobOf(g, s, fetched, first))
	if err == nil {
		w.Metrics.Took(w.set.Name, ops.Analyse, w.Now().Sub(started))
	}
	return outcome, err
}

// finish stores the product of a revision and queues it to the sinks.
func (w *Worker) finish(ctx context.Context, g ledger.Granule, s scene, outcome fill.Outcome) error {
	first, _ := field.Span(s.granule.Fields)
	d := draft{
		granule: s.granule.Name, file: publish.WithMode(w.fileName(g.Revision, s.granule), outcome.Product.Mode), first: first, began: s.began, filled: w.Now(),
	}
	outcome.Product.Filled = d.filled
	if g.State == ledger.Filled { // before a crash: the file that may be there already says so
		outcome.Product.Filled = g.Changed
	}
	d.write = func(path string) (jobs.Made, error) {
		return jobs.Write(path, jobs.Draft{Name: d.file, Picture: w.cfg.QuickLook}, s.granule, outcome)
	}
	return w.store(ctx, g, d)
}

// store stores a product and queues it to the sinks.
func (w *Worker) store(ctx context.Context, g ledger.Granule, d draft) error {
	if err := w.Books.Advance(ctx, g.ID, ledger.Filled, d.filled); err != nil {
		return err
	}
	began := w.Now()
	told, made, stored, err := w.storeProduct(ctx, g, d)
	if err != nil {
		return err
	}
	product := ledger.Product{Path: stored.Visible, SHA256: stored.SHA256, Observed: made.Observed, Covered: made.Covered}
	if err := w.Queue.Add(ctx, g, told, product); err != nil {
		return err
	}
	w.Queue.Nudge()
	w.Metrics.Took(w.set.Name, ops.Store, w.Now().Sub(began))
	w.Metrics.Covered(w.set.Name, made.Observed, made.Covered)
	for _, r := range told.Refused {
		w.Metrics.Refused(w.set.Name, r.Test, r.Pixels)
	}
	w.Log.Info("product stored", "granule", d.granule, "revision", g.Revision, "mode", told.Mode,
		"input", told.Input, "observed_percent", percent(made.Observed), "covered_percent", percent(made.Covered),
		"neighbours", made.Neighbours, "calibration_days", made.Scored, "took_seconds", roundSeconds(w.Now().Sub(d.began)), "file", stored.Visible)
	w.logNote(made.Note)
	return nil
}
