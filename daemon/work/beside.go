package work

import (
	"context"
	"encoding/json"
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
	"lacuna/pipeline/ingest"
	"lacuna/publish"
)

// BesideBook gives the granules and the products of another dataset.
type BesideBook interface {
	Window(ctx context.Context, dataset string, from, to time.Time) ([]ledger.Granule, error)
	Current(ctx context.Context, dataset, granule string) (p ledger.Publication, ok bool, err error)
}

// Beside finds the maps of another dataset, which is a covariate: the product of a day,
// which has no gaps, else its granule. Where no later day may be known, a product that was
// made with later days than its own does not count, and its granule does. reading returns
// how the granules of a dataset are read; nil: there is no other dataset.
func Beside(books BesideBook, reading func(dataset string) ingest.Options) covariates.Granules {
	return func(ctx context.Context, dataset string, from, to time.Time, ahead bool) ([]covariates.Source, error) {
		if reading == nil {
			return nil, nil
		}
		rows, err := books.Window(ctx, dataset, from, to)
		if err != nil {
			return nil, err
		}
		var all []covariates.Source
		for _, row := range rows {
			made, ok, err := productOf(ctx, books, row, ahead)
			switch {
			case err != nil:
				return nil, err
			case ok:
				all = append(all, made)
			case !row.Absent:
				all = append(all, covariates.Source{Path: row.SpoolPath, Options: reading(dataset)})
			}
		}
		return all, nil
	}
}

// productOf returns the product of a granule, where it is there and may be used.
func productOf(ctx context.Context, books BesideBook, g ledger.Granule, ahead bool) (covariates.Source, bool, error) {
	p, ok, err := books.Current(ctx, g.Dataset, g.Name)
	if err != nil || !ok {
		return covariates.Source{}, false, err
	}
	var told publish.Product
	if err := json.Unmarshal([]byte(p.Body), &told); err != nil || !ahead && told.Mode != publish.NearRealTime {
		return covariates.Source{}, false, nil // what it knows of is not known, or too late
	}
	if _, err := os.Stat(p.File); err != nil {
		return covariates.Source{}, false, nil // removed since: the granule may be there
	}
	return covariates.Source{Path: p.File, Options: ingest.Options{Variable: told.Variable}}, true, nil
}

// madeBeside says which maps of covariates a product was made with, or could have been.
type madeBeside struct {
	Times []time.Time `json:"times"` // of the fields of its granule
	Names string      `json:"names"` // of the covariates that it uses
	Ahead bool        `json:"ahead,omitempty"`
	Lacks bool        `json:"lacks,omitempty"` // one of them had no map
	Files string      `json:"files"`           // covariates.Trace of them
}

// mostBeside is the number of latest products whose covariates are looked at again: maps
// that come later than a month are for a reprocessing.
const mostBeside = 30

// besideSettle is the longest time that a product waits for further maps after one has
// come: those of one day come together.
const besideSettle = time.Hour

// explain finds out what covariates say of a job, and notes the maps that were there.
func (w *Worker) explain(ctx context.Context, job *fill.Job) (err error) {
	made := madeBeside{Times: field.Times(job.Granule.Fields), Ahead: job.Fill.Future() > 0}
	// Before they are read: a map that comes meanwhile counts as come after.
	trace := func(string, bool) string { return "" }
	if w.beside.Any() {
		if trace, err = w.beside.Trace(ctx, made.Times, made.Ahead); err != nil {
			return err
		}
	}
	if job.Explained, err = fill.Explain(ctx, *job, w.beside, false); err != nil || job.Scored || job.Explained.Names == "" {
		return err
	}
	made.Names, made.Lacks = job.Explained.Names, len(job.Explained.Lacking) > 0
	made.Files = trace(made.Names, made.Lacks)
	all := w.madeBeside()
	all = slices.DeleteFunc(all, func(m madeBeside) bool { return m.Times[0].Equal(made.Times[0]) })
	all = append(all, made)
	slices.SortFunc(all, func(a, b madeBeside) int { return a.Times[0].Compare(b.Times[0]) })
	return w.keepBeside(all[max(len(all)-mostBeside, 0):])
}

// madeBeside returns the notes on the latest products. A file that is damaged counts as
// none: the products stay as they are.
func (w *Worker) madeBeside() (all []madeBeside) {
	if ok, err := state.Load(w.cfg.State.Beside(w.set.Name), &all); !ok || err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(m madeBeside) bool { return len(m.Times) == 0 })
}

func (w *Worker) keepBeside(all []madeBeside) error {
	file := w.cfg.State.Beside(w.set.Name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = state.Save(file, all)
	}
	if err != nil {
		return fmt.Errorf("note the covariates of a product: %w", err)
	}
	return nil
}

// lookBeside reopens the latest products for which maps of covariates have come, or have
// changed, since they were made.
func (w *Worker) lookBeside(ctx context.Context) error {
	if !w.beside.Any() || !w.set.Reanalysis.Enabled {
		return nil
	}
	all, moved := w.madeBeside(), false
	for i, made := range all {
		trace, err := w.beside.Trace(ctx, made.Times, made.Ahead)
		if err != nil {
			return err
		}
		files := trace(made.Names, made.Lacks)
		if files == made.Files {
			continue
		}
		if err := w.reopenBeside(ctx, made); err != nil {
			return err
		}
		all[i].Files, moved = files, true
	}
	if !moved {
		return nil
	}
	return w.keepBeside(all)
}

// reopenBeside reopens the product of a time whose covariates have come.
func (w *Worker) reopenBeside(ctx context.Context, made madeBeside) error {
	rows, err := w.Books.Window(ctx, w.set.Name, made.Times[0], made.Times[0])
	if err != nil {
		return err
	}
	settle, maxWait := w.set.Reanalysis.patience(w.set.Fill.Step)
	for _, g := range rows {
		why := fmt.Sprintf("maps of %s came or changed", made.Names)
		ok, err := w.Books.Reopen(ctx, ledger.Reopening{Dataset: w.set.Name, Granule: g.Name, Lane: g.Lane, Why: why},
			ledger.Placement{Settle: min(settle, besideSettle), MaxWait: maxWait}, w.Now())
		if err != nil {
			return err
		}
		if ok {
			w.Log.Info("product reopened", "granule", g.Name, "why", why)
		}
	}
	return nil
}
