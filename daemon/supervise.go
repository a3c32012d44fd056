package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"lacuna/ledger"
)

// stage is a part of the daemon that runs for as long as it does.
type stage struct {
	name  string
	pulse *pulse // nil: nobody can tell whether it hangs
	// run returns nil when intake is cancelled and what is in hand is done, or
	// dropped because work is. It may be called again when it has returned.
	run func(intake, work context.Context) error
}

var errHung = errors.New("it was at work and showed no sign of life")

const (
	// A stage that ends is started again after a second, and where that does
	// not help after twice as long each time, so that a log is not flooded by
	// what only a new version cures.
	restartMin, restartMax = time.Second, 2 * time.Minute
	// steadyAfter is how long a stage must have run for its past to be
	// forgotten.
	steadyAfter = 10 * time.Minute
)

// supervisor keeps stages running.
type supervisor struct {
	log   *slog.Logger
	pause func(n int) time.Duration // before the nth start in a row
	check time.Duration             // how often pulses are felt
}

func newSupervisor(log *slog.Logger) *supervisor {
	return &supervisor{log: log, check: 10 * time.Second, pause: func(n int) time.Duration {
		return min(restartMin<<min(n-1, 20), restartMax)
	}}
}

// keep runs s until intake is cancelled, or it has nothing more to do. A stage
// that panics, fails or hangs is named in the log and started again: the others
// go on meanwhile. A ledger that is damaged is nothing that a stage could get
// over, and ends it.
func (v *supervisor) keep(intake, work context.Context, s stage) error {
	for n := 1; ; n++ {
		began := time.Now()
		err := v.once(intake, work, s)
		if err == nil || intake.Err() != nil || work.Err() != nil || errors.Is(err, ledger.ErrDamaged) {
			return err
		}
		if time.Since(began) > steadyAfter {
			n = 1
		}
		pause := v.pause(n)
		v.log.Error("stage ended, it is started again", "stage", s.name, "err", err, "in", pause)
		select {
		case <-intake.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// once runs s until it ends, and cancels it where it hangs.
func (v *supervisor) once(intake, work context.Context, s stage) (err error) {
	work, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	intake, stop := context.WithCancel(intake)
	defer stop()
	defer context.AfterFunc(work, stop)()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		tick := time.NewTicker(v.check)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if s.pulse.silent() {
				cancel(errHung)
			}
		}
	}()
	defer func() {
		s.pulse.rest()
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		} else if cause := context.Cause(work); errors.Is(cause, errHung) {
			err = cause
		}
	}()
	return s.run(intake, work)
}

// lasting returns run as a stage that needs no time to end.
func lasting(name string, p *pulse, run func(ctx context.Context) error) stage {
	return stage{name: name, pulse: p, run: func(intake, _ context.Context) error { return run(intake) }}
}

// unnamed makes stages of functions that end with the daemon by themselves.
func unnamed(kind string, runs []func() error) []stage {
	var all []stage
	for i, run := range runs {
		all = append(all, stage{name: fmt.Sprintf("%s %d", kind, i+1), run: func(_, _ context.Context) error { return run() }})
	}
	return all
}
