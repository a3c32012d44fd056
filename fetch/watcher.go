package fetch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lacuna/internal/pause"
)

// ErrInvalid marks a file that Parts.Validate found not to be a granule. Other
// errors of Validate are failures of this program, and the object is tried
// again.
var ErrInvalid = errors.New("not a granule")

// Problem is an object that could not be handed on, and why. The others are
// not held up by it.
type Problem struct {
	Object Object
	Err    error // wraps ErrName or ErrInvalid where fetching it again is pointless
}

// Late is a granule that is overdue.
type Late struct {
	Day time.Time // day of the granule
	Due time.Time // when it should have been there
}

// Parts are the collaborators of a Watcher. The first three and Log are
// required.
type Parts struct {
	Archive    Archive
	Spool      *Spool // shared by all watchers that write to one disk
	Deliveries Deliveries
	Polls      Polls // nil: after a restart the look-back starts from now
	Readers    int   // readers that the archive allows at a time; 0: any number
	// CheckName returns why an object of this name must not be fetched, or nil.
	// Where the field is nil, the function CheckName is used.
	CheckName func(name string) error
	// Validate says why the file at path is no granule, with an error that
	// wraps ErrInvalid. Several calls may run at a time. Where it is nil,
	// every file is one.
	Validate func(ctx context.Context, path string) error
	AsideDir string // for files that are no granules; empty: a folder in the spool
	// OnProblem is called with every problem, once a poll, in the goroutine of
	// the poll. Where it is nil, problems are logged.
	OnProblem func(ctx context.Context, p Problem)
	OnLate    func(ctx context.Context, l Late) // told once for each day; nil: logged
	Now       func() time.Time                  // nil: time.Now
	Random    func(n int64) int64               // 0..n-1; nil: math/rand
	Log       *slog.Logger
}

// State is the state of a Watcher for the status page.
type State struct {
	LastPoll time.Time // last poll that saw the whole archive; zero: none since the start
	Whole    time.Time // last poll that saw the whole archive and left nothing to fetch; zero: none since the start
	NextPoll time.Time
	Err      string // failure of the last poll; empty: all is well
	Refused  bool   // the archive refuses the credentials
	DiskFull bool   // intake stands still until there is room
	Late     Late   // the overdue granule; zero: none
	Slow     string // objects that came too slowly and are still missing; empty: none

	Working  bool      // a poll is under way and waits for nobody downstream
	Progress time.Time // the last progress: an entry listed, a window of a download fast enough, a download ended
}

// Stalled reports whether a poll has made no progress for longer than limit.
func (s State) Stalled(now time.Time, limit time.Duration) bool {
	return s.Working && now.Sub(s.Progress) > limit
}

// Watcher polls one archive and hands on its new granules. Run, Poll and Sync
// must not be called at the same time.
type Watcher struct {
	cfg      Config
	parts    Parts
	log      *slog.Logger
	schedule schedule
	sighting map[string]sighting // objects that are not delivered yet, by name
	alarmed  time.Time           // the last day that OnLate was called with

	lanes     lanes
	transfers transfers

	mu    sync.Mutex // guards state
	state State
}

// NewWatcher returns a Watcher. It checks cfg and touches neither the network
// nor the disk; Run does.
func NewWatcher(cfg Config, parts Parts) (*Watcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("fetch config: %w", err)
	}
	if parts.Random == nil {
		parts.Random = rand.Int64N
	}
	schedule, err := newSchedule(cfg, parts.Random)
	if err != nil {
		return nil, fmt.Errorf("fetch config: %w", err)
	}
	log := parts.Log.With("component", "fetch", "archive", cfg.Name)
	w := &Watcher{cfg: cfg, parts: parts, log: log, schedule: schedule, sighting: map[string]sighting{}, lanes: newLanes(cfg.Parallel, parts.Readers)}
	w.fillIn()
	return w, nil
}

