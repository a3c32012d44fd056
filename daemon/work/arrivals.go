package work

import (
	"context"

	"lacuna/fetch"
)

// arrivals are the granules that arrive while a worker is busy. Each of them
// interrupts work outside the live lane, which can be done again.
type arrivals struct {
	granules    <-chan fetch.Granule // closed when the watcher has ended; nil: there is no watcher
	ended       bool
	still       func() bool // whether the service is to go on; nil: always
	interrupted int         // number of interruptions in a row
}

// mostInterrupted bounds the interruptions in a row: an archive that delivers
// faster than work is done must not put it off for ever.
const mostInterrupted = 3

// goOn admits a waiting granule, and reports whether work is to go on.
func (a *arrivals) goOn() bool {
	if a == nil {
		return true
	}
	select {
	case _, open := <-a.granules:
		a.ended = !open
	default:
	}
	return !a.ended && (a.still == nil || a.still())
}

// pressed reports whether the next work is done whatever arrives: what arrives
// waits for it, so it had better be short.
func (a *arrivals) pressed() bool { return a != nil && a.interrupted >= mostInterrupted }

// interrupt does work, cancels it when a granule arrives, and reports whether that
// happened.
func (a *arrivals) interrupt(ctx context.Context, work func(context.Context) error) (interrupted bool, err error) {
	if a == nil {
		return false, work(ctx)
	}
	if a.pressed() {
		a.interrupted = 0
		return false, work(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, watched := make(chan struct{}), make(chan bool, 1)
	go func() {
		select {
		case _, open := <-a.granules:
			a.ended = !open // the worker reads it after it has received from watched
			if open {
				cancel()
			}
			watched <- open
		case <-done:
			watched <- false
		}
	}()
	err = work(ctx)
	close(done)
	came := <-watched
	if came && err != nil { // any error counts as the interruption
		a.interrupted++
		return true, nil
	}
	a.interrupted = 0
	return false, err
}
