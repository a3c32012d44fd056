package work

import (
	"context"
	"errors"
	"fmt"

	"lacuna/ledger"
	"lacuna/publish"
)

// produce fills a granule and stores its product. Where the number of the revision
// is taken by other bytes, as after a restore of an older ledger, the product is
// made once more under the next number.
func (w *Worker) produce(ctx context.Context, g ledger.Granule, s scene) error {
	const numbers = 3 // attempts before the granule is left to the next round
	var err error
	for range numbers {
		outcome, fillErr := w.fill(ctx, g, s, true)
		if fillErr != nil {
			return fillErr
		}
		err = w.finish(ctx, g, s, outcome)
		var c *publish.Conflict
		if !errors.As(err, &c) && !errors.Is(err, ledger.ErrRenumbered) {
			return err
		}
		if g, err = w.renumber(ctx, g, c); err != nil {
			return err
		}
	}
	return fmt.Errorf("store product of %s: %d revision numbers in a row have other files already; it is tried again later", g.Name, numbers)
}

// renumber returns a granule under its next number. c is the conflict in the
// folder of products; nil: the granule got another number meanwhile.
func (w *Worker) renumber(ctx context.Context, g ledger.Granule, c *publish.Conflict) (ledger.Granule, error) {
	var t ledger.Taken
	if c != nil {
		t = ledger.Taken{
			Dataset: g.Dataset, Granule: g.Name, Revision: max(g.Revision, c.Highest), Sink: "disk", SHA256: c.There, Ours: c.SHA256, At: w.Now(),
		}
	}
	next, err := w.Books.Renumber(ctx, g.ID, t)
	if err == nil {
		w.Log.Warn("THIS REVISION HAS ANOTHER FILE ALREADY: the product gets the next", "granule", g.Name, "revision", g.Revision,
			"sha256_there", t.SHA256, "sha256_here", t.Ours, "next", next.Revision)
	}
	return next, err
}
