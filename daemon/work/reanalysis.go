package work

import (
	"context"
	"errors"
	"math"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/internal/faults"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/publish"
)

// Reanalysis are the rules by which a product is made again because a day in its
// window came late, was replaced, or followed; the day that ends its window is
// not waited after. The first product of a granule waits for none of
// them.
type Reanalysis struct {
	Enabled bool          `yaml:"enabled"`  // whether products are made again as their neighbours arrive
	Settle  time.Duration `yaml:"settle"`   // time without a new neighbour after which a product is made again
	MaxWait time.Duration `yaml:"max_wait"` // longest wait after the first new neighbour
	// LeastChange is the least change that is published as a new revision, in
	// standard deviations of the product, at the cell that changes most.
	LeastChange float64 `yaml:"least_change"`
}

// DefaultReanalysis returns the settings that hold where a file is silent.
func DefaultReanalysis() Reanalysis {
	return Reanalysis{
		Enabled: true,
		// Longer than from one daily granule to the next: while days follow one
		// another a product waits until its window is full, and is made anew once.
		Settle:  36 * time.Hour,
		MaxWait: 240 * time.Hour, // neighbours that keep coming for ten days must not put it off for ever
		// A change of a quarter of the uncertainty is not worth a revision.
		LeastChange: 0.25,
	}
}

// Validate reports everything wrong with r. Each message begins with the key.
func (r Reanalysis) Validate() error {
	var errs faults.List
	errs.Check(r.Settle >= 0, "settle is %v, must not be negative", r.Settle)
	errs.Check(r.MaxWait >= r.Settle, "max_wait is %v, must not be shorter than settle, %v", r.MaxWait, r.Settle)
	errs.Check(r.LeastChange >= 0, "least_change is %v, must be a number of standard deviations, or 0", r.LeastChange)
	return errs.Err()
}

// patience returns settle and the longest wait for a series of a step: where it is
// coarser than a day they are longer by as much, because neighbours come that much
// later.
func (r Reanalysis) patience(step time.Duration) (settle, maxWait time.Duration) {
	const day = 24 * time.Hour
	times := max(float64(step)/float64(day), 1)
	if infer.Daily(step) {
		times = 1
	}
	return time.Duration(times * float64(r.Settle)), time.Duration(times * float64(r.MaxWait))
}

// placement returns the times of a granule that was read, with the window within
// which it reopens products: none where it tells them nothing, because nothing is
// observed in it and it replaces nothing.
func (d Dataset) placement(g ledger.Granule, granule ingest.Granule) ledger.Placement {
	p := ledger.Placement{Times: field.Times(granule.Fields)}
	silent := g.Absent || g.Revision == 1 && granule.Empty()
	if d.Reanalysis.Enabled && !silent {
		p.Past, p.Future = d.Fill.Past(), d.Fill.Future()
		p.Settle, p.MaxWait = d.Reanalysis.patience(d.Fill.Step)
		p.Step = d.Fill.Interval()
	}
	return p
}

// reanalyse analyses a reopened product again and reports whether it made a new
// revision. An error is a failure of our own: the product stays open.
func (w *Worker) reanalyse(ctx context.Context, r ledger.Reopening) (revised bool, err error) {
	end := func(outcome ledger.Outcome, note string) error {
		r.Outcome, r.Note = outcome, note
		return w.Books.EndReopening(ctx, r, w.Now())
	}
	g, ok, err := w.Books.LastGood(ctx, r.Dataset, r.Granule)
	if err != nil {
		return false, err
	}
	before, published, err := w.Books.Current(ctx, r.Dataset, r.Granule)
	switch {
	case err != nil:
		return false, err
	case !ok || !published:
		return false, end(ledger.Dropped, "its product was retracted")
	case g.State == ledger.Fetched || g.State == ledger.Filled:
		return false, end(ledger.Overtaken, "a revision of it is to be made anyway")
	}
	s, err := w.scene(ctx, g, false)
	if bad := (*ingest.BadGranule)(nil); errors.As(err, &bad) {
		w.Log.Warn("product not made anew", "granule", g.Name, "err", err)
		return false, end(ledger.Dropped, bad.Error())
	}
	if err != nil {
		return false, err
	}
	if w.away() {
		return false, w.dispatchAgain(ctx, again{Reopening: r, before: before}, g, s, false)
	}
	outcome, err := w.fill(ctx, g, s, false)
	if err != nil {
		return false, err
	}
	change := w.change(ctx, before, s.granule, outcome)
	if err := ctx.Err(); err != nil {
		return false, err // interrupted, so a product that seems unreadable may be sound
	}
	sampling := jobs.Describe(s.granule, outcome).Sampling
	next, revise, err := w.judge(ctx, again{Reopening: r, before: before}, change, sampling, w.Now())
	if err != nil || !revise {
		return false, err
	}
	outcome.Product.Revision, outcome.Product.Created = next.Revision, next.Recorded
	// From here on the revision is recorded: no arrival interrupts it any more.
	return true, w.finish(context.WithoutCancel(ctx), next, s, outcome)
}

// settled returns what tells when the next reopened product has settled; nil: none will
// before failed tasks are tried again.
func (w *Worker) settled(ctx context.Context) <-chan time.Time {
	now := w.Now()
	due, ok, err := w.Books.NextReopening(ctx, w.set.Name, now)
	if err != nil || !ok || due.Sub(now) >= w.set.Retry {
		return nil // a ledger that cannot be read is told of by the tasks
	}
	return time.After(due.Sub(now))
}

// again is a reopened product that is looked at.
type again struct {
	ledger.Reopening
	before ledger.Publication // as it is published
}

// judge ends the reopening of a product: by a revision at a time, if the new analysis
// is worth one.
func (w *Worker) judge(ctx context.Context, a again, c jobs.Change, now *publish.Sampling, at time.Time) (next ledger.Granule, revise bool, err error) {
	r := a.Reopening
	if c.Comparable && c.Largest < w.set.Reanalysis.LeastChange && !bettersTier(a.before, now) {
		if now != nil && now.Follows != "" { // it was made in a hurry, and is not done yet
			return next, false, w.Books.PostponeReopening(ctx, r.ID, w.Now(), w.set.Retry)
		}
		r.Change, r.Outcome = c.Largest, ledger.Unchanged
		w.Log.Info("product unchanged", "granule", r.Granule, "why", r.Why, "change_sigmas", roundChange(c.Largest))
		return next, false, w.Books.EndReopening(ctx, r, w.Now())
	}
	next, err = w.Books.Revise(ctx, ledger.Revision{
		Dataset: r.Dataset, Granule: r.Granule, Cause: ledger.Reanalysis, Why: r.Reason(), Lane: r.Lane, Change: c.Largest,
	}, at)
	return next, err == nil, err
}

// change compares a new analysis of a granule with its former product.
func (w *Worker) change(ctx context.Context, before ledger.Publication, g ingest.Granule, now fill.Outcome) jobs.Change {
	c, err := jobs.Compare(ctx, w.Reader, before.File, g, now)
	w.Heartbeat.Beat()
	if err != nil {
		w.Log.Warn("earlier product cannot be compared with", "granule", g.Name, "file", before.File, "err", err)
	}
	return c
}

// roundChange rounds a change for people.
func roundChange(sigmas float64) float64 { return math.Round(sigmas*1000) / 1000 }
