package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/slots"
	"lacuna/daemon/supervise"
	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish/disk"
)

// worker takes the granules of one dataset from the spool to products.
type worker struct {
	set    Dataset
	cfg    Config
	book   *ledger.Ledger
	reader slots.Decoders
	store  disk.Store
	nudge  func() // tells the sinks that something was queued
	now    func() time.Time
	log    *slog.Logger

	hold      func() (release func()) // pauses training: filling goes first
	models    *fill.Models            // nil: there are none
	metrics   *ops.Metrics
	heartbeat *supervise.Heartbeat
	trouble   func(err error) // told how an attempt at all that is due ended; nil: nobody asks
	slots     *slots.Slots    // nil: the worker is alone
	fresh     *fresh          // what the intake has decoded already; nil: nothing
	// decoded keeps the granules of the last windows by sha256, so that the
	// neighbours of today need not be decoded again tomorrow. There are two,
	// that of the live lane and that of all else, for the one comes in between
	// the other.
	decoded map[string]ingest.Granule
	windows [2]map[string]bool // of decoded: what is of the live lane, and what of all else
}

// run watches the archive until intake is cancelled and works off what
// arrives; work is cancelled when the granule in hand must be dropped.
func (w *worker) run(intake, work context.Context, watcher *fetch.Watcher) error {
	watching, stop := context.WithCancel(intake)
	arrived := make(chan fetch.Granule)
	watched := make(chan error, 1)
	go func() { watched <- watcher.Run(watching, arrived) }()
	defer func() { // a worker that panics is followed by another, and that by a watcher of its own
		stop()
		for range arrived {
		}
	}()
	// What a crash left unfinished comes first; what failed is tried again, and
	// what has settled is looked at, at the pace of the polls.
	retry := time.NewTicker(w.set.Archive.PollInterval)
	defer retry.Stop()
	at := &door{arrived: arrived, still: func() bool { return intake.Err() == nil }}
	for !at.shut {
		_, err := w.workOff(work, at)
		if w.trouble != nil && work.Err() == nil {
			w.trouble(err)
		}
		if err != nil && work.Err() == nil {
			w.log.Warn("granules left unfinished", "err", err, "retry_in", w.set.Archive.PollInterval)
		}
		w.heartbeat.Rest()
		if at.shut {
			break
		}
		select {
		case _, open := <-arrived:
			at.shut = !open
		case <-retry.C:
		}
	}
	return <-watched
}

// process makes the product of one granule. A *ingest.BadGranule says that
// the granule is at fault and must be set aside.
func (w *worker) process(ctx context.Context, g ledger.Granule) error {
	started := w.now()
	granule, err := w.read(ctx, g)
	if err != nil {
		return err
	}
	if err := w.checkGrid(ctx, g, granule); err != nil {
		return err
	}
	reopened, err := w.book.Place(ctx, g.ID, w.set.placement(field.Times(granule.Fields)), w.now())
	if err != nil {
		return err
	}
	if reopened > 0 {
		w.log.Info("products reopened", "granule", g.Name, "products", reopened, "settle", w.set.Reanalysis.Settle)
	}
	if g.Lane == ledger.Backfill {
		if err := w.lookAhead(ctx, g); err != nil {
			return err
		}
		if err := w.checkGrid(ctx, g, granule); err != nil { // those ahead have voted as well
			return err
		}
	}
	s, err := w.scene(ctx, g, g.Lane == ledger.Live)
	if err != nil {
		return err
	}
	s.began = started
	w.metrics.Took(w.set.Name, ops.Decode, w.now().Sub(started))
	return w.produce(ctx, g, s)
}

// lookAhead takes in the days that follow a granule of the backfill and wait
// behind it, so that its first product sees them: nobody waits for it, and made
// without them it would only be made again.
func (w *worker) lookAhead(ctx context.Context, g ledger.Granule) error {
	waiting, err := w.book.FirstPending(ctx, w.set.Name, 1+w.set.Fill.FutureDays)
	if err != nil {
		return err
	}
	for _, next := range waiting {
		if next.Name <= g.Name {
			continue
		}
		granule, err := w.read(ctx, next)
		if err == nil {
			err = w.checkGrid(ctx, next, granule)
		}
		if bad := (*ingest.BadGranule)(nil); errors.As(err, &bad) {
			continue // it is set aside when it is its turn
		}
		if err != nil {
			return err
		}
		if _, err := w.book.Place(ctx, next.ID, w.set.placement(field.Times(granule.Fields)), w.now()); err != nil {
			return err
		}
	}
	return nil
}

// scene is a granule with what surrounds it.
type scene struct {
	granule ingest.Granule
	history []ingest.Granule
	sea     field.Mask
	began   time.Time // when it was first looked at
}

// scene reads a granule that was accepted before, and what surrounds it.
func (w *worker) scene(ctx context.Context, g ledger.Granule, live bool) (scene, error) {
	s := scene{began: w.now()}
	var err error
	if s.granule, err = w.read(ctx, g); err != nil {
		return s, err
	}
	first, last := field.Span(s.granule.Fields)
	if s.history, err = w.history(ctx, g, [2]time.Time{first, last}, live); err != nil {
		return s, err
	}
	if s.sea, err = fill.SeaMask(ctx, w.set.SeaMask, w.reader, s.granule, s.history); err != nil {
		return s, fmt.Errorf("sea mask: %w", err)
	}
	return s, nil
}

