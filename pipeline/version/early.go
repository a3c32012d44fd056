package version

import (
	"context"
	"errors"
)

// aside is work of a later phase that is begun early, beside another: analyses take
// processors, and trainings a device.
type aside struct {
	ended  chan struct{} // closed when err is known
	err    error
	cancel context.CancelFunc
}

// beside begins work of a later phase, where trainings run on a device: those that a
// prior draws the partitions of. Nil: it is not begun before its phase.
func (r *run) beside(ctx context.Context, do func(context.Context) error) *aside {
	if !r.s.needsPrior() || r.s.Only == OnlyPrior || r.s.Only == OnlyCalibration {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &aside{ended: make(chan struct{}), cancel: cancel}
	r.asides = append(r.asides, a)
	go func() {
		defer close(a.ended)
		a.err = do(ctx)
	}()
	return a
}

// or waits for the work, or does it where it was not begun.
func (a *aside) or(ctx context.Context, do func(context.Context) error) error {
	if a == nil {
		return do(ctx)
	}
	<-a.ended
	return a.err
}

// endAsides ends all that was begun early.
func (r *run) endAsides() {
	for _, a := range r.asides {
		a.cancel()
		<-a.ended
	}
}

// compileSteps compiles the trainings to come while others run: on a graphics card that
// is a fifth of the time of a fine-tune. A training whose step is not ready compiles it.
func (r *run) compileSteps(ctx context.Context) error {
	steps := []func() error{func() error { return r.trainer.CompileImputer(r.s.Imputer) }}
	if r.s.Members.Steps > 0 {
		steps = append(steps, func() error { return r.trainer.CompileMembers(r.s.Imputer.Design, r.s.Members) })
	}
	if r.s.Reliability.Steps > 0 {
		steps = append(steps, func() error { return r.trainer.CompileReliability(r.s.Reliability) })
	}
	for _, compile := range steps {
		if err := errors.Join(ctx.Err(), compile()); err != nil {
			return err
		}
	}
	return nil
}
