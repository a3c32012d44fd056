package work

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"lacuna/daemon/fill"
	"lacuna/internal/faults"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
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
	outcome, err := w.fill(ctx, g, s, false)
	if err != nil {
		return false, err
	}
	change, comparable := w.change(ctx, before, s.granule, outcome)
	if err := ctx.Err(); err != nil {
		return false, err // interrupted, so a product that seems unreadable may be sound
	}
	if comparable && change < w.set.Reanalysis.LeastChange && !bettersTier(before, outcome.Product.Sampling) {
		if outcome.Follows != "" { // it was made in a hurry, and is not done yet
			return false, w.Books.PostponeReopening(ctx, r.ID, w.Now().Add(w.set.Retry))
		}
		r.Change = change
		w.Log.Info("product unchanged", "granule", g.Name, "why", r.Why, "change_sigmas", roundChange(change))
		return false, end(ledger.Unchanged, "")
	}
	next, err := w.Books.Revise(ctx, ledger.Revision{
		Dataset: r.Dataset, Granule: r.Granule, Cause: ledger.Reanalysis, Why: r.Reason(), Lane: r.Lane, Change: change,
	}, w.Now())
	if err != nil {
		return false, err
	}
	outcome.Product.Revision, outcome.Product.Created = next.Revision, next.Recorded
	// From here on the revision is recorded: no arrival interrupts it any more.
	return true, w.finish(context.WithoutCancel(ctx), next, s, outcome)
}

// change returns the largest change of a value or of an uncertainty from the
// former product to a new analysis of the same granule, in standard deviations of
// the former. They cannot be compared where the former cannot be read, or where
// other cells were filled.
func (w *Worker) change(ctx context.Context, before ledger.Publication, g ingest.Granule, now fill.Outcome) (largest float64, comparable bool) {
	old, err := w.readProduct(ctx, before.File, g)
	if err != nil {
		w.Log.Warn("earlier product cannot be compared with", "granule", g.Name, "file", before.File, "err", err)
		return 0, false
	}
	for i, a := range now.Analyses {
		value := make([]float32, len(a.Value))
		g.Transform.Forward(value, a.Value)
		for c := range value {
			filled := a.Flags[c]&infer.Interpolated != 0
			if filled != old[i].filled[c] {
				return 0, false
			}
			if !filled || !finite(old[i].value[c]) || !finite(old[i].sigma[c]) {
				continue
			}
			sigma := max(float64(old[i].sigma[c]), leastSigma)
			moved := math.Abs(float64(value[c]) - float64(old[i].value[c]))
			surer := math.Abs(float64(a.Sigma[c]) - float64(old[i].sigma[c]))
			largest = max(largest, moved/sigma, surer/sigma)
		}
	}
	return largest, true
}

// leastSigma prevents a division by zero: in any units, no satellite measures
// better than to a millionth.
const leastSigma = 1e-6

// filledField is a field of a product in the space of the transform.
type filledField struct {
	value, sigma []float32
	filled       []bool // the value is not an observation
}

// readProduct reads the fields of a product of a granule.
func (w *Worker) readProduct(ctx context.Context, path string, g ingest.Granule) ([]filledField, error) {
	variable := g.Source.Variable
	value, err := w.Reader.Read(ctx, path, ingest.Options{Variable: variable})
	w.Heartbeat.Beat()
	if err != nil {
		return nil, err
	}
	beside := map[string][]field.Field{variable + "_uncertainty": nil, "flags": nil}
	for name := range beside {
		read, err := w.Reader.Read(ctx, path, ingest.Options{Variable: name, Transform: "identity"})
		w.Heartbeat.Beat()
		if err != nil {
			return nil, err
		}
		beside[name] = read.Fields
	}
	sigma, flags := beside[variable+"_uncertainty"], beside["flags"]
	if len(value.Fields) != len(g.Fields) || len(sigma) != len(g.Fields) || len(flags) != len(g.Fields) || !value.Fields[0].Grid.Same(g.Fields[0].Grid) {
		return nil, fmt.Errorf("it has %d fields on the grid %v, the granule has %d on %v",
			len(value.Fields), value.Fields[0].Grid, len(g.Fields), g.Fields[0].Grid)
	}
	fields := make([]filledField, len(g.Fields))
	for i := range fields {
		n := len(value.Fields[i].Values)
		fields[i] = filledField{value: make([]float32, n), sigma: sigma[i].Values, filled: make([]bool, n)}
		g.Transform.Forward(fields[i].value, value.Fields[i].Values)
		for c, f := range flags[i].Values {
			fields[i].filled[c] = finite(f) && byte(f)&infer.Interpolated != 0
		}
	}
	return fields, nil
}

func finite(x float32) bool { return x-x == 0 }

// roundChange rounds a change for people.
func roundChange(sigmas float64) float64 { return math.Round(sigmas*1000) / 1000 }
