package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"
)

// passOptions choose the days of one pass over an archive and the callbacks
// that follow it.
type passOptions struct {
	days   Days                                 // zero: the look-back
	handOn func(Granule) error                  // takes each new granule
	until  time.Time                            // no backfill is begun after it; zero: no end
	begin  func(downloads []Action)             // told the downloads ahead; may be nil
	bytes  func(o Object, n int)                // told of bytes as they come; may be nil
	done   func(o Object, kind Kind, err error) // told of each download; may be nil
}

// tally is the result of a pass.
type tally struct {
	survey
	problems []Problem
	underWay int // downloads that outlast the pass
}

// pass hands on the new granules. Its error is one of the archive, the record
// or the local disk; a fault of a single object goes to OnProblem.
func (w *Watcher) pass(ctx context.Context, opts passOptions) (tally, error) {
	w.works(true)
	defer w.works(false)
	s, err := w.survey(ctx, opts.days)
	if err != nil {
		return tally{}, err
	}
	w.alive()
	t := tally{survey: s}
	w.sighting = w.sort(t.survey)
	if err := w.note(ctx, &t); err != nil {
		return t, errors.Join(err, t.err)
	}
	downloads := pick(t.actions)
	if opts.begin != nil {
		opts.begin(downloads)
	}
	if err := w.fetchAll(ctx, downloads, opts, &t); err != nil {
		return t, errors.Join(err, t.err)
	}
	w.raiseLate(ctx, t)
	return t, errors.Join(t.err, w.remember(ctx, opts, t))
}

// pick returns the downloads, the live lane first, each in the order of names.
func pick(actions []Action) []Action {
	var picked []Action
	for _, lane := range []Lane{Live, Backfill} {
		for _, a := range actions {
			if (a.Kind == New || a.Kind == Changed) && a.Lane == lane {
				picked = append(picked, a)
			}
		}
	}
	return picked
}

// note records the actions that need no download, in one transaction.
func (w *Watcher) note(ctx context.Context, t *tally) error {
	var changes []Change
	vanished := 0
	for _, a := range t.actions {
		c := Change{Kind: a.Kind, Object: a.Object, From: a.From, At: t.now}
		switch a.Kind {
		case Touched, Moved, Returned:
		case Vanished:
			vanished++
		case Refused:
			err := fmt.Errorf("%w: %s", ErrName, a.Why)
			c.Reason = fmt.Sprintf("%q: %v", a.Object.Name, err)
			w.problem(ctx, t, Problem{Object: a.Object, Err: err})
		default:
			continue
		}
		changes = append(changes, c)
	}
	if vanished > t.listed { // more than half of the known objects
		w.log.Warn("most of the archive is gone", "vanished", vanished, "listed", t.listed)
	}
	if len(changes) == 0 {
		return nil
	}
	if err := w.parts.Deliveries.Record(ctx, changes...); err != nil {
		return fmt.Errorf("record %d changes: %w", len(changes), err)
	}
	return nil
}

// finish records how one download ended and hands the granule on if its
// bytes are new. An error ends the pass.
func (w *Watcher) finish(ctx context.Context, a arrival, opts passOptions, t *tally) error {
	o := a.action.Object
	change, err := w.judge(ctx, a, t.now)
	if opts.done != nil && ctx.Err() == nil {
		opts.done(o, change.Kind, err)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrSpool), errors.Is(err, ErrPermanent):
		return err
	case err != nil:
		s := w.sighting[o.Name]
		s.failures, s.failed, s.slow = s.failures+1, t.now, errors.Is(err, ErrSlow)
		w.sighting[o.Name] = s
		w.problem(ctx, t, Problem{Object: o, Err: err})
		return nil
	}
	if err := w.parts.Deliveries.Record(ctx, change); err != nil {
		return fmt.Errorf("record %s: %w", o.Name, err)
	}
	delete(w.sighting, o.Name)
	switch change.Kind {
	case SetAside:
		w.problem(ctx, t, Problem{Object: o, Err: fmt.Errorf("set aside in %s: %w", change.Granule.Path, a.invalid)})
	case Arrived:
		w.noteDue(t, o)
		w.log.Info("granule spooled", "granule", o.Name, "bytes", o.Size)
		w.works(false) // the receiver may be busy for hours
		defer w.works(true)
		return opts.handOn(change.Granule)
	default:
		w.log.Debug("object brought known bytes", "object", o.Name, "kind", change.Kind)
	}
	return nil
}

