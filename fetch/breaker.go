package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"lacuna/internal/faults"
)

// ErrHeldBack says that an archive was not asked, because it failed so often
// that asking again would help nobody. The text says why and until when.
var ErrHeldBack = errors.New("archive is held back")

// BreakerConfig sets when an archive is held back, and for how long.
type BreakerConfig struct {
	Failures int           `yaml:"failures"` // failures in a row that hold an archive back
	Hold     time.Duration `yaml:"hold"`     // the first pause
	MaxHold  time.Duration `yaml:"max_hold"` // the longest pause: each failed trial doubles it
}

// DefaultBreakerConfig returns the settings that hold where a file is silent.
func DefaultBreakerConfig() BreakerConfig {
	return BreakerConfig{
		Failures: 3,                // each is a call that was repeated already
		Hold:     time.Minute,      // an outage shorter than this costs one poll
		MaxHold:  30 * time.Minute, // granules come daily; half an hour late is early
	}
}

// Validate reports everything wrong with c.
func (c BreakerConfig) Validate() error {
	var errs faults.List
	errs.Check(c.Failures >= 1, "failures is %d, must be at least 1", c.Failures)
	errs.Check(c.Hold > 0, "hold is %v, must be positive", c.Hold)
	errs.Check(c.MaxHold >= c.Hold, "max_hold is %v, shorter than hold %v", c.MaxHold, c.Hold)
	return errs.Err()
}

// Phase is the state of a Breaker: whether it lets calls pass.
type Phase string

// The phases of a Breaker.
const (
	Closed  Phase = "closed"  // calls pass
	Opened  Phase = "open"    // calls are refused until a time
	Probing Phase = "probing" // one call is under way to see whether the archive is back
)

// BreakerState is the view of a Breaker for operators.
type BreakerState struct {
	Phase    Phase
	Failures int       // failures in a row
	Until    time.Time // the next trial, where Phase is Opened
	Cause    error     // the last failure; nil after a success
}

// Breaker stops calling an archive that keeps failing, and tries it again from
// time to time. That an object is gone or changed, that credentials are
// refused and that a caller gave up are no failures: an answer came.
type Breaker struct {
	archive Archive
	cfg     BreakerConfig
	mu      sync.Mutex // guards state and hold
	state   BreakerState
	hold    time.Duration // pause of the next opening
}

// NewBreaker returns archive behind a breaker that lets calls pass.
func NewBreaker(archive Archive, cfg BreakerConfig) (*Breaker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("breaker config: %w", err)
	}
	return &Breaker{archive: archive, cfg: cfg, state: BreakerState{Phase: Closed}, hold: cfg.Hold}, nil
}

// State returns the state of the breaker. A time for the next trial that has
// passed means that the next call is the trial.
func (b *Breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// List lists the archive unless it is held back.
func (b *Breaker) List(ctx context.Context, scope Scope) ([]Object, error) {
	if err := b.admit(time.Now()); err != nil {
		return nil, err
	}
	objects, err := b.archive.List(ctx, scope)
	b.report(ctx, time.Now(), err)
	return objects, err
}

// Open opens o unless the archive is held back. Failures of the reader count
// too.
func (b *Breaker) Open(ctx context.Context, o Object, offset int64) (io.ReadCloser, error) {
	if err := b.admit(time.Now()); err != nil {
		return nil, err
	}
	src, err := b.archive.Open(ctx, o, offset)
	if err != nil {
		b.report(ctx, time.Now(), err)
		return nil, err
	}
	report := func(err error) { b.report(ctx, time.Now(), err) }
	return &watchedReader{ReadCloser: src, report: report}, nil
}

// admit lets a call pass, or returns the reason why not.
func (b *Breaker) admit(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.Phase == Closed {
		return nil
	}
	if b.state.Phase == Opened && !now.Before(b.state.Until) {
		b.state.Phase = Probing
		return nil
	}
	return fmt.Errorf("%w until %s after %d failures, last: %w", ErrHeldBack,
		b.state.Until.UTC().Format(time.RFC3339), b.state.Failures, b.state.Cause)
}

// report counts the result of a call.
func (b *Breaker) report(ctx context.Context, now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		if b.state.Phase == Probing { // the trial was inconclusive; the next call is another
			b.state.Phase = Opened
		}
		return
	}
	if !outage(err) {
		b.state, b.hold = BreakerState{Phase: Closed}, b.cfg.Hold
		return
	}
	b.state.Failures++
	b.state.Cause = err
	if b.state.Phase == Opened { // a call that began before the breaker opened
		return
	}
	var asked *RetryAfterError
	told := errors.As(err, &asked) && asked.After > b.cfg.Hold
	if b.state.Phase == Closed && b.state.Failures < b.cfg.Failures && !told {
		return
	}
	hold := b.hold
	if told {
		hold = min(max(hold, asked.After), b.cfg.MaxHold)
	}
	b.state.Phase, b.state.Until = Opened, now.Add(hold)
	b.hold = min(2*b.hold, b.cfg.MaxHold)
}

// outage reports whether err is a failure of the archive, not an answer of it.
func outage(err error) bool {
	for _, answer := range []error{nil, ErrPermanent, ErrChanged, ErrUnacceptable, ErrName, fs.ErrNotExist} {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}

// watchedReader reports the result of reading to the breaker, once.
type watchedReader struct {
	io.ReadCloser
	report func(error)
	done   bool
}

// Read reads on.
func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	switch {
	case err == nil || w.done:
	case errors.Is(err, io.EOF):
		w.done = true
		w.report(nil)
	default:
		w.done = true
		w.report(err)
	}
	return n, err
}

// Close closes the reader. One that was given up half-way had worked so far.
func (w *watchedReader) Close() error {
	if !w.done {
		w.done = true
		w.report(nil)
	}
	return w.ReadCloser.Close()
}