// fill analyses a granule for the revision g.
func (w *worker) fill(ctx context.Context, g ledger.Granule, s scene) (fill.Outcome, error) {
	started := w.now()
	outcome, err := w.analyse(ctx, fill.Job{
		Dataset: w.set.Name, Granule: s.granule, History: s.history, Sea: s.sea,
		Revision: g.Revision, Created: g.Recorded, Credits: w.cfg.Credits,
	})
	if err == nil {
		w.metrics.Took(w.set.Name, ops.Analyse, w.now().Sub(started))
	}
	return outcome, err
}

// finish stores the product of a revision and queues it to the sinks.
func (w *worker) finish(ctx context.Context, g ledger.Granule, s scene, outcome fill.Outcome) error {
	analysed := w.now()
	if err := w.book.Advance(ctx, g.ID, ledger.Filled, w.now()); err != nil {
		return err
	}
	told, stored, err := w.storeProduct(ctx, g, s.granule, outcome)
	if err != nil {
		return err
	}
	product := ledger.Product{Path: stored.Visible, SHA256: stored.SHA256, Observed: outcome.Observed, Covered: outcome.After}
	if err := w.queueProduct(ctx, g, told, product); err != nil {
		return err
	}
	w.nudge()
	w.metrics.Took(w.set.Name, ops.Store, w.now().Sub(analysed))
	w.metrics.Covered(w.set.Name, outcome.Observed, outcome.After)
	w.log.Info("product stored", "granule", s.granule.Name, "revision", g.Revision, "mode", outcome.Product.Mode,
		"observed_percent", percent(outcome.Observed), "covered_percent", percent(outcome.After),
		"neighbours", len(outcome.Product.Inputs)-1, "took_seconds", roundSeconds(w.now().Sub(s.began)), "file", stored.Visible)
	return nil
}

// analyse fills a granule as the dataset says. A model that cannot do it, such
// as one of another grid, is no reason to have no product: then it is optimal
// interpolation.
func (w *worker) analyse(ctx context.Context, job fill.Job) (fill.Outcome, error) {
	alive := func(int, int) { w.heartbeat.Beat() }
	choice := w.models.Choose(fill.Case{
		Dataset: w.set.Name, Granule: job.Granule, Fill: w.set.Fill,
		Scaling: func() (fill.LocalScaling, error) { return w.localScaling(ctx, job) },
	})
	job.Fill, job.Model, job.Scaling = choice.Fill, choice.Model, choice.Scaling
	outcome, err := fill.Analyse(ctx, job, alive)
	if err == nil || job.Model == nil || ctx.Err() != nil {
		return outcome, err
	}
	w.log.Warn("the model cannot fill the granule", "granule", job.Granule.Name, "model", job.Model.Name(), "method", "oi", "err", err)
	job.Fill.Method, job.Model, job.Scaling = "oi", nil, nil
	return fill.Analyse(ctx, job, alive)
}

// read decodes a granule, or takes it from what is still in memory.
func (w *worker) read(ctx context.Context, g ledger.Granule) (ingest.Granule, error) {
	if granule, ok := w.decoded[g.SHA256]; ok {
		return granule, nil
	}
	if granule, ok := w.fresh.take(g.SHA256); ok && granule.Name == filepath.Base(g.SpoolPath) {
		w.decoded[g.SHA256] = granule
		return granule, nil
	}
	granule, err := w.reader.Read(ctx, g.SpoolPath, w.set.Options)
	w.heartbeat.Beat()
	if err != nil {
		return ingest.Granule{}, err
	}
	w.decoded[g.SHA256] = granule
	return granule, nil
}

// history returns the granules around the first and last time of g that the
// window of the dataset allows, and forgets those outside the windows in use.
func (w *worker) history(ctx context.Context, g ledger.Granule, around [2]time.Time, live bool) ([]ingest.Granule, error) {
	rows, err := w.book.Window(ctx, w.set.Name, around[0].Add(-w.set.Fill.Past()), around[1].Add(w.set.Fill.Future()))
	if err != nil {
		return nil, err
	}
	window := map[string]bool{g.SHA256: true}
	var history []ingest.Granule
	for _, row := range rows {
		if row.Name == g.Name {
			continue
		}
		neighbour, err := w.read(ctx, row)
		if err != nil {
			// A neighbour that cannot be read any more makes the product
			// poorer, not wrong.
			w.log.Warn("neighbour left out", "granule", g.Name, "neighbour", row.Name, "err", err)
			continue
		}
		window[row.SHA256] = true
		history = append(history, neighbour)
	}
	lane := 1
	if live {
		lane = 0
	}
	w.windows[lane] = window
	maps.DeleteFunc(w.decoded, func(sha256 string, _ ingest.Granule) bool {
		return !w.windows[0][sha256] && !w.windows[1][sha256]
	})
	return history, nil
}

// setAside moves a bad granule out of the way, with the reason beside it.
func (w *worker) setAside(ctx context.Context, g ledger.Granule, bad *ingest.BadGranule) error {
	reason := (&ingest.BadGranule{File: g.Name, Problem: bad.Problem, Remedy: bad.Remedy}).Error()
	folder := filepath.Join(w.cfg.state().Quarantine(), w.set.Name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	target := filepath.Join(folder, fmt.Sprintf("r%d-%s", g.Revision, path.Base(g.Name)))
	if err := os.Rename(g.SpoolPath, target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("set aside: %w", err)
	}
	if err := os.WriteFile(target+".why.txt", []byte(reason+"\n"), 0o644); err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	w.log.Warn("granule set aside", "granule", g.Name, "reason", reason, "file", target)
	return w.book.Quarantine(ctx, g.ID, reason, w.now())
}

func percent(share float64) float64 { return float64(int(share*1000+0.5)) / 10 }

func roundSeconds(d time.Duration) float64 { return d.Round(10 * time.Millisecond).Seconds() }
