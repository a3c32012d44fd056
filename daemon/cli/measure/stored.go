package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/retrain"
	"lacuna/modelstore"
	"lacuna/pipeline/lab/tables"
	"lacuna/pipeline/version"
)

// addStored finds the versions of the rows that name one, and makes the champion
// of the store a row.
func (f *evaluateFlags) addStored(ctx context.Context, job *tables.Job) error {
	named := func(name string) bool {
		return slices.ContainsFunc(job.Table.Rows, func(r tables.Row) bool { return r.By == tables.Stored && r.Name == name })
	}
	if f.store != "" && !named(tables.RowChampion) && !slices.ContainsFunc(job.Table.Rows, storedByName) {
		job.Table.Rows = append(slices.Clip(job.Table.Rows), tables.Row{Name: tables.RowChampion, By: tables.Stored})
	}
	job.Stored = map[string]version.Parts{}
	for _, row := range job.Table.Rows {
		if row.By != tables.Stored {
			continue
		}
		v, err := f.find(ctx, row.Name)
		if err != nil {
			return fmt.Errorf("method %s: %w", row.Name, err)
		}
		if job.Stored[row.Name], err = retrain.Parts(v); err != nil {
			return fmt.Errorf("method %s: %w", row.Name, err)
		}
		if err := keepOff(job, v, job.Label); err != nil {
			return fmt.Errorf("method %s: %w", row.Name, err)
		}
	}
	return nil
}

// storedByName reports whether a row is a version that was named.
func storedByName(r tables.Row) bool { return strings.HasPrefix(r.Name, tables.RowModel) }

// find returns the version of a row.
func (f *evaluateFlags) find(ctx context.Context, row string) (*modelstore.Version, error) {
	if row == tables.RowStarter {
		return f.set.Starter(ctx)
	}
	if f.store == "" {
		return nil, errors.New("it is looked up in a model store: name it with --store DIR")
	}
	store := modelstore.New(f.store, time.Now)
	if id, ok := strings.CutPrefix(row, tables.RowModel); ok {
		id, err := store.Resolve(id)
		if err != nil {
			return nil, err
		}
		return store.Load(id)
	}
	serving, err := store.LoadChampion(f.dataset)
	return serving.Version, err
}
