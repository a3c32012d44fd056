package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// keptRecord is the record of a dataset's days as it is kept between starts: a
// mask that forgot what it had seen would jump from product to product.
type keptRecord struct {
	Lat     []float64    `json:"lat"`
	Lon     []float64    `json:"lon"`
	Plane   *field.Plane `json:"plane,omitempty"`
	Runs    []int        `json:"runs"`  // lengths of the runs of cells that were not and that were observed, in turn
	Dates   []string     `json:"dates"` // as in fill.Record
	Learned *bool        `json:"learned,omitempty"`
}

func keep(grid field.Grid, r *fill.Record) keptRecord {
	kept := keptRecord{Lat: grid.Lat, Lon: grid.Lon, Plane: grid.Plane, Runs: []int{0}, Dates: r.Dates, Learned: r.Learned}
	at := false
	for _, seen := range r.Seen {
		if seen != at {
			at, kept.Runs = seen, append(kept.Runs, 0)
		}
		kept.Runs[len(kept.Runs)-1]++
	}
	return kept
}

// record returns the kept record, and false where it is not of the grid.
func (k keptRecord) record(grid field.Grid) (*fill.Record, bool) {
	if !grid.Same(field.Grid{Lat: k.Lat, Lon: k.Lon, Plane: k.Plane}) {
		return nil, false
	}
	r := &fill.Record{Dates: k.Dates, Learned: k.Learned}
	for i, n := range k.Runs {
		if n < 0 || n > grid.Len()-len(r.Seen) {
			return nil, false
		}
		for range n {
			r.Seen = append(r.Seen, i%2 == 1)
		}
	}
	return r, len(r.Seen) == grid.Len()
}

// seen is the record of the worker's dataset, as it is in memory.
type seen struct {
	grid   field.Grid
	record *fill.Record
	added  map[string]bool // sha256 of the neighbours in it, which come with one granule after the other
}

// sea returns the sea mask of a granule, by all days that the dataset is known
// from, and adds the granule and its neighbours to them.
func (w *Worker) sea(ctx context.Context, g ingest.Granule, history []ingest.Granule) (fill.Sea, error) {
	grid := g.Fields[0].Grid
	grown := false
	if w.seen.record == nil || !w.seen.grid.Same(grid) {
		record, kept, err := w.recordOf(ctx, g)
		if err != nil {
			return fill.Sea{}, err
		}
		w.seen, grown = seen{grid: grid, record: record, added: map[string]bool{}}, !kept
	}
	record := w.seen.record
	grown = record.Add(g.Fields...) || grown
	for _, h := range history {
		if !w.seen.added[h.SHA256] {
			w.seen.added[h.SHA256] = true
			grown = record.Add(onGrid(h, grid)...) || grown
		}
	}
	settled := record.Learned != nil
	sea, err := record.Sea(ctx, w.set.SeaMask, w.Reader, g)
	if err == nil && sea.Kind == fill.SeaLearned && !record.Settled() {
		var more bool
		if more, err = w.addWaiting(ctx, grid, record); err == nil && more {
			grown = true
			sea, err = record.Sea(ctx, w.set.SeaMask, w.Reader, g)
		}
	}
	if err != nil {
		return fill.Sea{}, fmt.Errorf("sea mask: %w", err)
	}
	if grown || settled != (record.Learned != nil) {
		if err := w.keepRecord(grid, record); err != nil { // the product does not depend on it, later ones do
			w.Log.Warn("the cells that were observed so far could not be kept", "err", err)
		}
	}
	w.logSea(sea)
	return sea, nil
}

// recordOf returns the kept record of the dataset, or one from the days in the
// spool. A damaged file counts as none.
func (w *Worker) recordOf(ctx context.Context, g ingest.Granule) (r *fill.Record, kept bool, err error) {
	grid := g.Fields[0].Grid
	var file keptRecord
	if ok, err := state.Load(w.cfg.State.Seen(w.set.Name), &file); ok && err == nil {
		if r, ok := file.record(grid); ok {
			return r, true, nil
		}
	}
	first, last := field.Span(g.Fields)
	const reach = scalingSpan * 24 * time.Hour
	// Not the days after the window: they must not reach a near-real-time product,
	// not even by a flag.
	rows, err := w.Books.Window(ctx, w.set.Name, first.Add(-reach), last.Add(w.set.Fill.Future()))
	if err != nil {
		return nil, false, err
	}
	r = &fill.Record{Seen: make(field.Mask, grid.Len())}
	for _, row := range nearestDays(rows, last, scalingSpan) { // one at a time: a season need not be in memory
		r.Add(w.fieldsOf(ctx, []ledger.Granule{row}, grid)...)
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
	}
	return r, false, nil
}

// addWaiting adds the granules that wait to a record of few days, and reports
// whether it has grown: the first products of a lake would have the smallest masks,
// though the archive shows all of it. What is water is no matter of the day.
func (w *Worker) addWaiting(ctx context.Context, grid field.Grid, r *fill.Record) (grown bool, err error) {
	waiting, err := w.pending(ctx, aheadDays)
	if err != nil {
		return false, err
	}
	for _, row := range waiting {
		grown = r.Add(w.fieldsOf(ctx, []ledger.Granule{row}, grid)...) || grown
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	return grown, nil
}

// aheadDays bounds the waiting granules that are read for a mask: twice as many as
// settle it, for some are empty.
const aheadDays = 20

func (w *Worker) keepRecord(grid field.Grid, r *fill.Record) error {
	file := w.cfg.State.Seen(w.set.Name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return state.Save(file, keep(grid, r))
}

// logSea tells which mask serves when that changes, or when something is wrong
// with it for the first time: the figures change with every granule.
func (w *Worker) logSea(sea fill.Sea) {
	told := sea.Kind
	if sea.Warning != "" {
		told += ", with a warning"
	}
	if told == w.toldSea {
		return
	}
	w.toldSea = told
	if sea.Warning != "" {
		w.Log.Warn("sea mask", "kind", sea.Kind, "warning", sea.Warning)
		return
	}
	w.Log.Info("sea mask", "kind", sea.Kind, "origin", sea.Origin)
}

// nearestDays returns the granules of the n days nearest to a time, in order of
// their distance.
func nearestDays(rows []ledger.Granule, at time.Time, n int) []ledger.Granule {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b ledger.Granule) int {
		return int(a.Last.Sub(at).Abs()/time.Second - b.Last.Sub(at).Abs()/time.Second)
	})
	return firstOfDays(rows, n)
}
