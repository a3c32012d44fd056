package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"lacuna/internal/figure"
	"lacuna/ledger"
)

// passEvery is how often a pass says how far it is.
const passEvery = 30 * time.Second

// tellPass logs now and then, until stop is called, how far a pass is: granules that
// wait, and how long they take by the pace of those that it has filled.
func (d *Daemon) tellPass(ctx context.Context, book *ledger.Ledger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	_, before := d.tally(ctx, book)
	var telling sync.WaitGroup
	telling.Go(func() {
		tick := time.NewTicker(passEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			waiting, done := d.tally(ctx, book)
			d.log.Info("pass under way", "for", figure.Duration(time.Since(began)), "filled", done-before, "waiting", waiting,
				"left", timeLeft(time.Since(began), done-before, waiting))
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

// timeLeft returns how long the waiting granules take at the pace so far, in words.
func timeLeft(since time.Duration, done, waiting int) string {
	switch {
	case waiting == 0:
		return "scores, deliveries and tidying"
	case done <= 0:
		return "not known before the first is filled"
	}
	return "about " + figure.Duration(since/time.Duration(done)*time.Duration(waiting))
}

// tally counts the granules that wait to be filled, and those that have products.
func (d *Daemon) tally(ctx context.Context, book *ledger.Ledger) (waiting, done int) {
	counts, err := book.Counts(ctx)
	if err != nil {
		return 0, 0 // the pass itself reports a ledger that cannot be read
	}
	for _, c := range d.ofDatasets(counts) {
		switch c.State {
		case ledger.Fetched, ledger.Filled, ledger.Discovered:
			waiting += c.Granules
		case ledger.Stored, ledger.Announced:
			done += c.Granules
		}
	}
	return waiting, done
}

// ofDatasets leaves out the rows of sources: each waits for ever, and the row of its
// day in the dataset is the one that is filled.
func (d *Daemon) ofDatasets(counts []ledger.Count) []ledger.Count {
	return slices.DeleteFunc(counts, func(c ledger.Count) bool {
		return !slices.ContainsFunc(d.cfg.Datasets, func(set Dataset) bool { return set.Name == c.Dataset })
	})
}
