package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Plan returns what a pass would do now and why, in the order of names,
// without doing it. Objects that are as they were are not mentioned. days
// replaces the look-back where it is not open. An error that comes with
// actions is of a listing that is not complete.
func (w *Watcher) Plan(ctx context.Context, days Days) ([]Action, error) {
	s, err := w.survey(ctx, days)
	if err != nil {
		return nil, err
	}
	w.sort(s)
	return s.actions, s.err
}

// Progress hears how a Sync comes along. Bytes may be called from several
// goroutines at a time.
type Progress interface {
	Begin(downloads []Action) // what is to be downloaded
	Bytes(o Object, n int)    // n more bytes are there
	Done(o Object, err error) // the download has ended
}

// Summary is what a Sync did.
type Summary struct {
	Listed   int   `json:"listed"`    // objects that the archive showed
	Arrived  int   `json:"arrived"`   // granules that are new
	Known    int   `json:"known"`     // downloads whose bytes were known already
	SetAside int   `json:"set_aside"` // downloads that are no granules
	Refused  int   `json:"refused"`   // names that are unfit
	Waiting  int   `json:"waiting"`   // objects that may still be being written
	Failed   int   `json:"failed"`    // downloads that came to nothing
	Bytes    int64 `json:"bytes"`     // of the granules that are new
}

// Sync brings in everything of days that is new, or of the look-back where
// days is open, and returns when there is no more to do. Where some objects
// could not be had, the others are in and the error counts what is missing.
func (w *Watcher) Sync(ctx context.Context, days Days, progress Progress) (Summary, error) {
	var sum Summary
	e := errand{days: days, handOn: func(g Granule) error {
		sum.Arrived++
		sum.Bytes += g.Size
		return nil
	}}
	e.done = func(_ Object, kind Kind, err error) {
		if err == nil && (kind == Touched || kind == Moved) {
			sum.Known++
		}
	}
	if progress != nil {
		count := e.done
		e.begin, e.bytes = progress.Begin, progress.Bytes
		e.done = func(o Object, kind Kind, err error) {
			count(o, kind, err)
			progress.Done(o, err)
		}
	}
	t, err := w.pass(ctx, e)
	sum.add(t)
	// An object that was replaced while it was being read is a new one: a
	// second look brings it in, and has what failed once more.
	replaced := func(p Problem) bool { return errors.Is(p.Err, ErrChanged) || errors.Is(p.Err, ErrCorrupt) }
	if err == nil && slices.ContainsFunc(t.problems, replaced) {
		sum.Failed, sum.Waiting = 0, 0
		t, err = w.pass(ctx, e)
		sum.add(t)
	}
	return sum, errors.Join(err, t.missing())
}

// add counts what the pass met beside granules.
func (s *Summary) add(t tally) {
	s.Listed = t.listed
	for _, a := range t.actions {
		if a.Kind == Waiting {
			s.Waiting++
		}
	}
	for _, p := range t.problems {
		switch {
		case errors.Is(p.Err, ErrName):
			s.Refused++
		case errors.Is(p.Err, ErrInvalid):
			s.SetAside++
		default:
			s.Failed++
		}
	}
}

// shownFailures is how many failures an error spells out: more would hide the
// count.
const shownFailures = 3

// missing counts the objects that could not be had and tells of the first.
func (t tally) missing() error {
	var errs []error
	for _, p := range t.problems {
		if !errors.Is(p.Err, ErrName) && !errors.Is(p.Err, ErrInvalid) {
			errs = append(errs, p.Err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	shown := errors.Join(errs[:min(len(errs), shownFailures)]...)
	return fmt.Errorf("%d of %d objects could not be fetched, such as:\n%w", len(errs), len(pick(t.actions)), shown)
}
