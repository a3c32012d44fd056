package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Run trains a task with its compiled step and returns the weights to use: the
// averaged ones of the last step, or of the best score.
//
// It returns ctx.Err() when cancelled and an error that is ErrNotFinite when the
// loss blew up, with the last good state in the checkpoint in both cases. A step
// serves one run at a time.
func Run(ctx context.Context, step *Step, t Task, hooks Hooks) ([]float32, Report, error) {
	if err := t.validate(); err != nil {
		return nil, Report{}, err
	}
	r := &run{Task: t, hooks: hooks, step: step}
	if err := r.begin(); err != nil {
		return nil, Report{}, err
	}
	l := startLoader(ctx, step.backend, t, r.report.Steps)
	defer l.stop()
	var err error
	if r.unscored {
		_, err = r.score(ctx)
	}
	for err == nil && r.report.Steps < t.Optimizer.Steps && !r.report.Stopped {
		err = r.advance(ctx, l)
	}
	if err != nil {
		// The state is that of the last good step; keep it for a later run.
		return nil, r.report, errors.Join(err, r.save())
	}
	weights, err := r.result()
	return weights, r.report, err
}

// run is a Run under way.
type run struct {
	Task
	hooks    Hooks
	step     *Step
	report   Report
	best     []float32 // weights of the best score, where they are kept
	bad      int       // scores since the best
	unscored bool      // whether the score of the last step is still to be asked
	tail     mean      // mean loss over the last steps
	saved    time.Time // when the checkpoint was written last
}

type mean struct {
	sum float64
	n   int
}

// begin sets the step to its checkpoint, or to the start.
func (r *run) begin() error {
	c, err := readCheckpoint(r.hooks.Checkpoint, r.Task)
	if err != nil {
		return err
	}
	if c == nil {
		weights := r.hooks.From
		if weights == nil {
			weights = r.Layout.Init(r.Seed)
		}
		return r.step.Start(weights)
	}
	r.best, r.bad, r.unscored = c.best, c.Bad, c.Unscored && r.hooks.Score != nil
	r.report = Report{Steps: c.state.Step, Resumed: c.state.Step, Score: c.Score, ScoreStep: c.AtStep}
	r.report.Stopped = r.outOfPatience()
	return r.step.Restore(c.state)
}

// advance does one step and calls the hooks that are due after it.
func (r *run) advance(ctx context.Context, l *loader) error {
	m, err := r.one(ctx, l)
	if err != nil {
		return err
	}
	steps := r.Optimizer.Steps
	r.report.Steps = m.Step
	if m.Step > steps*9/10 {
		r.tail.sum += m.Loss
		r.tail.n++
	}
	p := Progress{Step: m.Step, Steps: steps, Loss: m.Loss, GradientNorm: m.GradientNorm}
	if r.hooks.Score != nil && (m.Step == steps || due(m.Step, r.hooks.ScoreEvery)) {
		if p.Score, err = r.score(ctx); err != nil {
			return err
		}
	}
	if r.hooks.Progress != nil {
		r.hooks.Progress(p)
	}
	if due(m.Step, r.hooks.CheckpointEvery) && r.hooks.now().Sub(r.saved) >= r.hooks.CheckpointPause {
		return r.save()
	}
	return nil
}

func due(step, every int) bool { return every > 0 && step%every == 0 }

// one does one step.
func (r *run) one(ctx context.Context, l *loader) (Metrics, error) {
	began := time.Now()
	b, err := l.next(ctx)
	r.report.Waited += time.Since(began)
	if b != nil {
		defer l.done(b)
	}
	if err != nil {
		return Metrics{}, err
	}
	m, err := r.step.Run(r.inputs(b)...)
	if errors.Is(err, ErrNotFinite) {
		err = fmt.Errorf("the learning rate %g may be too high: %w", r.Optimizer.LearningRate, err)
	}
	return m, err
}

// score asks for the score of the averaged weights.
func (r *run) score(ctx context.Context) (*float64, error) {
	r.unscored = true
	state, err := r.step.State()
	if err != nil {
		return nil, err
	}
	score, err := r.hooks.Score(ctx, state.EMA)
	if err != nil {
		return nil, fmt.Errorf("score step %d: %w", state.Step, err)
	}
	r.unscored = false
	if !finite(score) {
		score = math.MaxFloat64 // JSON has no NaN
	}
	switch {
	case !r.hooks.keepsBest():
		r.report.Score, r.report.ScoreStep = &score, state.Step
	case r.report.Score == nil || score < *r.report.Score:
		r.report.Score, r.report.ScoreStep, r.best, r.bad = &score, state.Step, state.EMA, 0
	default:
		r.bad++
	}
	r.report.Stopped = r.outOfPatience()
	return &score, nil
}

func (r *run) outOfPatience() bool {
	return r.hooks.Patience > 0 && r.bad >= r.hooks.Patience && r.report.Steps < r.Optimizer.Steps
}

// result returns the weights to use.
func (r *run) result() ([]float32, error) {
	if r.tail.n > 0 {
		r.report.Loss = r.tail.sum / float64(r.tail.n)
	}
	if err := r.save(); err != nil {
		return nil, err
	}
	if r.best != nil {
		return r.best, nil
	}
	state, err := r.step.State()
	if err != nil {
		return nil, err
	}
	return state.EMA, nil
}

// save writes the checkpoint, where one is kept.
func (r *run) save() error {
	if r.hooks.Checkpoint == "" {
		return nil
	}
	state, err := r.step.State()
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	c := checkpoint{
		header: header{Step: state.Step, Score: r.report.Score, AtStep: r.report.ScoreStep, Bad: r.bad, Unscored: r.unscored},
		best:   r.best, state: state,
	}
	r.saved = r.hooks.now()
	return c.write(r.hooks.Checkpoint, r.Task)
}
