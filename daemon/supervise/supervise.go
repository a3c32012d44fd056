// Package supervise keeps the stages of the service running: a stage that panics,
// fails or hangs is named in the log and started again, and the others do not
// notice. A stage shows its progress by a heartbeat.
//
// It does not know what a stage does.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Stage is a part of the service that runs as long as the service does.
type Stage struct {
	Name      string
	Heartbeat *Heartbeat // nil: it is not watched
	// Run returns nil when intake is cancelled and the work in hand is done, or
	// dropped because work is cancelled. It may be called again when it has
	// returned.
	Run func(intake, work context.Context) error
}

// Lasting returns run as a stage that ends at once when ctx is cancelled.
func Lasting(name string, h *Heartbeat, run func(ctx context.Context) error) Stage {
	return Stage{Name: name, Heartbeat: h, Run: func(intake, _ context.Context) error { return run(intake) }}
}

var errHung = errors.New("it was at work and showed no sign of life")

const (
	// A stage that ends is started again after a second, then after twice as long
	// each time, so that a bug does not flood the log.
	restartMin, restartMax = time.Second, 2 * time.Minute
	// steadyAfter is how long a stage must have run for its earlier ends to be
	// forgotten.
	steadyAfter = 10 * time.Minute
)

// Supervisor keeps stages running.
type Supervisor struct {
	Log   *slog.Logger
	Pause func(n int) time.Duration // before the nth start in a row
	Check time.Duration             // time between two looks at a heartbeat
	Fatal func(err error) bool      // whether an error ends the stage for good
}

// New returns a supervisor with the usual pauses. A failure that is fatal ends
// its stage for good.
func New(log *slog.Logger, fatal func(err error) bool) *Supervisor {
	return &Supervisor{Log: log, Fatal: fatal, Check: 10 * time.Second, Pause: func(n int) time.Duration {
		return min(restartMin<<min(n-1, 20), restartMax)
	}}
}

// Keep runs s until intake is cancelled or s returns nil. A stage
// that panics, fails or hangs is named in the log and started again, unless the
// failure is fatal: then Keep returns it.
func (v *Supervisor) Keep(intake, work context.Context, s Stage) error {
	for n := 1; ; n++ {
		began := time.Now()
		err := v.once(intake, work, s)
		if err == nil || intake.Err() != nil || work.Err() != nil || v.Fatal(err) {
			return err
		}
		if time.Since(began) > steadyAfter {
			n = 1
		}
		pause := v.Pause(n)
		v.Log.Error("stage ended, it is started again", "stage", s.Name, "err", err, "in", pause)
		select {
		case <-intake.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// once runs s until it ends, and cancels it where it hangs.
func (v *Supervisor) once(intake, work context.Context, s Stage) (err error) {
	work, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	intake, stop := context.WithCancel(intake)
	defer stop()
	defer context.AfterFunc(work, stop)()
	defer v.watch(s.Heartbeat, func() { cancel(errHung) })()
	defer func() {
		s.Heartbeat.Rest()
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		} else if cause := context.Cause(work); errors.Is(cause, errHung) {
			err = cause
		}
	}()
	return s.Run(intake, work)
}

// watch calls hung when a heartbeat has been silent for too long, until the
// function that it returns is called, which waits for its goroutine.
func (v *Supervisor) watch(h *Heartbeat, hung func()) (stop func()) {
	ended := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		tick := time.NewTicker(v.Check)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if h.silent() {
				hung()
			}
		}
	})
	return func() {
		close(ended)
		watcher.Wait()
	}
}
