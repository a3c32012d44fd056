package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	"lacuna/fetch"
	"lacuna/ops"
	"lacuna/ops/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish/disk"
)

// worker takes the granules of one dataset from the spool to products.
type worker struct {
	set    Dataset
	cfg    Config
	book   *ledger.Ledger
	reader *ingest.Reader
	store  disk.Store
	nudge  func() // tells the sinks that something was queued
	now    func() time.Time
	log    *slog.Logger

	hold    func() (release func()) // pauses training: filling goes first
	models  *Models                 // nil: there are none
	metrics *ops.Metrics
	pulse   *pulse
	// decoded keeps the granules of the last window by sha256, so that the
	// neighbours of today need not be decoded again tomorrow.
	decoded map[string]ingest.Granule
}

// run watches the archive until intake is cancelled and works off what
// arrives; work is cancelled when the granule in hand must be dropped.
func (w *worker) run(intake, work context.Context, watcher *fetch.Watcher) error {
	arrived := make(chan fetch.Granule)
	watched := make(chan error, 1)
	go func() { watched <- watcher.Run(intake, arrived) }()
	// What a crash left unfinished comes first; what failed is tried again at
	// the pace of the polls.
	retry := time.NewTicker(w.set.Archive.PollInterval)
	defer retry.Stop()
	for open := true; open; {
		if _, err := w.workOff(work); err != nil && work.Err() == nil {
			w.log.Warn("granules left unfinished", "err", err, "retry_in", w.set.Archive.PollInterval)
		}
		w.pulse.rest()
		select {
		case _, open = <-arrived:
		case <-retry.C:
		}
	}
	return <-watched
}

// workOff takes every unfinished granule of the dataset as far as it goes. Its
// error tells what was left unfinished for a reason of our own.
func (w *worker) workOff(ctx context.Context) (Summary, error) {
	var done Summary
	w.pulse.beat()
	pending, err := w.book.Pending(ctx, w.set.Name)
	if err != nil || len(pending) == 0 {
		return done, err
	}
	defer w.hold()()
	var errs []error
	for _, g := range pending {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		err := w.process(ctx, g)
		bad := (*ingest.BadGranule)(nil)
		switch {
		case errors.As(err, &bad):
			done.SetAside++
			err = w.setAside(ctx, g, bad)
		case err == nil:
			done.Products++
		}
		if err != nil {
			done.Unfinished++
			errs = append(errs, fmt.Errorf("granule %s: %w", g.Name, err))
		}
	}
	return done, errors.Join(errs...)
}

// process makes the product of one granule. A *ingest.BadGranule says that
// the granule is at fault and must be set aside.
func (w *worker) process(ctx context.Context, g ledger.Granule) error {
	started := w.now()
	w.pulse.beat()
	granule, err := w.read(ctx, g)
	if err != nil {
		return err
	}
	if err := w.checkGrid(ctx, granule); err != nil {
		return err
	}
	if err := w.book.SetTimes(ctx, g.ID, times(granule.Fields)); err != nil {
		return err
	}
	first, last := span(granule.Fields)
	history, err := w.history(ctx, g, first, last)
	if err != nil {
		return err
	}
	sea, err := SeaMask(ctx, w.set.SeaMask, w.reader, granule, history)
	if err != nil {
		return fmt.Errorf("sea mask: %w", err)
	}
	decoded := w.now()
	w.metrics.Took(w.set.Name, ops.Decode, decoded.Sub(started))
	outcome, err := w.analyse(ctx, Job{
		Dataset: w.set.Name, Granule: granule, History: history, Sea: sea,
		Revision: g.Revision, Created: g.Recorded, Credits: w.cfg.Credits,
	})
	if err != nil {
		return err
	}
	analysed := w.now()
	w.metrics.Took(w.set.Name, ops.Analyse, analysed.Sub(decoded))
	if err := w.book.Advance(ctx, g.ID, ledger.Filled, w.now()); err != nil {
		return err
	}
	told, stored, err := w.storeProduct(ctx, g, granule, outcome)
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
	w.log.Info("product stored", "granule", granule.Name, "revision", g.Revision,
		"observed_percent", percent(outcome.Observed), "covered_percent", percent(outcome.After),
		"neighbours", len(outcome.Product.Inputs)-1, "took_seconds", roundSeconds(w.now().Sub(started)), "file", stored.Visible)
	return nil
}

