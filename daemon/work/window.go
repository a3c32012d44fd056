package work

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
)

// stepFields is the number of latest fields from which the step of a series is
// found: a season of a daily one, in which holes are the exception.
const stepFields = 90

// findStep finds out the step of the dataset, by which its windows go.
func (w *Worker) findStep(ctx context.Context) error {
	times, err := w.Books.LatestTimes(ctx, w.set.Name, stepFields)
	if err != nil {
		return err
	}
	w.set.Fill.Step = infer.StepOf(times)
	return nil
}

// mostAhead bounds the granules that are read ahead of one.
const mostAhead = 400

// lookAhead reads the granules that wait behind g and lie in its window, so that
// its first product sees them: without them it would only be made again. Behind
// the newest granule, as in real time, none waits.
func (w *Worker) lookAhead(ctx context.Context, g ledger.Granule, granule ingest.Granule) error {
	if w.set.Fill.Future() == 0 {
		return nil
	}
	waiting, err := w.pending(ctx, mostAhead)
	if err != nil {
		return err
	}
	_, last := field.Span(granule.Fields)
	for _, next := range waiting {
		if next.Name <= g.Name || next.Lane != g.Lane || next.Absent {
			continue
		}
		if next.First.IsZero() { // not read yet
			if next.First, err = w.readAhead(ctx, next); err != nil {
				return err
			}
		}
		// Before the step is known the window may be too short.
		if w.set.Fill.Step > 0 && next.First.After(last.Add(w.set.Fill.Future())) {
			return nil
		}
	}
	return nil
}

// readAhead reads a granule before its turn and returns its first time; zero
// where it cannot be used.
func (w *Worker) readAhead(ctx context.Context, g ledger.Granule) (time.Time, error) {
	granule, err := w.neighbour(ctx, g)
	if err == nil {
		err = w.checkGrid(ctx, g, granule)
	}
	if bad := (*ingest.BadGranule)(nil); errors.As(err, &bad) {
		return time.Time{}, nil // set aside when its turn comes
	}
	if err != nil {
		return time.Time{}, err
	}
	// Once it is placed, nobody looks again at a product that is made without it now.
	if err := w.awaitWithout(ctx, g, granule); err != nil {
		return time.Time{}, err
	}
	if _, err := w.Books.Place(ctx, g.ID, w.set.placement(g, granule), w.Now()); err != nil {
		return time.Time{}, err
	}
	w.looked.again(g, granule)
	first, _ := field.Span(granule.Fields)
	if w.set.Fill.Step == 0 { // it may be known now
		err = w.findStep(ctx)
	}
	return first, err
}

// thinned returns the granules of a window that its analysis uses, in their order.
// Where one holds several fields all are used: its fields are thinned when they
// are read.
func thinned(cfg infer.Config, rows []ledger.Granule, around [2]time.Time) []ledger.Granule {
	several := func(g ledger.Granule) bool { return !g.First.Equal(g.Last) }
	if !around[0].Equal(around[1]) || slices.ContainsFunc(rows, several) {
		return rows
	}
	times := make([]time.Time, len(rows))
	for i, g := range rows {
		times[i] = g.First
	}
	var out []ledger.Granule
	for _, i := range cfg.Within(times, around[0]) {
		out = append(out, rows[i])
	}
	return out
}

// neighbour returns a granule that another day is to see, from memory or decoded, and
// keeps no more of it.
func (w *Worker) neighbour(ctx context.Context, g ledger.Granule) (ingest.Granule, error) {
	granule, ok := w.decoded[g.SHA256]
	if ok {
		w.spooled[g.SHA256] = g.SpoolPath
	} else {
		var err error
		if granule, err = w.read(ctx, g); err != nil {
			return granule, err
		}
	}
	if granule.Whole() {
		granule = granule.Neighbour()
		w.decoded[g.SHA256] = granule
	}
	return granule, nil
}

// read returns a granule from memory, where it is there as a whole, or decodes it.
func (w *Worker) read(ctx context.Context, g ledger.Granule) (ingest.Granule, error) {
	w.spooled[g.SHA256] = g.SpoolPath
	if granule, ok := w.decoded[g.SHA256]; ok && granule.Whole() {
		return granule, nil
	}
	if granule, ok := w.Fresh(g.SHA256); ok && granule.Name == filepath.Base(g.SpoolPath) {
		w.decoded[g.SHA256] = granule
		return granule, nil
	}
	granule, err := w.Reader.Read(ctx, g.SpoolPath, w.set.Options)
	if errors.Is(err, fs.ErrNotExist) { // it may have been on its way out when a process was killed
		restored, failed := w.aside().Restore(g)
		if failed != nil {
			return ingest.Granule{}, failed
		}
		if restored {
			granule, err = w.Reader.Read(ctx, g.SpoolPath, w.set.Options)
		}
	}
	w.Heartbeat.Beat()
	if err != nil {
		return ingest.Granule{}, err
	}
	if err := w.aside().Forget(g); err != nil {
		return ingest.Granule{}, err
	}
	w.decoded[g.SHA256] = granule
	return granule, nil
}

// history returns the neighbours of g, whose first and last times are around, and
// forgets the decoded granules outside the windows in use.
func (w *Worker) history(ctx context.Context, g ledger.Granule, around [2]time.Time, live bool) ([]ingest.Granule, error) {
	rows, err := w.Books.Window(ctx, w.set.Name, around[0].Add(-w.set.Fill.Past()), around[1].Add(w.set.Fill.Future()))
	if err != nil {
		return nil, err
	}
	rows = thinned(w.set.Fill, rows, around)
	window := map[string]bool{g.SHA256: true}
	var history []ingest.Granule
	for _, row := range rows {
		if row.Name == g.Name {
			continue
		}
		neighbour, err := w.neighbour(ctx, row)
		if err != nil {
			// Without this neighbour the product is poorer, but not wrong.
			w.Log.Warn("neighbour left out", "granule", g.Name, "neighbour", row.Name, "err", err)
			continue
		}
		window[row.SHA256] = true
		if !neighbour.Empty() { // else it has no part in the analysis
			history = append(history, neighbour)
		}
	}
	lane := 1
	if live {
		lane = 0
	}
	w.windows[lane] = window
	unused := func(sha256 string) bool { return !w.windows[0][sha256] && !w.windows[1][sha256] }
	maps.DeleteFunc(w.decoded, func(sha256 string, _ ingest.Granule) bool { return unused(sha256) })
	maps.DeleteFunc(w.spooled, func(sha256, _ string) bool { return unused(sha256) })
	return history, nil
}
