package version

import (
	"context"
	"sync/atomic"
)

// early is the making of surroundings, which begins before its phase: analyses are made
// by processors, and the prior that comes first is fitted by a device.
type early struct {
	waited atomic.Bool   // its phase has come: its progress is that of the run
	ended  chan struct{} // closed when err is known
	err    error
	cancel context.CancelFunc
}

// beginEarly begins the making of surroundings where a prior is made before them.
func (r *run) beginEarly(ctx context.Context) {
	if !r.s.needsPrior() || r.s.Only == OnlyPrior {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	e := &early{ended: make(chan struct{}), cancel: cancel}
	r.early = e
	go func() {
		defer close(e.ended)
		e.err = r.makeSurroundings(ctx)
	}()
}

// surroundings makes the surroundings, or waits for them where they were begun.
func (r *run) surroundings(ctx context.Context) error {
	if r.early == nil {
		return r.makeSurroundings(ctx)
	}
	r.early.waited.Store(true)
	<-r.early.ended
	return r.early.err
}

// endEarly ends what was begun early and is not needed any more.
func (r *run) endEarly() {
	if r.early != nil {
		r.early.cancel()
		<-r.early.ended
	}
}

// tellBackground reports how far the surroundings are, in their phase.
func (r *run) tellBackground(done, total int) {
	if r.early == nil || r.early.waited.Load() {
		r.hooks.Progress(Progress{Phase: PhaseBackground, Step: done, Steps: total})
	}
}