// judge classifies a download by its bytes.
func (w *Watcher) judge(ctx context.Context, a arrival, now time.Time) (Change, error) {
	c := Change{Kind: Arrived, Object: a.action.Object, Granule: a.granule, Lane: a.action.Lane, At: now}
	if a.err != nil || ctx.Err() != nil {
		return Change{}, a.err
	}
	if a.granule.SHA256 == a.action.Known.SHA256 {
		c.Kind = Touched
		return c, nil
	}
	holders, err := w.parts.Deliveries.Holding(ctx, a.granule.SHA256)
	if err != nil {
		return Change{}, fmt.Errorf("look up bytes of %s: %w", c.Object.Name, err)
	}
	switch i := slices.IndexFunc(holders, func(k Known) bool { return holds(k, c.Object) }); {
	case i >= 0:
		c.Kind, c.From = Moved, holders[i].Name
		// In the spool, equal bytes under an equal file name are one file,
		// which the holder still needs.
		if !slices.ContainsFunc(holders, func(k Known) bool { return path.Base(k.Name) == path.Base(c.Object.Name) }) {
			w.drop(a.granule)
		}
	case a.invalid != nil:
		c.Kind, c.Reason = SetAside, a.invalid.Error()
		c.Granule, err = w.parts.Spool.Aside(a.granule, w.parts.AsideDir, c.Reason)
	}
	return c, err
}

// holds reports whether the bytes of k under the name of o are no granule of
// their own: a copy has the file name of the original, a moved file leaves its
// old name behind.
func holds(k Known, o Object) bool {
	moved := path.Base(k.Name) == path.Base(o.Name) || !k.Vanished.IsZero()
	return moved && sameDay(k.Name, o.Name)
}

// drop removes a redundant copy from the spool.
func (w *Watcher) drop(g Granule) {
	if err := os.Remove(g.Path); err != nil {
		w.log.Warn("copy left in the spool", "file", g.Path, "err", err)
	}
}

func (w *Watcher) problem(ctx context.Context, t *tally, p Problem) {
	t.problems = append(t.problems, p)
	w.parts.OnProblem(ctx, p)
}

// noteDue notes that the granule that was due has arrived.
func (w *Watcher) noteDue(t *tally, o Object) {
	if day, ok := DayInName(o.Name); ok && day.Equal(t.due.Day) {
		t.dueKnown = true
	}
}

// raiseLate reports a granule that is due and missing, once for each day.
func (w *Watcher) raiseLate(ctx context.Context, t tally) {
	if t.due.Due.IsZero() {
		return
	}
	if t.dueKnown {
		w.update(func(s *State) { s.Late = Late{} })
		return
	}
	w.update(func(s *State) { s.Late = t.due })
	if !w.alarmed.Equal(t.due.Day) {
		w.alarmed = t.due.Day
		w.parts.OnLate(ctx, t.due)
	}
}

// remember records a poll that saw the whole archive and left nothing to fetch,
// so that the next look-back may begin here.
func (w *Watcher) remember(ctx context.Context, opts passOptions, t tally) error {
	waiting := t.underWay > 0 || slices.ContainsFunc(t.actions, func(a Action) bool { return a.Kind == Waiting })
	failed := slices.ContainsFunc(t.problems, func(p Problem) bool {
		return !errors.Is(p.Err, ErrName) && !errors.Is(p.Err, ErrInvalid)
	})
	if !t.complete || !opts.days.IsZero() {
		return nil
	}
	w.update(func(s *State) {
		s.LastPoll = t.now
		if !waiting && !failed {
			s.Whole = t.now
		}
	})
	if w.parts.Polls == nil || w.cfg.Lookback == 0 || waiting || failed {
		return nil
	}
	if err := w.parts.Polls.Polled(ctx, t.now); err != nil {
		return fmt.Errorf("record poll: %w", err)
	}
	return nil
}
