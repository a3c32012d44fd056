package fetch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"lacuna/internal/figure"
)

// ErrSlow says that an object came more slowly than allowed. Its bytes are
// kept, and the next download resumes behind them.
var ErrSlow = errors.New("comes too slowly")

// Limits bound how slow a download may be. Zero values set no limit.
type Limits struct {
	LeastRate int64         // bytes a second, over every rateWindow
	Deadline  time.Duration // from asking for the object to its last byte
}

// rateWindow is the time over which the rate of a download is measured. Pauses
// between bytes do not count: a host that sends one a second never pauses, and
// one that is restarted pauses for a minute or two. In a window at 8 KiB/s come
// 2.3 MiB.
const rateWindow = 5 * time.Minute

// stopwatch ends a download that is too slow.
type stopwatch struct {
	limits  Limits
	cancel  context.CancelCauseFunc
	release context.CancelFunc // releases the timer of the deadline
	alive   func()             // told of every window that was fast enough
	window  *time.Timer        // nil: the rate is not measured yet
	bytes   atomic.Int64       // bytes in the window under way
}

// watch returns a context for a download, which ends with ErrSlow as its cause
// where the download is slower than l. The deadline runs from now on, and the
// rate from the call of began. The caller calls stop.
func (l Limits) watch(ctx context.Context, alive func()) (context.Context, *stopwatch) {
	release := context.CancelFunc(func() {})
	if l.Deadline > 0 {
		late := fmt.Errorf("%w: not whole after %s; raise deadline if its line is that slow", ErrSlow, figure.Duration(l.Deadline))
		ctx, release = context.WithTimeoutCause(ctx, l.Deadline, late)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &stopwatch{limits: l, cancel: cancel, release: release, alive: alive}
}

// began starts the measurement of the rate, once the archive has answered: time
// spent waiting for other downloads is not the object's fault.
func (s *stopwatch) began(ctx context.Context) {
	if s.limits.LeastRate <= 0 {
		return
	}
	s.window = time.AfterFunc(rateWindow, func() { s.judge(ctx) })
}

// judge checks the rate of the window that is over and begins the next.
func (s *stopwatch) judge(ctx context.Context) {
	came := s.bytes.Swap(0)
	switch {
	case ctx.Err() != nil:
	case came < s.limits.LeastRate*int64(rateWindow/time.Second):
		s.cancel(fmt.Errorf("%w: %s in %s, at least %d KiB a second are wanted; lower least_kib_per_second if its line is that slow",
			ErrSlow, figure.Bytes(came), figure.Duration(rateWindow), s.limits.LeastRate>>10))
	default:
		s.alive()
		s.window.Reset(rateWindow)
	}
}

// came counts bytes.
func (s *stopwatch) came(n int) { s.bytes.Add(int64(n)) }

// stop ends the watch.
func (s *stopwatch) stop() {
	if s.window != nil {
		s.window.Stop()
	}
	s.cancel(nil)
	s.release()
}

// why returns the reason why a download ended, which err may hide: a read that
// was cut off says no more than that.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrSlow) {
		return cause
	}
	return err
}
