package retrain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"lacuna/daemon/state"
)

// Ends of a session that is not the end of its training.
var (
	errBudgetSpent = errors.New("its time is spent")
	errWindowOver  = errors.New("the window of the day is over")
	ErrPaused      = errors.New("an operator paused it")
	errCancelled   = errors.New("an operator ended it")
)

// steerEvery is how often orders are looked for.
const steerEvery = time.Second

// session returns a context that ends when the training has to stop: the budget is
// spent, the window closes, or an operator says so. The cause tells which.
func (s *Scheduler) session(ctx context.Context, job unfinishedJob) (context.Context, context.CancelFunc) {
	left, why := job.Session.Add(s.Config.Budget).Sub(s.Now()), errBudgetSpent
	if _, closes := s.window.at(s.Now()); !closes.IsZero() && closes.Sub(s.Now()) < left {
		left, why = closes.Sub(s.Now()), errWindowOver
	}
	ctx, stop := context.WithTimeoutCause(ctx, left, why)
	ctx, end := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(steerEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if why := s.ordered(job); why != nil {
				end(why)
				return
			}
		}
	}()
	return ctx, func() { end(context.Canceled); stop(); <-watched }
}

// ordered returns what an operator wants of the training under way; nil: nothing.
func (s *Scheduler) ordered(job unfinishedJob) error {
	if _, asked, err := s.desk().cancelled(job.Begun); asked && err == nil {
		return errCancelled
	}
	if _, held, err := s.desk().paused(); held && err == nil {
		return ErrPaused
	}
	return nil
}

// train runs a job to its end, or to that of its session.
func (s *Scheduler) train(ctx context.Context, job unfinishedJob) error {
	now := s.Now()
	if job.Session.IsZero() || !now.Before(job.Session.Add(s.Config.Budget)) {
		job.Session = now
	}
	job.Rests = time.Time{}
	if err := state.Save(s.path(jobFile), job); err != nil {
		return err
	}
	s.Log.Info("training begins", "why", job.Why, "granules", job.Granules)
	s.stand(Standing{State: StandTraining})
	session, end := s.session(ctx, job)
	defer end()
	last, err := s.run(session, job.Args, func(e Event) { s.hear(&job, e) })
	switch {
	case last.Event == EventDone: // it was told, whatever came then
		return s.concluded(ctx, job, last)
	case ctx.Err() != nil:
		return ctx.Err() // the job stays, and is resumed at the next start
	case session.Err() != nil:
		return s.interrupted(job, context.Cause(session))
	case last.Event == EventStopped:
		s.Log.Info("training stopped", "why", strings.Join(last.Reasons, "; "))
		return nil // likewise, at the next check
	}
	return s.failed(job, last, err)
}

// run does a training here or, where there is a Remote, elsewhere: then it is no other
// dataset's turn that waits for it.
func (s *Scheduler) run(ctx context.Context, args []string, hear func(Event)) (Event, error) {
	if s.Remote == nil {
		return s.child.Run(ctx, append(append([]string{}, s.Program...), args...), os.Stderr, hear)
	}
	if s.Turn != nil {
		<-s.Turn
		defer func() { s.Turn <- struct{}{} }()
	}
	return s.Remote.Train(ctx, args, hear)
}

// Interrupted reports whether a session has ended because its training has to stop, and
// not because this process does.
func Interrupted(session context.Context) bool {
	why := context.Cause(session)
	for _, end := range []error{errBudgetSpent, errWindowOver, ErrPaused, errCancelled} {
		if errors.Is(why, end) {
			return true
		}
	}
	return false
}

// hear notes what the process tells.
func (s *Scheduler) hear(job *unfinishedJob, e Event) {
	switch e.Event {
	case EventStart:
		job.Checkpoints, job.Engine = e.Checkpoints, e.Engine
		if err := state.Save(s.path(jobFile), *job); err != nil {
			s.Log.Warn("training not noted", "err", err)
		}
	case EventProgress:
		s.stand(Standing{State: StandTraining, Phase: e.Phase, Step: e.Step, Steps: e.Steps, LeftSeconds: e.LeftSeconds})
		s.Log.Debug("training", "phase", e.Phase, "step", e.Step, "steps", e.Steps, "loss", e.Loss)
	}
}

// interrupted leaves a training for later, or for good.
func (s *Scheduler) interrupted(job unfinishedJob, why error) error {
	job.Session = time.Time{}
	s.held = errors.Is(why, ErrPaused)
	switch {
	case errors.Is(why, errCancelled):
		_, err := s.obey()
		return err
	case errors.Is(why, errBudgetSpent):
		job.Rests = s.nextSession(s.Now())
	}
	s.Log.Info("training interrupted", "why", why)
	return state.Save(s.path(jobFile), job)
}

// nextSession returns when a training goes on whose budget is spent: when the
// window opens again, else when a day has passed since its session began.
func (s *Scheduler) nextSession(now time.Time) time.Time {
	if opens := s.window.nextOpening(now); !opens.IsZero() {
		return opens
	}
	return now.Add(max(24*time.Hour-s.Config.Budget, 0))
}

// concluded records the end of a training.
func (s *Scheduler) concluded(ctx context.Context, job unfinishedJob, done Event) error {
	var err error
	if done.State == StateWaiting && s.shadows(true) {
		err = s.beginShadow(context.WithoutCancel(ctx), done.Version)
	}
	if job.Checkpoints != "" { // the process was stopped before it could
		err = errors.Join(err, os.RemoveAll(job.Checkpoints))
	}
	return errors.Join(err, s.end(job, done))
}

// failed tries a training again later, or gives it up.
func (s *Scheduler) failed(job unfinishedJob, last Event, err error) error {
	job.Failures++
	job.Session = time.Time{}
	if job.Failed = []string{err.Error()}; last.Event == EventFailed {
		job.Failed = last.Reasons
	}
	if last.Event == EventFailed && last.State == StateUnjudged { // the same days would fail the same way
		return s.end(job, last)
	}
	job.NoEngine = last.Event == EventFailed && last.Engine != ""
	if job.Failures < tries {
		return errors.Join(err, state.Save(s.path(jobFile), job))
	}
	given := fmt.Sprintf("given up after %d attempts: ", tries) + strings.Join(job.Failed, "; ")
	return errors.Join(err, s.end(job, Event{State: StateFailed, Reasons: []string{given}}))
}