// analyse fills a granule as the dataset says. A model that cannot do it, such
// as one of another grid, is no reason to have no product: then it is optimal
// interpolation.
func (w *worker) analyse(ctx context.Context, job Job) (Outcome, error) {
	alive := func(int, int) { w.pulse.beat() }
	job.Fill, job.Model = w.models.Choose(w.set.Name, w.set.Fill)
	outcome, err := Analyse(ctx, job, alive)
	if err == nil || job.Model == nil || ctx.Err() != nil {
		return outcome, err
	}
	w.log.Warn("the model cannot fill the granule", "granule", job.Granule.Name, "model", job.Model.Name(), "method", "oi", "err", err)
	job.Fill.Method, job.Model = "oi", nil
	return Analyse(ctx, job, alive)
}

// read decodes a granule, or takes it from what is still in memory.
func (w *worker) read(ctx context.Context, g ledger.Granule) (ingest.Granule, error) {
	if granule, ok := w.decoded[g.SHA256]; ok {
		return granule, nil
	}
	granule, err := w.reader.Read(ctx, g.SpoolPath, w.set.Options)
	w.pulse.beat()
	if err != nil {
		return ingest.Granule{}, err
	}
	w.decoded[g.SHA256] = granule
	return granule, nil
}

// history returns the granules around [first, last] that the window of the
// dataset allows, and forgets those outside it.
func (w *worker) history(ctx context.Context, g ledger.Granule, first, last time.Time) ([]ingest.Granule, error) {
	rows, err := w.book.Window(ctx, w.set.Name, first.Add(-w.set.Fill.Past()), last.Add(w.set.Fill.Future()))
	if err != nil {
		return nil, err
	}
	kept := map[string]ingest.Granule{}
	var history []ingest.Granule
	for _, row := range rows {
		if row.Name == g.Name {
			kept[g.SHA256] = w.decoded[g.SHA256]
			continue
		}
		neighbour, err := w.read(ctx, row)
		if err != nil {
			// A neighbour that cannot be read any more makes the product
			// poorer, not wrong.
			w.log.Warn("neighbour left out", "granule", g.Name, "neighbour", row.Name, "err", err)
			continue
		}
		kept[row.SHA256] = neighbour
		history = append(history, neighbour)
	}
	w.decoded = kept
	return history, nil
}

// checkGrid refuses a granule on another grid than the dataset's, which is
// that of its first granule.
func (w *worker) checkGrid(ctx context.Context, granule ingest.Granule) error {
	grid := granule.Fields[0].Grid
	known, ok, err := w.book.Grid(ctx, w.set.Name)
	if err != nil {
		return err
	}
	if !ok {
		text, err := json.Marshal(grid)
		if err != nil {
			return fmt.Errorf("encode grid: %w", err)
		}
		return w.book.SetGrid(ctx, w.set.Name, ledger.Grid{Fingerprint: grid.String(), JSON: string(text), Since: w.now()})
	}
	var before field.Grid
	if err := json.Unmarshal([]byte(known.JSON), &before); err != nil {
		return fmt.Errorf("decode grid of dataset %s: %w", w.set.Name, err)
	}
	if grid.Same(before) {
		return nil
	}
	return &ingest.BadGranule{
		File:    granule.Name,
		Problem: fmt.Sprintf("its grid is %v, but dataset %s has been %v since %s", grid, w.set.Name, before, known.Since.Format(time.DateOnly)),
		Remedy:  "if the producer changed the grid, configure it as a new dataset",
	}
}

// setAside moves a bad granule out of the way, with the reason beside it.
func (w *worker) setAside(ctx context.Context, g ledger.Granule, bad *ingest.BadGranule) error {
	reason := (&ingest.BadGranule{File: g.Name, Problem: bad.Problem, Remedy: bad.Remedy}).Error()
	folder := filepath.Join(w.cfg.quarantineDir(), w.set.Name)
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

// span returns the first and the last time of fields.
func span(fields []field.Field) (first, last time.Time) {
	first, last = fields[0].Time, fields[0].Time
	for _, f := range fields[1:] {
		if f.Time.Before(first) {
			first = f.Time
		}
		if f.Time.After(last) {
			last = f.Time
		}
	}
	return first, last
}

func times(fields []field.Field) []time.Time {
	return convert(fields, func(f field.Field) time.Time { return f.Time })
}

func percent(share float64) float64 { return float64(int(share*1000+0.5)) / 10 }

func roundSeconds(d time.Duration) float64 { return d.Round(10 * time.Millisecond).Seconds() }
