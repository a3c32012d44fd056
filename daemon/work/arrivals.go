package work

import (
	"context"

	"lacuna/fetch"
)

// arrivals are the granules that come in while a worker is busy. Work that
// nobody waits for is interrupted when one does: it can be done again.
type arrivals struct {
	granules    <-chan fetch.Granule // closed when nothing will come any more; nil: nothing comes
	ended       bool
	still       func() bool // whether work is to go on; nil: it is
	interrupted int         // how often in a row work was
}

// mostInterrupted is how often in a row work is interrupted: an archive that
// delivers faster than work is done must not keep it from ever being done.
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

// interrupt does work, and cancels it when a granule arrives. It reports whether
// the work was interrupted by that.
func (a *arrivals) interrupt(ctx context.Context, work func(context.Context) error) (interrupted bool, err error) {
	if a == nil {
		return false, work(ctx)
	}
	if a.interrupted >= mostInterrupted {
		a.interrupted = 0
		return false, work(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, watched := make(chan struct{}), make(chan bool, 1)
	go func() {
		select {
		case _, open := <-a.granules:
			a.ended = !open // read again after the worker has heard of it
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
	if came && err != nil { // whatever it says: it was cut short
		a.interrupted++
		return true, nil
	}
	a.interrupted = 0
	return false, err
}
