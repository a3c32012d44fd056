package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/pipeline/parts"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/samples"
)

// scalingSpan is the number of days, the latest before a granule, from which the
// scaling of its dataset is learned: one season, because the mean map of another
// season would be an anomaly of this one.
const scalingSpan = 90

// keptScalings is how many scalings of a dataset are kept: that of the newest
// granules, and those of the granules some days before that are looked at again.
const keptScalings = 3

// scalingVersion is the layout of the file. In files without one later days had a
// part, and they are not used.
const scalingVersion = 1

// scalings are the scalings of a dataset as they are kept between granules and
// between starts, so that a product that is made again is the same.
type scalings struct {
	Version int           `json:"version"`
	All     []keptScaling `json:"scalings"` // the one that was learned last at the end
}

// keptScaling is one of them.
type keptScaling struct {
	Before time.Time `json:"before"` // all days that it was learned from are before this time
	Days   int       `json:"days"`   // number of days that it was learned from
	parts.Scaling
}

// serves reports whether the scaling can be used for a granule that begins at a
// time, with a number of days before it: never for an earlier one, whose truth it
// may know, and not where a tenth of the days would be others.
func (k keptScaling) serves(at time.Time, days int) bool {
	away := at.Sub(k.Before)
	return k.Days > 0 && away >= 0 && 10*away <= time.Duration(k.Days)*24*time.Hour && 10*days <= 11*k.Days
}

// localScaling returns the scaling of the worker's dataset for a granule: a kept
// one, or one that is learned anew from the days in the spool. All are days before
// the granule: the granule itself and later ones are what its products are scored
// by, and a product of near-real-time could not know them.
func (w *Worker) localScaling(ctx context.Context, job fill.Job) (fill.LocalScaling, error) {
	grid, tr := job.Granule.Fields[0].Grid, job.Granule.Transform
	first, _ := field.Span(job.Granule.Fields)
	const reach = scalingSpan * 24 * time.Hour
	rows, err := w.Books.Window(ctx, w.set.Name, first.Add(-reach), first)
	if err != nil {
		return fill.LocalScaling{}, err
	}
	rows = latestDays(rows, first, scalingSpan)
	file := w.cfg.State.Scaling(w.set.Name)
	var kept scalings
	// A damaged file counts as none: the scaling is learned anew.
	if ok, err := state.Load(file, &kept); !ok || err != nil || kept.Version != scalingVersion {
		kept = scalings{Version: scalingVersion}
	}
	for _, k := range slices.Backward(kept.All) {
		if k.serves(first, len(rows)) && k.Fits(grid, tr) {
			return fill.LocalScaling{Scaling: k.Samples(), Days: k.Days}, nil
		}
	}
	if len(rows) < samples.ScalingDays {
		return fill.LocalScaling{}, fmt.Errorf("%w: there are %d, and %d are needed", samples.ErrFewDays, len(rows), samples.ScalingDays)
	}
	learned, err := fill.LearnLocalScaling(w.soundFields(ctx, rows, grid), job.Sea, tr)
	if err != nil {
		return fill.LocalScaling{}, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fill.LocalScaling{}, fmt.Errorf("keep the scaling: %w", err)
	}
	kept.All = append(kept.All, keptScaling{Before: first, Days: learned.Days, Scaling: parts.NewScaling(grid, tr, learned.Scaling)})
	kept.All = kept.All[max(len(kept.All)-keptScalings, 0):]
	if err := state.Save(file, kept); err != nil {
		return fill.LocalScaling{}, fmt.Errorf("keep the scaling: %w", err)
	}
	return learned, nil
}

// latestDays returns the granules of the n latest days that end before a time, the
// latest first. Of several granules of one day it returns the first of them.
func latestDays(rows []ledger.Granule, before time.Time, n int) []ledger.Granule {
	rows = slices.DeleteFunc(slices.Clone(rows), func(g ledger.Granule) bool { return !g.Last.Before(before) })
	slices.SortStableFunc(rows, func(a, b ledger.Granule) int { return b.Last.Compare(a.Last) })
	return firstOfDays(rows, n)
}

// firstOfDays returns the first granule of each day, for the first n days.
func firstOfDays(rows []ledger.Granule, n int) []ledger.Granule {
	seen := map[string]bool{}
	rows = slices.DeleteFunc(rows, func(g ledger.Granule) bool {
		day := g.Last.UTC().Format(time.DateOnly)
		twice := seen[day]
		seen[day] = true
		return twice
	})
	return rows[:min(n, len(rows))]
}

// fieldsOf reads the fields of granules of the spool.
func (w *Worker) fieldsOf(ctx context.Context, rows []ledger.Granule, grid field.Grid) []field.Field {
	return fieldsIn(w.granulesOf(ctx, rows, grid))
}

// soundFields reads fields as fieldsOf does, without the observations that tests
// refuse: nothing is learned from those.
func (w *Worker) soundFields(ctx context.Context, rows []ledger.Granule, grid field.Grid) []field.Field {
	all := w.granulesOf(ctx, rows, grid)
	if len(all) > 0 && w.screen.Any() {
		if _, err := w.screen.Series(ctx, all[0], all, nil); err != nil {
			w.Log.Warn("days are learned from as they are", "err", err)
		}
	}
	return fieldsIn(all)
}

// granulesOf reads granules of the spool that are on a grid. One that cannot be read
// any more is left out.
func (w *Worker) granulesOf(ctx context.Context, rows []ledger.Granule, grid field.Grid) []ingest.Granule {
	var all []ingest.Granule
	for _, row := range rows {
		granule, ok := w.decoded[row.SHA256]
		if !ok {
			var err error
			if granule, err = w.Reader.Read(ctx, row.SpoolPath, w.set.Options); err != nil {
				continue
			}
			w.Heartbeat.Beat()
		}
		if len(onGrid(granule, grid)) > 0 {
			all = append(all, granule)
		}
	}
	return all
}

// onGrid returns the fields of a granule if they are on the grid.
func onGrid(g ingest.Granule, grid field.Grid) []field.Field {
	if len(g.Fields) == 0 || !g.Fields[0].Grid.Same(grid) {
		return nil
	}
	return g.Fields
}

// fieldsIn returns the fields of granules.
func fieldsIn(gs []ingest.Granule) []field.Field {
	var all []field.Field
	for _, g := range gs {
		all = append(all, g.Fields...)
	}
	return all
}
