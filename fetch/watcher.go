package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Deliveries remembers what was handed on. It is declared here, where it is
// used; the ledger that implements it does not know this package.
type Deliveries interface {
	// Seen reports whether the newest thing known under the name of o has its
	// size and modification time, so that its bytes need not be read.
	Seen(ctx context.Context, o Object) (bool, error)
	// Arrived records that g lies in the spool and reports whether its bytes
	// differ from the newest known under its name. Afterwards Seen is true of
	// the object that g was copied from, also where the bytes are the same.
	Arrived(ctx context.Context, g Granule) (fresh bool, err error)
}

// Problem is an object that could not be handed on, and why. The others are
// not held up by it.
type Problem struct {
	Object Object
	Err    error // wraps ErrName where fetching again is pointless
}

// Parts are what a Watcher works with.
type Parts struct {
	Archive    Archive
	Spool      *Spool
	Deliveries Deliveries
	// CheckName says why an object of this name is not to be fetched, or nil.
	// Where it is nil, package function CheckName is used.
	CheckName func(name string) error
	// OnProblem is told of every problem, once a poll, in the goroutine of
	// the poll. Where it is nil, problems are logged.
	OnProblem func(ctx context.Context, p Problem)
	Log       *slog.Logger
}

// Watcher polls one archive and hands on what is new there. Run and Poll must
// not be called at the same time.
type Watcher struct {
	cfg      Config
	parts    Parts
	log      *slog.Logger
	sighting map[string]sighting // of objects that are not delivered yet
}

// NewWatcher returns a Watcher. It checks cfg and touches neither the network
// nor the disk; Run does.
func NewWatcher(cfg Config, parts Parts) (*Watcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("fetch config: %w", err)
	}
	log := parts.Log.With("component", "fetch", "archive", cfg.Name)
	if parts.CheckName == nil {
		parts.CheckName = CheckName
	}
	if parts.OnProblem == nil {
		parts.OnProblem = func(_ context.Context, p Problem) {
			log.Warn("object passed over", "object", p.Object.Name, "err", p.Err)
		}
	}
	return &Watcher{cfg: cfg, parts: parts, log: log, sighting: map[string]sighting{}}, nil
}

// Run polls until ctx is cancelled, then returns nil. Any other return is a
// failure that needs an operator. Run closes out when it returns.
func (w *Watcher) Run(ctx context.Context, out chan<- Granule) error {
	defer close(out)
	send := func(g Granule) error {
		select {
		case out <- g:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	tick := time.NewTicker(w.cfg.PollInterval)
	defer tick.Stop()
	for {
		err := w.poll(ctx, send)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrPermanent):
			return err
		case err != nil:
			w.log.Warn("poll failed", "err", err, "retry_in", w.cfg.PollInterval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Poll makes one pass and returns what is new, in the order of the names,
// which is the order of the days where names begin with dates. Granules that
// come with an error are recorded and in the spool like any others.
func (w *Watcher) Poll(ctx context.Context) ([]Granule, error) {
	var fresh []Granule
	err := w.poll(ctx, func(g Granule) error {
		fresh = append(fresh, g)
		return nil
	})
	return fresh, err
}

// poll hands on what is new. Its error is of the archive, the record or the
// local disk; what is wrong with a single object goes to OnProblem.
func (w *Watcher) poll(ctx context.Context, handOn func(Granule) error) error {
	objects, listErr := w.parts.Archive.List(ctx)
	if listErr != nil {
		listErr = fmt.Errorf("list archive %s: %w", w.cfg.Name, listErr)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	slices.SortFunc(objects, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	ready, err := w.ready(ctx, objects, time.Now())
	if err != nil {
		return errors.Join(err, listErr)
	}
	for _, o := range ready {
		if err := w.deliver(ctx, o, handOn); err != nil {
			return errors.Join(err, listErr)
		}
	}
	return listErr
}

// ready returns the objects that are to be fetched now, and remembers those
// that have yet to settle.
func (w *Watcher) ready(ctx context.Context, objects []Object, now time.Time) ([]Object, error) {
	var ready []Object
	waiting := map[string]sighting{}
	for _, o := range objects {
		seen, err := w.parts.Deliveries.Seen(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", o.Name, err)
		}
		if seen {
			continue
		}
		if err := w.parts.CheckName(o.Name); err != nil {
			w.parts.OnProblem(ctx, Problem{Object: o, Err: fmt.Errorf("%w: %w", ErrName, err)})
			continue
		}
		s := w.sighting[o.Name].next(o, now)
		waiting[o.Name] = s
		if s.quiet(now) >= w.cfg.Settle {
			ready = append(ready, o)
		}
	}
	w.sighting = waiting
	return ready, nil
}

// deliver brings one object in and hands it on if its bytes are new.
func (w *Watcher) deliver(ctx context.Context, o Object, handOn func(Granule) error) error {
	g, err := w.parts.Spool.Bring(ctx, w.parts.Archive, o)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrSpool), errors.Is(err, ErrPermanent):
		return err
	case err != nil:
		w.parts.OnProblem(ctx, Problem{Object: o, Err: err})
		return nil
	}
	fresh, err := w.parts.Deliveries.Arrived(ctx, g)
	if err != nil {
		return fmt.Errorf("record %s: %w", o.Name, err)
	}
	if !fresh {
		w.log.Debug("object touched, same bytes", "object", o.Name)
		return nil
	}
	w.log.Info("granule spooled", "granule", g.Name, "bytes", g.Size)
	return handOn(g)
}

// sighting is how an object was last seen, and since when it looks so.
type sighting struct {
	object Object
	since  time.Time // by our clock
}

// next returns the sighting that follows s. An object that is seen for the
// first time is taken to be as old as the archive says.
func (s sighting) next(o Object, now time.Time) sighting {
	first := s.object.Name == ""
	same := s.object.Size == o.Size && s.object.ModTime.Equal(o.ModTime) && s.object.ETag == o.ETag
	switch {
	case !first && same:
		return s
	case first && o.ModTime.Before(now):
		return sighting{object: o, since: o.ModTime}
	default: // it changed under our eyes, or its clock runs ahead of ours
		return sighting{object: o, since: now}
	}
}

// quiet is how long the object has not changed, as far as can be told.
func (s sighting) quiet(now time.Time) time.Duration { return now.Sub(s.since) }
