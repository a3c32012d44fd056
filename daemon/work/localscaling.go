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

// scalingSpan is the number of days, those nearest to a granule, from which the
// scaling of its dataset is learned: one season, because the mean map of another
// season would be an anomaly of this one.
const scalingSpan = 90

// keptScaling is the scaling of a dataset as it is kept between granules and
// between starts, so that a product that is made again is the same.
type keptScaling struct {
	Around time.Time `json:"around"` // time of the field that it was learned for
	Days   int       `json:"days"`   // number of days that it was learned from
	parts.Scaling
}

// serves reports whether the scaling can be used for a field at a time with a
// number of days around it: not where a tenth of the days would be others.
func (k keptScaling) serves(at time.Time, days int) bool {
	away := at.Sub(k.Around).Abs()
	return k.Days > 0 && 10*away <= time.Duration(k.Days)*24*time.Hour && 10*days <= 11*k.Days
}

// localScaling returns the scaling of the worker's dataset for a granule: the kept
// one, or one that is learned anew from the days in the spool.
func (w *Worker) localScaling(ctx context.Context, job fill.Job) (fill.LocalScaling, error) {
	grid, tr := job.Granule.Fields[0].Grid, job.Granule.Transform
	first, last := field.Span(job.Granule.Fields)
	const reach = scalingSpan * 24 * time.Hour
	rows, err := w.Books.Window(ctx, w.set.Name, first.Add(-reach), last.Add(reach))
	if err != nil {
		return fill.LocalScaling{}, err
	}
	rows = nearestDays(rows, last, scalingSpan)
	file := w.cfg.State.Scaling(w.set.Name)
	var kept keptScaling
	// A damaged file counts as none: the scaling is learned anew.
	if ok, err := state.Load(file, &kept); ok && err == nil && kept.serves(last, len(rows)) && kept.Fits(grid, tr) {
		return fill.LocalScaling{Scaling: kept.Samples(), Days: kept.Days}, nil
	}
	if len(rows) < samples.ScalingDays {
		return fill.LocalScaling{}, fmt.Errorf("%w: there are %d, and %d are needed", samples.ErrFewDays, len(rows), samples.ScalingDays)
	}
	learned, err := fill.LearnLocalScaling(w.fieldsOf(ctx, rows, grid), job.Sea, tr)
	if err != nil {
		return fill.LocalScaling{}, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fill.LocalScaling{}, fmt.Errorf("keep the scaling: %w", err)
	}
	kept = keptScaling{Around: last, Days: learned.Days, Scaling: parts.NewScaling(grid, tr, learned.Scaling)}
	if err := state.Save(file, kept); err != nil {
		return fill.LocalScaling{}, fmt.Errorf("keep the scaling: %w", err)
	}
	return learned, nil
}

// nearestDays returns the granules of the n days nearest to a time, in order of
// their distance. Of several granules of one day it returns the first.
func nearestDays(rows []ledger.Granule, at time.Time, n int) []ledger.Granule {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b ledger.Granule) int {
		return int(a.Last.Sub(at).Abs()/time.Second - b.Last.Sub(at).Abs()/time.Second)
	})
	seen := map[string]bool{}
	rows = slices.DeleteFunc(rows, func(g ledger.Granule) bool {
		day := g.Last.UTC().Format(time.DateOnly)
		twice := seen[day]
		seen[day] = true
		return twice
	})
	return rows[:min(n, len(rows))]
}

// fieldsOf reads granules of the spool. One that cannot be read any more is left
// out.
func (w *Worker) fieldsOf(ctx context.Context, rows []ledger.Granule, grid field.Grid) []field.Field {
	var fields []field.Field
	for _, row := range rows {
		granule, ok := w.decoded[row.SHA256]
		if !ok {
			var err error
			if granule, err = w.Reader.Read(ctx, row.SpoolPath, w.set.Options); err != nil {
				continue
			}
			w.Heartbeat.Beat()
		}
		fields = append(fields, onGrid(granule, grid)...)
	}
	return fields
}

// onGrid returns the fields of a granule if they are on the grid.
func onGrid(g ingest.Granule, grid field.Grid) []field.Field {
	if len(g.Fields) == 0 || !g.Fields[0].Grid.Same(grid) {
		return nil
	}
	return g.Fields
}
