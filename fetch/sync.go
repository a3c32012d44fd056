package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Plan returns the actions of a pass, with reasons, in the order of names,
// without carrying them out. Unchanged objects are left out. days replaces the
// look-back where it is not open. An error beside actions means that the
// listing is not complete.
func (w *Watcher) Plan(ctx context.Context, days Days) ([]Action, error) {
	s, err := w.survey(ctx, days)
	if err != nil {
		return nil, err
	}
	w.sort(s)
	return s.actions, s.err
}

// Progress is called as a Sync proceeds. Bytes may be called from several
// goroutines at a time.
type Progress interface {
	Begin(downloads []Action) // the downloads ahead
	Bytes(o Object, n int)    // n more bytes are there
	Done(o Object, err error) // the download has ended
}

// Summary counts the results of a Sync.
type Summary struct {
	Listed   int   `json:"listed"`    // objects that the archive showed
	Arrived  int   `json:"arrived"`   // new granules
	Known    int   `json:"known"`     // downloads that brought known bytes
	SetAside int   `json:"set_aside"` // downloads that are not granules
	Refused  int   `json:"refused"`   // unfit names
	Waiting  int   `json:"waiting"`   // objects that may still be being written
	Failed   int   `json:"failed"`    // failed downloads
	Bytes    int64 `json:"bytes"`     // size of the new granules
}

// Sync brings in everything of days that is new, or of the look-back where days
// is open, and returns when there is no more to do. Where some objects could
// not be fetched, the others are in and the error counts the missing ones.
func (w *Watcher) Sync(ctx context.Context, days Days, progress Progress) (Summary, error) {
	var sum Summary
	opts := passOptions{days: days, handOn: func(g Granule) error {
		sum.Arrived++
		sum.Bytes += g.Size
		return nil
	}}
	opts.done = func(_ Object, kind Kind, err error) {
		if err == nil && (kind == Touched || kind == Moved) {
			sum.Known++
		}
	}
	if progress != nil {
		count := opts.done
		opts.begin, opts.bytes = progress.Begin, progress.Bytes
		opts.done = func(o Object, kind Kind, err error) {
			count(o, kind, err)
			progress.Done(o, err)
		}
	}
	t, err := w.pass(ctx, opts)
	sum.add(t)
	// An object that was replaced while it was being read is a new one: a
	// second pass brings it in, and tries the failed ones once more.
	replaced := func(p Problem) bool { return errors.Is(p.Err, ErrChanged) || errors.Is(p.Err, ErrCorrupt) }
	if err == nil && slices.ContainsFunc(t.problems, replaced) {
		sum.Failed, sum.Waiting = 0, 0
		t, err = w.pass(ctx, opts)
		sum.add(t)
	}
	return sum, errors.Join(err, t.missing())
}

// Add adds the counts of another archive.
func (s *Summary) Add(o Summary) {
	s.Listed, s.Arrived, s.Known, s.SetAside = s.Listed+o.Listed, s.Arrived+o.Arrived, s.Known+o.Known, s.SetAside+o.SetAside
	s.Refused, s.Waiting, s.Failed, s.Bytes = s.Refused+o.Refused, s.Waiting+o.Waiting, s.Failed+o.Failed, s.Bytes+o.Bytes
}

// add counts the objects of the pass that are not granules.
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

// shownFailures is the number of failures that an error spells out: more would
// hide the count.
const shownFailures = 3

// missing returns an error with the number of failed objects and the first few.
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
