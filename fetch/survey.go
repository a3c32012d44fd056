package fetch

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"lacuna/internal/figure"
)

// survey is a listing of an archive, compared with the record.
type survey struct {
	actions  []Action
	listed   int
	complete bool
	err      error // the reason why the listing is not complete
	now      time.Time
	due      Late // the latest granule that is due; zero: none is expected
	dueKnown bool // the due granule is on record
}

// survey lists the archive and decides on the actions, without carrying them
// out. days replaces the look-back where it is not open.
func (w *Watcher) survey(ctx context.Context, days Days) (survey, error) {
	s := survey{now: w.parts.Now()}
	l, err := w.ask(ctx, days, s.now)
	if err != nil {
		return survey{}, err
	}
	l.objects, err = w.list(ctx, l.scope)
	if ctx.Err() != nil {
		return survey{}, ctx.Err()
	}
	if err != nil {
		s.err = fmt.Errorf("list archive %s: %w", w.cfg.Name, err)
	}
	l.complete = err == nil
	s.listed, s.complete = len(l.objects), l.complete
	if day, due, ok := w.cfg.Expect.lastDue(s.now, w.schedule.zone); ok {
		s.due = Late{Day: day, Due: due}
	}
	s.actions, err = decide(l, s.lookForDue(w.parts.Deliveries.Known(ctx)))
	if err != nil {
		return survey{}, fmt.Errorf("look up the recorded objects: %w", err)
	}
	return s, nil
}

// list lists the archive within the deadline.
func (w *Watcher) list(ctx context.Context, scope Scope) ([]Object, error) {
	late := fmt.Errorf("%w: the listing is not complete after %v; narrow the prefixes, or raise deadline", ErrSlow, w.cfg.Deadline)
	ctx, cancel := context.WithTimeoutCause(ctx, w.cfg.Deadline, late)
	defer cancel()
	scope.Progress = w.alive
	objects, err := w.parts.Archive.List(ctx, scope)
	return objects, why(ctx, err)
}

// lookForDue passes known through and notes whether the granule that is due
// is among it.
func (s *survey) lookForDue(known iter.Seq2[Known, error]) iter.Seq2[Known, error] {
	if s.due.Due.IsZero() {
		return known
	}
	return func(yield func(Known, error) bool) {
		for k, err := range known {
			if err == nil && !s.dueKnown && k.SHA256 != "" && !k.Aside {
				day, dated := DayInName(k.Name)
				s.dueKnown = dated && day.Equal(s.due.Day)
			}
			if !yield(k, err) {
				return
			}
		}
	}
}

// ask works out the scope of the listing. The look-back reaches from the last
// poll that saw everything, so that a service that was down catches up.
func (w *Watcher) ask(ctx context.Context, days Days, now time.Time) (listing, error) {
	l := listing{live: days, backfill: Days{}}
	if days.IsZero() && w.cfg.Lookback > 0 {
		from := now
		if w.parts.Polls != nil {
			last, err := w.parts.Polls.LastPoll(ctx)
			if err != nil {
				return listing{}, fmt.Errorf("look up last poll: %w", err)
			}
			if !last.IsZero() && last.Before(now) {
				from = last
			}
		}
		l.live.From = dayOf(from.Add(-w.cfg.Lookback))
		l.backfill = w.cfg.Backfill
	}
	l.scope.Prefixes = expand(w.cfg.Prefixes, l.live, now)
	l.scope.Since = l.live.From
	if !l.backfill.IsZero() {
		l.scope.Prefixes = append(l.scope.Prefixes, expand(w.cfg.Prefixes, l.backfill, now)...)
		if l.backfill.From.Before(l.scope.Since) {
			l.scope.Since = l.backfill.From
		}
	}
	return l, nil
}

// sighting is the last listing of an object, the time since which it is
// unchanged, and its failed downloads.
type sighting struct {
	object   Object
	since    time.Time // by our clock
	failures int
	failed   time.Time // the last time
	slow     bool      // the last failure was ErrSlow
}

// next returns the sighting that follows s. An object that is seen for the
// first time is taken to be as old as the archive says.
func (s sighting) next(o Object, now time.Time) sighting {
	first := s.object.Name == ""
	switch {
	case first && o.ModTime.Before(now):
		return sighting{object: o, since: o.ModTime}
	case first || !listedAlike(s.object, o):
		// It changed between two listings, or the archive's clock runs ahead of
		// ours.
		return sighting{object: o, since: now}
	case s.since.After(now): // our clock was set back
		s.since = now
	}
	if s.failed.After(now) {
		s.failed = now
	}
	return s
}

// ready reports whether the object has come to rest for long enough, and
// whether enough time has passed since it last failed: at the next poll after
// the first failure, then after one pause, two, four, up to a day.
func (s sighting) ready(now time.Time, settle, pause time.Duration) (ok bool, why string) {
	if quiet := now.Sub(s.since); quiet < settle {
		return false, fmt.Sprintf("changed %s ago, may still be being written", figure.Duration(quiet))
	}
	if s.failures < 2 {
		return true, ""
	}
	doublings := min(float64(s.failures-2), 20) // 2^20 pauses are longer than a day in any case
	wait := min(time.Duration(float64(pause)*math.Exp2(doublings)), 24*time.Hour)
	if now.Sub(s.failed) < wait {
		return false, fmt.Sprintf("failed %d times, tried again after %s", s.failures, figure.Duration(wait))
	}
	return true, ""
}

// sort turns downloads that are not to be made now into Waiting and Refused,
// and returns the sightings to remember. Known names are not checked again
// unless they changed.
func (w *Watcher) sort(s survey) map[string]sighting {
	seen := map[string]sighting{}
	for i := range s.actions {
		a := &s.actions[i]
		if a.Kind != New && a.Kind != Changed {
			continue
		}
		if err := w.parts.CheckName(a.Object.Name); err != nil {
			a.Kind, a.Why = Refused, err.Error()
			continue
		}
		sight := w.sighting[a.Object.Name].next(a.Object, s.now)
		seen[a.Object.Name] = sight
		if ok, why := sight.ready(s.now, w.cfg.Settle, w.cfg.PollInterval); !ok {
			a.Kind, a.Why = Waiting, why
		}
	}
	return seen
}