// fillIn puts defaults in the place of parts that were not given.
func (w *Watcher) fillIn() {
	p := &w.parts
	if p.CheckName == nil {
		p.CheckName = CheckName
	}
	if p.Validate == nil {
		p.Validate = func(context.Context, string) error { return nil }
	}
	if p.AsideDir == "" {
		p.AsideDir = filepath.Join(p.Spool.dir, "aside")
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.OnProblem == nil {
		p.OnProblem = func(_ context.Context, p Problem) {
			w.log.Warn("object passed over", "object", p.Object.Name, "err", p.Err)
		}
	}
	if p.OnLate == nil {
		p.OnLate = func(_ context.Context, l Late) {
			w.log.Warn("granule is late", "day", l.Day.Format(time.DateOnly), "due", l.Due)
		}
	}
}

// State returns the present state. It is safe for concurrent use.
func (w *Watcher) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// update changes the state and returns the former one.
func (w *Watcher) update(edit func(s *State)) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.state
	edit(&w.state)
	return before
}

// alive notes progress.
func (w *Watcher) alive() {
	now := w.parts.Now()
	w.update(func(s *State) { s.Progress = now })
}

// works notes whether a poll is at work: between polls, and while the receiver
// is busy, no progress is expected.
func (w *Watcher) works(on bool) {
	now := w.parts.Now()
	w.update(func(s *State) { s.Working, s.Progress = on, now })
}

// refusedPause is the pause after refused credentials: whoever renews a
// password does so within a working day, and servers lock out clients that try
// more often.
const refusedPause = 24 * time.Hour

// Run polls until ctx is cancelled, then returns nil. An archive that refuses
// our credentials is asked again a day later. Run closes out when it returns.
func (w *Watcher) Run(ctx context.Context, out chan<- Granule) error {
	defer close(out)
	defer w.transfers.abandon()
	send := func(g Granule) error {
		select {
		case out <- g:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	due := w.parts.Now()
	clock := alarm{now: w.parts.Now}
	for {
		next := w.schedule.next(due, w.parts.Now())
		_, err := w.pass(ctx, passOptions{handOn: send, until: next})
		if ctx.Err() != nil {
			return nil
		}
		if due = w.schedule.next(due, w.parts.Now()); errors.Is(err, ErrPermanent) {
			due = w.parts.Now().Add(refusedPause)
		}
		w.conclude(err, due)
		if !w.sleep(ctx, &clock, due) {
			return nil
		}
	}
}

// sleep waits until due by the wall clock. It reports false where ctx ended.
func (w *Watcher) sleep(ctx context.Context, clock *alarm, due time.Time) bool {
	began, planned := time.Now(), due.Round(0).Sub(w.parts.Now().Round(0))
	for {
		nap, back := clock.nap(due)
		if back { // due was worked out by a clock that was wrong
			due = w.schedule.resume(clock.last, planned-time.Since(began))
			began, planned = time.Now(), due.Sub(clock.last)
			nap, _ = clock.nap(due)
		}
		if nap <= 0 {
			return true
		}
		if !pause.For(ctx, nap) {
			return false
		}
	}
}

// conclude keeps the result of a poll and logs a condition when it begins and
// when it ends, not at every poll.
func (w *Watcher) conclude(err error, due time.Time) {
	refused, full := errors.Is(err, ErrPermanent), diskFull(err)
	before := w.update(func(s *State) {
		s.NextPoll, s.Refused, s.DiskFull, s.Err, s.Slow = due, refused, full, "", w.slow()
		if err != nil {
			s.Err = err.Error()
		}
	})
	switch {
	case refused && !before.Refused:
		w.log.Warn("archive refuses us, asking once a day from now on", "err", err)
	case full && !before.DiskFull:
		w.log.Warn("disk is full, intake stopped until there is room", "err", err)
	case err != nil && !refused && !full:
		w.log.Warn("poll failed", "err", err, "retry_at", due)
	}
	if before.Refused && !refused && err == nil {
		w.log.Info("archive lets us in again")
	}
	if before.DiskFull && !full {
		w.log.Info("disk has room, intake goes on")
	}
}

// slow returns a sentence on the objects that came too slowly.
func (w *Watcher) slow() string {
	var names []string
	for name, s := range w.sighting {
		if s.slow {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%d objects come more slowly than least_kib_per_second or deadline allow, such as %s", len(names), slices.Min(names))
}

// Poll makes one pass and returns the new granules, in the order of the names,
// which is the order of the days where names begin with dates; a late download
// stands where it ended. Granules that come with an error are recorded and in
// the spool like any others.
func (w *Watcher) Poll(ctx context.Context) ([]Granule, error) {
	var fresh []Granule
	_, err := w.pass(ctx, passOptions{handOn: func(g Granule) error {
		fresh = append(fresh, g)
		return nil
	}})
	return fresh, err
}
