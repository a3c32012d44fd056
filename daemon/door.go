package daemon

import (
	"context"

	"lacuna/fetch"
)

// A door is where granules come in while a worker is busy. Work that nobody
// waits for is put aside when one does: it can be done again.
type door struct {
	arrived <-chan fetch.Granule // closed when nothing will come any more; nil: nobody comes
	shut    bool
	still   func() bool // whether it is still to be worked; nil: it is
	put     int         // how often in a row work was put aside
}

// mostPut is how often in a row work is put aside: an archive that delivers
// faster than work is done must not keep it from ever being done.
const mostPut = 3

// look lets in who waits, and reports whether work is to go on.
func (d *door) look() bool {
	if d == nil {
		return true
	}
	select {
	case _, open := <-d.arrived:
		d.shut = !open
	default:
	}
	return !d.shut && (d.still == nil || d.still())
}

// unless does work, and cancels it when somebody comes. It reports whether the
// work was put aside for that.
func (d *door) unless(ctx context.Context, work func(context.Context) error) (put bool, err error) {
	if d == nil {
		return false, work(ctx)
	}
	if d.put >= mostPut {
		d.put = 0
		return false, work(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, watched := make(chan struct{}), make(chan bool, 1)
	go func() {
		select {
		case _, open := <-d.arrived:
			d.shut = !open // read again after the worker has heard of it
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
	if put = came && err != nil; put { // whatever it says: it was cut short
		d.put++
		return true, nil
	}
	d.put = 0
	return false, err
}
