package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/ingest"
)

// Summary counts granules by their outcome.
type Summary struct {
	Products, SetAside, Unfinished int
	TooFresh                       int // files of the archives that may still be being written
}

// A task is a unit of work: a granule to be filled, a re-analysis or a score.
type task struct {
	what string // name in errors and logs
	live bool   // of the live lane: urgent, and never interrupted
	do   func(ctx context.Context, done *Summary) error
}

// leastTurn is the least time to wait for a training to have had its turn: jobs beside
// the worker, which it waits for too, may take longer than it would need.
const leastTurn = 100 * time.Millisecond

// WorkOff does every task that is due, the most urgent first. Its error names the
// tasks that were left unfinished for a reason of our own.
func (w *Worker) WorkOff(ctx context.Context) (Summary, error) { return w.workOff(ctx, nil) }

// workOff runs tasks, the most urgent first, until none is left or the watcher has
// ended.
func (w *Worker) workOff(ctx context.Context, at *arrivals) (done Summary, err error) {
	var errs []error
	failed := map[int64]bool{} // granules that are not tried again in this round, and scores, which count from -1 down
	defer func() { err = errors.Join(err, w.drop()) }()
	w.round = &done
	if err := w.resume(ctx); err != nil {
		return done, err
	}
	if err := w.lookBeside(ctx); err != nil {
		return done, err
	}
	for at.goOn() && ctx.Err() == nil {
		w.Heartbeat.Beat()
		w.takeAll(ctx)
		for id, err := range w.refused {
			failed[id] = true
			done.Unfinished++
			errs = append(errs, err)
			delete(w.refused, id)
		}
		next, err := w.next(ctx, failed)
		if err != nil || next == nil && len(w.sent) == 0 {
			return done, errors.Join(append(errs, err)...)
		}
		if next == nil {
			w.awaitAny(ctx, at, nil)
			continue
		}
		w.Heartbeat.Rest() // while it waits for its turn, or for a slot
		hold := w.Trainings.Hold
		if !next.live {
			if owed := w.Trainings.Owed(); owed > 0 {
				w.awaitAny(ctx, at, time.After(max(owed, leastTurn)))
				continue
			}
			hold = w.Trainings.HoldInTurn
		}
		interrupted := false
		err = w.Slots.Within(ctx, next.live, func() error {
			defer hold()()
			w.Heartbeat.Beat()
			w.pressed = !w.away() && !next.live && at.pressed()
			if next.live {
				return next.do(ctx, &done)
			}
			interrupted, err = at.interrupt(ctx, func(ctx context.Context) error { return next.do(ctx, &done) })
			return err
		})
		if interrupted {
			w.Log.Debug("put off for a granule that has just arrived", "what", next.what)
			continue
		}
		if err != nil {
			done.Unfinished++
			errs = append(errs, fmt.Errorf("%s: %w", next.what, err))
		}
	}
	return done, errors.Join(append(errs, ctx.Err())...)
}

// next returns the most urgent task: new granules before products that were
// reopened, the live lane before the other, then the times of which the archive
// has no granule, and scores when all else is done. Nil: there is none, or none
// before the results of the jobs under way.
// The worker calls it after each task, because an urgent one may have come
// meanwhile.
func (w *Worker) next(ctx context.Context, failed map[int64]bool) (*task, error) {
	if err := w.takeUp(ctx); err != nil {
		return nil, err
	}
	pending, err := w.pending(ctx, len(failed)+1)
	if err != nil {
		return nil, err
	}
	var fill *task
	for _, g := range pending {
		if !failed[g.ID] && (!w.full() || g.Lane == ledger.Live) {
			fill = w.fillTask(g, failed)
			break
		}
	}
	lanes := []ledger.Lane{ledger.Live, ledger.Backfill}
	if w.Backfill.Rests() {
		lanes = lanes[:1]
		if fill != nil && !fill.live {
			fill = nil
		}
	}
	for _, lane := range lanes {
		if fill != nil && (fill.live || lane == ledger.Backfill) {
			return fill, nil
		}
		if w.lookingAgain() {
			continue
		}
		if len(w.sent) > 0 && lane == ledger.Backfill {
			break
		}
		r, ok, err := w.Books.DueReopening(ctx, w.set.Name, lane, w.Now())
		if err != nil {
			return nil, err
		}
		if ok {
			return w.reanalysisTask(r), nil
		}
	}
	if len(w.sent) > 0 {
		return nil, nil // their results come first
	}
	if len(pending) == 0 { // else the granule of a day that seems to be missing may be among them
		noted, err := w.noteAbsences(ctx)
		if err != nil {
			return nil, err
		}
		if noted > 0 {
			return w.next(ctx, failed)
		}
	}
	due, ok, err := w.Books.NextSkill(ctx, w.set.Name)
	if err != nil || !ok || failed[-due.ID] {
		return nil, err
	}
	return &task{what: "score of " + due.Granule.Name, do: func(ctx context.Context, _ *Summary) error {
		err := w.score(ctx, due)
		if err != nil && ctx.Err() == nil {
			failed[-due.ID] = true
		}
		return err
	}}, nil
}

func (w *Worker) fillTask(g ledger.Granule, failed map[int64]bool) *task {
	return &task{what: "granule " + g.Name, live: g.Lane == ledger.Live, do: func(ctx context.Context, done *Summary) error {
		var err error
		if g.Lane == ledger.Backfill {
			w.Backfill.Begun()
		}
		sends := w.away() || w.ahead() && g.Lane == ledger.Backfill
		if sends {
			err = w.dispatch(ctx, g, false)
		} else if err = w.makeWay(ctx); err == nil {
			err = w.process(ctx, g)
		}
		bad := (*ingest.BadGranule)(nil)
		switch {
		case errors.As(err, &bad):
			done.SetAside++
			err = w.setAside(ctx, g, bad)
		case err == nil && !sends:
			done.Products++
		}
		if err != nil && ctx.Err() == nil {
			failed[g.ID] = true
		}
		return err
	}}
}

func (w *Worker) reanalysisTask(r ledger.Reopening) *task {
	return &task{what: "reopened product of " + r.Granule, do: func(ctx context.Context, done *Summary) error {
		revised, err := w.reanalyse(ctx, r)
		if revised {
			done.Products++
		}
		if err != nil && ctx.Err() == nil {
			// It stays open, behind the others.
			return errors.Join(err, w.Books.PostponeReopening(ctx, r.ID, w.Now(), w.set.Retry))
		}
		return err
	}}
}
