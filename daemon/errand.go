package daemon

import (
	"context"
	"errors"
	"fmt"

	"lacuna/ledger"
	"lacuna/pipeline/ingest"
)

// An errand is one thing that a worker may do next.
type errand struct {
	what string // for errors
	live bool   // somebody waits for it
	do   func(ctx context.Context, done *Summary) error
}

// workOff runs errands, the most urgent first, until none is left or the door
// is shut. Its error tells what was left unfinished for a reason of our own.
func (w *worker) workOff(ctx context.Context, at *door) (Summary, error) {
	var done Summary
	var errs []error
	failed := map[int64]bool{} // granules that are not tried again in this round
	release := func() {}
	defer func() { release() }()
	for first := true; at.look() && ctx.Err() == nil; first = false {
		w.heartbeat.Beat()
		next, err := w.next(ctx, failed)
		if err != nil || next == nil {
			return done, errors.Join(append(errs, err)...)
		}
		if first {
			release = w.hold()
		}
		w.heartbeat.Rest() // until it is its turn
		put := false       // aside, for something that somebody waits for
		err = w.slots.Within(ctx, next.live, func() error {
			w.heartbeat.Beat()
			if next.live {
				return next.do(ctx, &done)
			}
			put, err = at.unless(ctx, func(ctx context.Context) error { return next.do(ctx, &done) })
			return err
		})
		if put {
			w.log.Debug("put aside for what has just come", "what", next.what)
			continue
		}
		if err != nil {
			done.Unfinished++
			errs = append(errs, fmt.Errorf("%s: %w", next.what, err))
		}
	}
	return done, errors.Join(append(errs, ctx.Err())...)
}

// next returns the most urgent errand: new granules before products that were
// reopened, the live lane before the other, and scores when all else is done.
// It is asked anew after each, for what is urgent may have come meanwhile.
func (w *worker) next(ctx context.Context, failed map[int64]bool) (*errand, error) {
	if err := w.takeUp(ctx); err != nil {
		return nil, err
	}
	pending, err := w.book.FirstPending(ctx, w.set.Name, len(failed)+1)
	if err != nil {
		return nil, err
	}
	var fill *errand
	for _, g := range pending {
		if !failed[g.ID] {
			fill = w.fillErrand(g, failed)
			break
		}
	}
	for _, lane := range []ledger.Lane{ledger.Live, ledger.Backfill} {
		if fill != nil && (fill.live || lane == ledger.Backfill) {
			return fill, nil
		}
		r, ok, err := w.book.DueReopening(ctx, w.set.Name, lane, w.now())
		if err != nil {
			return nil, err
		}
		if ok {
			return w.reanalysisErrand(r), nil
		}
	}
	due, ok, err := w.book.NextSkill(ctx, w.set.Name)
	if err != nil || !ok {
		return nil, err
	}
	return &errand{what: "score of " + due.Granule.Name, do: func(ctx context.Context, _ *Summary) error { return w.score(ctx, due) }}, nil
}

func (w *worker) fillErrand(g ledger.Granule, failed map[int64]bool) *errand {
	return &errand{what: "granule " + g.Name, live: g.Lane == ledger.Live, do: func(ctx context.Context, done *Summary) error {
		err := w.process(ctx, g)
		bad := (*ingest.BadGranule)(nil)
		switch {
		case errors.As(err, &bad):
			done.SetAside++
			err = w.setAside(ctx, g, bad)
		case err == nil:
			done.Products++
		}
		if err != nil && ctx.Err() == nil {
			failed[g.ID] = true
		}
		return err
	}}
}

func (w *worker) reanalysisErrand(r ledger.Reopening) *errand {
	return &errand{what: "reopened product of " + r.Granule, do: func(ctx context.Context, done *Summary) error {
		revised, err := w.reanalyse(ctx, r)
		if revised {
			done.Products++
		}
		if err != nil && ctx.Err() == nil {
			// It stays open, behind those that may have better luck.
			return errors.Join(err, w.book.PostponeReopening(ctx, r.ID, w.now().Add(w.set.Archive.PollInterval)))
		}
		return err
	}}
}
