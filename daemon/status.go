package daemon

import (
	"context"
	"path/filepath"
	"strings"

	"lacuna/ops"
	"lacuna/ops/ledger"
)

// recentRows is how many products and set-aside granules the page shows: a
// screenful each.
const recentRows = 20

// statusOf returns the function that the status page asks.
func (d *Daemon) statusOf(book *ledger.Ledger) func(context.Context) (ops.Status, error) {
	started := d.parts.Now()
	return func(ctx context.Context) (ops.Status, error) {
		s := ops.Status{Version: Version(), Started: started, Now: d.parts.Now(), Ready: d.ready.Load()}
		counts, err := book.Counts(ctx)
		if err != nil {
			return s, err
		}
		for _, set := range d.cfg.Datasets {
			row := ops.Dataset{Name: set.Name, Title: set.Product, Method: methodPhrase[set.Fill.Method]}
			for _, c := range counts {
				if c.Dataset == set.Name {
					row.States = append(row.States, ops.StateCount{State: string(c.State), Granules: c.Granules})
				}
			}
			s.Datasets = append(s.Datasets, row)
		}
		done, err := book.Recent(ctx, recentRows, ledger.Stored, ledger.Announced)
		if err != nil {
			return s, err
		}
		for _, g := range done {
			s.Products = append(s.Products, d.productRow(g))
			noteLatest(s.Datasets, g)
		}
		aside, err := book.Recent(ctx, recentRows, ledger.Quarantined)
		if err != nil {
			return s, err
		}
		for _, g := range aside {
			s.Quarantine = append(s.Quarantine, ops.Quarantined{Dataset: g.Dataset, Granule: g.Name, Reason: g.Reason, At: g.Changed})
		}
		return s, nil
	}
}

func (d *Daemon) productRow(g ledger.Granule) ops.Product {
	file, err := filepath.Rel(d.cfg.ProductsDir, g.Product.Path)
	if err != nil {
		file = ""
	}
	picture := ""
	if d.cfg.Publish.QuickLook && file != "" {
		picture = filepath.ToSlash(strings.TrimSuffix(file, filepath.Ext(file)) + ".png")
	}
	return ops.Product{
		QuickLook: picture,
		Dataset:   g.Dataset, Granule: g.Name, Revision: g.Revision, Day: g.First, Stored: g.Changed,
		File: filepath.ToSlash(file), ObservedBefore: g.Product.Observed, FilledAfter: g.Product.Covered,
	}
}

// noteLatest keeps the newest day of each dataset on its row.
func noteLatest(rows []ops.Dataset, g ledger.Granule) {
	for i := range rows {
		if rows[i].Name == g.Dataset && g.Last.After(rows[i].LastDay) {
			rows[i].LastGranule, rows[i].LastDay, rows[i].LastArrival = g.Name, g.Last, g.Recorded
		}
	}
}
