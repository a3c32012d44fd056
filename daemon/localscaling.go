package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/statefile"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/version"
)

// scalingSpan is how many days of a dataset, those nearest in time to a
// granule, its scaling is learned from: a season, and the mean map of another
// season would be an anomaly of this one.
const scalingSpan = 90

// keptScaling is the scaling of a dataset as it is kept between granules and
// between starts, so that a product that is made again is the same.
type keptScaling struct {
	Around time.Time `json:"around"` // the field that it was learned for
	Days   int       `json:"days"`   // that it was learned from
	version.Scaling
}

// serves reports whether the scaling still does for a field of that time, with
// so many days around it: not if a tenth of the days would be others.
func (k keptScaling) serves(at time.Time, days int) bool {
	away := at.Sub(k.Around).Abs()
	return k.Days > 0 && 10*away <= time.Duration(k.Days)*24*time.Hour && 10*days <= 11*k.Days
}

// LearnLocalScaling returns the scaling of fields of one dataset, for a model
// that was trained elsewhere.
func LearnLocalScaling(fields []field.Field, sea field.Mask, tr field.Transform) (LocalScaling, error) {
	series, err := samples.New(fields, sea, tr)
	if err != nil {
		return LocalScaling{}, err
	}
	scaling, err := samples.LearnScaling(series)
	return LocalScaling{Scaling: scaling, Days: len(series.Days)}, err
}

// localScaling returns the scaling of the worker's dataset for a granule: the
// one that is kept, or one that is learned anew from the days in the spool.
func (w *worker) localScaling(ctx context.Context, job Job) (LocalScaling, error) {
	grid, tr := job.Granule.Fields[0].Grid, job.Granule.Transform
	first, last := span(job.Granule.Fields)
	const reach = scalingSpan * 24 * time.Hour
	rows, err := w.book.Window(ctx, w.set.Name, first.Add(-reach), last.Add(reach))
	if err != nil {
		return LocalScaling{}, err
	}
	rows = nearestDays(rows, last, scalingSpan)
	file := filepath.Join(w.cfg.StateDir, "scaling", w.set.Name+".json")
	var kept keptScaling
	// A file that is damaged is as good as none: it is learned anew.
	if ok, err := statefile.Load(file, &kept); ok && err == nil && kept.serves(last, len(rows)) && kept.Fits(grid, tr) {
		return LocalScaling{Scaling: kept.Samples(), Days: kept.Days}, nil
	}
	if len(rows) < samples.ScalingDays {
		return LocalScaling{}, fmt.Errorf("%w: there are %d, and %d are needed", samples.ErrFewDays, len(rows), samples.ScalingDays)
	}
	learned, err := LearnLocalScaling(w.fieldsOf(ctx, rows, grid), job.Sea, tr)
	if err != nil {
		return LocalScaling{}, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return LocalScaling{}, fmt.Errorf("keep the scaling: %w", err)
	}
	kept = keptScaling{Around: last, Days: learned.Days, Scaling: version.NewScaling(grid, tr, learned.Scaling)}
	if err := statefile.Save(file, kept); err != nil {
		return LocalScaling{}, fmt.Errorf("keep the scaling: %w", err)
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

// fieldsOf reads granules of the spool. One that cannot be read any more is
// left out: there are others.
func (w *worker) fieldsOf(ctx context.Context, rows []ledger.Granule, grid field.Grid) []field.Field {
	var fields []field.Field
	for _, row := range rows {
		granule, ok := w.decoded[row.SHA256]
		if !ok {
			var err error
			if granule, err = w.reader.Read(ctx, row.SpoolPath, w.set.Options); err != nil {
				continue
			}
			w.pulse.beat()
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
