package work

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"lacuna/daemon/covariates"
	"lacuna/ledger"
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
