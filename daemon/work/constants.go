package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/covariates"
	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
)

// constants returns the constants of optimal interpolation for a granule: those
// that are kept for the dataset, tuned anew where it has doubled since; not for a
// granule that is waited for, where older ones are there. A granule that is scored, or
// filled in near real time, has constants of the days before it: neither its own values
// nor later ones may change them.
func (w *Worker) constants(ctx context.Context, job fill.Job) (*infer.Constants, error) {
	if job.Fill.OI.Scaled() && !w.beside.Any() {
		return nil, nil // the configuration has scales of its own
	}
	file := w.cfg.State.Constants(w.set.Name)
	var kept fill.Tunings
	if ok, err := state.Load(file, &kept); !ok || err != nil {
		kept = fill.Tunings{} // a damaged file counts as none: they are tuned anew
	}
	first, last := field.Span(job.Granule.Fields)
	kept = kept.Of(job.Granule.Fields[0].Grid, job.Granule.Transform).With(covariates.Names(w.set.Covariates))
	if job.Scored {
		return kept.Before(last), nil
	}
	known, err := w.Books.CountTimes(ctx, w.set.Name)
	if err != nil {
		return nil, err
	}
	serving := kept.Serving()
	if job.Fill.Future() == 0 {
		serving = kept.Before(first)
	}
	var fields []field.Field
	if kept.Due(known) && (serving == nil || !w.followed(job)) {
		if fields, err = w.tuningFields(ctx, job); err != nil {
			return nil, err
		}
	}
	switch {
	case len(fields) >= infer.TuneFields: // another tuning is due
	case serving != nil:
		return serving, nil
	case kept.Serving() != nil:
		return &infer.Constants{Note: infer.TunedLater}, nil
	}
	tuned, err := infer.Tune(ctx, fields, job.Sea, job.Granule.Transform, job.Fill, job.Terms(w.beside))
	if err != nil {
		return nil, err
	}
	if tuned.Evidence.Fields == 0 { // too few yet
		return &tuned, nil
	}
	w.Log.Info("optimal interpolation tuned", "length_km", tuned.LengthKM, "days", tuned.Days, "nugget", tuned.Nugget,
		"fields", tuned.Evidence.Fields, "overlays", tuned.Evidence.Overlays, "note", tuned.Note)
	if r := tuned.Covariates; r != nil {
		w.Log.Info("covariates judged", "used", r.Names(), "judged", r.Judged, "note", r.Note)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("keep the constants: %w", err)
	}
	if err := state.Save(file, kept.Add(fill.Tuning{Constants: tuned, At: w.Now(), Known: known})); err != nil {
		return nil, fmt.Errorf("keep the constants: %w", err)
	}
	return &tuned, nil
}

// followed reports whether a granule is waited for now, and its product is made again
// when later days are there: to tune for that one is early enough.
func (w *Worker) followed(job fill.Job) bool {
	return job.Fill.Future() == 0 && !job.Backlog && w.set.Reanalysis.Enabled && w.set.Fill.Future() > 0
}

// tuningFields reads the latest fields of the dataset before a granule, which is
// scored with these constants later. For a delayed product of a granule that is a
// series by itself its own fields are among them.
func (w *Worker) tuningFields(ctx context.Context, job fill.Job) ([]field.Field, error) {
	grid := job.Granule.Fields[0].Grid
	first, _ := field.Span(job.Granule.Fields)
	most := infer.TuningFields(grid)
	times, err := w.Books.LatestTimes(ctx, w.set.Name, -1)
	if err != nil {
		return nil, err
	}
	times = slices.DeleteFunc(times, func(t time.Time) bool { return !t.Before(first) })
	var fields []field.Field
	if len(job.Granule.Fields) > 1 && job.Fill.Future() > 0 {
		fields = job.Granule.Fields
	}
	if len(times) == 0 || len(fields) >= most {
		return fields, nil
	}
	from := times[min(most-len(fields), len(times))-1]
	rows, err := w.Books.Window(ctx, w.set.Name, from, first.Add(-time.Nanosecond))
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(g ledger.Granule) bool { return g.SHA256 == job.Granule.SHA256 })
	return append(w.soundFields(ctx, rows, grid), fields...), nil
}
