package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"time"

	"lacuna/internal/faults"
	"lacuna/internal/figure"
	"lacuna/internal/pause"
)

// RetryAfterError says that the archive asked not to be called again before
// After has passed.
type RetryAfterError struct {
	After time.Duration
	Err   error
}

// Error returns the failure and the pause that was asked for.
func (e *RetryAfterError) Error() string {
	return fmt.Sprintf("%v; asked to wait %s", e.Err, figure.Duration(e.After))
}

// Unwrap returns the failure.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// RetryConfig sets how often and after which pauses a call is repeated.
type RetryConfig struct {
	Attempts int           `yaml:"attempts"` // attempts in all, the first one included; 1 means no repetition
	Base     time.Duration `yaml:"base"`     // longest pause before the second attempt
	Max      time.Duration `yaml:"max"`      // longest pause before any attempt; a host that asks for longer is given up
}

// DefaultRetryConfig returns the settings that hold where a file is silent.
func DefaultRetryConfig() RetryConfig {
	return RetryConfig{
		Attempts: 5,                // with Base, outlives the restart of a server
		Base:     time.Second,      // shorter only annoys a host in trouble
		Max:      60 * time.Second, // beyond, the next poll is as good
	}
}

// Validate reports everything wrong with c.
func (c RetryConfig) Validate() error {
	var errs faults.List
	errs.Check(c.Attempts >= 1, "attempts is %d, must be at least 1", c.Attempts)
	errs.Check(c.Base > 0, "base is %v, must be positive", c.Base)
	errs.Check(c.Max >= c.Base, "max is %v, shorter than base %v", c.Max, c.Base)
	return errs.Err()
}

// Retried repeats calls of an archive that may succeed a moment later. A reader
// that breaks off goes on where it stopped; bytes that came are never asked for
// again. Between attempts it waits a random time up to Base, twice Base, four
// times Base and so on, or longer where the host says so.
type Retried struct {
	archive Archive
	cfg     RetryConfig
	random  func() float64 // returns numbers in [0, 1)
}

// NewRetried returns archive with repetition.
func NewRetried(archive Archive, cfg RetryConfig) (*Retried, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("retry config: %w", err)
	}
	return &Retried{archive: archive, cfg: cfg, random: rand.Float64}, nil
}

// List lists the archive, several times if need be. Where the last attempt
// fails too, its part of the list comes with its error.
func (r *Retried) List(ctx context.Context, scope Scope) ([]Object, error) {
	for attempt := 1; ; attempt++ {
		objects, err := r.archive.List(ctx, scope)
		if err == nil {
			return objects, nil
		}
		if !r.again(ctx, attempt, err) {
			return objects, err
		}
	}
}

// Open opens o at offset, several times if need be.
func (r *Retried) Open(ctx context.Context, o Object, offset int64) (io.ReadCloser, error) {
	src := &resumed{ctx: ctx, retried: r, object: o, offset: offset}
	if err := src.open(); err != nil {
		return nil, err
	}
	return src, nil
}

// again waits and reports true, or reports false where err will not pass, the
// attempts are used up or ctx has ended.
func (r *Retried) again(ctx context.Context, attempt int, err error) bool {
	if attempt >= r.cfg.Attempts || !passing(err) || ctx.Err() != nil {
		return false
	}
	wait, ok := r.wait(attempt, err)
	return ok && pause.For(ctx, wait)
}

// wait returns how long to wait after the given attempt, and whether that is
// worth while.
func (r *Retried) wait(attempt int, err error) (time.Duration, bool) {
	ceiling := r.cfg.Max
	if shift := attempt - 1; shift < 32 && r.cfg.Base<<shift < r.cfg.Max && r.cfg.Base<<shift > 0 {
		ceiling = r.cfg.Base << shift
	}
	wait := time.Duration(r.random() * float64(ceiling))
	var asked *RetryAfterError
	if errors.As(err, &asked) {
		if asked.After > r.cfg.Max {
			return 0, false
		}
		wait += asked.After // so that clients which were told the same do not return at once
	}
	return wait, true
}

// passing reports whether err may be gone at the next attempt.
func passing(err error) bool {
	for _, lasting := range []error{ErrPermanent, ErrChanged, ErrUnacceptable, ErrName, fs.ErrNotExist, context.Canceled, ErrHeldBack} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return true
}

// resumed is a reader that opens its object again where it breaks off.
type resumed struct {
	ctx     context.Context // context of Open: its cancellation ends Read by contract
	retried *Retried
	object  Object
	offset  int64 // position of the next byte to deliver
	src     io.ReadCloser
	failed  int // attempts since the last byte came
}

func (s *resumed) open() error {
	for {
		src, err := s.retried.archive.Open(s.ctx, s.object, s.offset)
		if err == nil {
			s.src = src
			return nil
		}
		s.failed++
		if !s.retried.again(s.ctx, s.failed, err) {
			return err
		}
	}
}

// Read delivers the next bytes, from a new reader where the old one broke.
func (s *resumed) Read(p []byte) (int, error) {
	for {
		if s.src == nil {
			if err := s.open(); err != nil {
				return 0, err
			}
		}
		n, err := s.src.Read(p)
		s.offset += int64(n)
		if n > 0 {
			s.failed = 0
		}
		if err == nil || errors.Is(err, io.EOF) {
			return n, err
		}
		_ = s.src.Close() // it is broken already, and so no error of Close is news
		s.src = nil
		s.failed++
		if !s.retried.again(s.ctx, s.failed, err) {
			s.src = broken{err}
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
}

// broken is the reader that has failed for good.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func (b broken) Close() error { return nil }

// Close closes the reader that is open.
func (s *resumed) Close() error {
	if s.src == nil {
		return nil
	}
	return s.src.Close()
}
