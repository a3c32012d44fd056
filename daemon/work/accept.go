package work

import (
	"context"

	"lacuna/daemon/fill"
	"lacuna/ledger"
	"lacuna/pipeline/ingest"
)

// accept reads a granule, checks its grid and records its times. An absence has
// the grid of its neighbours.
func (w *Worker) accept(ctx context.Context, g ledger.Granule) error {
	if err := w.findStep(ctx); err != nil {
		return err
	}
	granule, err := w.granule(ctx, g)
	if err != nil {
		return err
	}
	if err := w.checkGrid(ctx, g, granule); err != nil {
		return err
	}
	if err := w.findStep(ctx); err != nil {
		return err
	}
	reopened, err := w.Books.Place(ctx, g.ID, w.set.placement(g, granule), w.Now())
	if err != nil {
		return err
	}
	w.looked.again(g, granule)
	if reopened > 0 {
		w.Log.Info("products reopened", "granule", g.Name, "products", reopened, "settle", w.set.Reanalysis.Settle)
	}
	if g.Absent {
		return nil
	}
	if err := w.lookAhead(ctx, g, granule); err != nil {
		return err
	}
	return w.checkGrid(ctx, g, granule) // the granules ahead have voted meanwhile
}

// granule returns a granule, or the stand-in for one that is absent. One that the
// layout of products has no place for is refused before any work is done.
func (w *Worker) granule(ctx context.Context, g ledger.Granule) (granule ingest.Granule, err error) {
	if g.Absent {
		granule, err = w.standIn(ctx, g)
	} else {
		granule, err = w.read(ctx, g)
	}
	if err != nil {
		return granule, err
	}
	return granule, fill.CheckLayout(granule, w.set.Layout)
}
