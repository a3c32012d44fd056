package learn

import (
	"context"
	"fmt"
	"sync"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/train"
)

// A Trainer trains networks that run in a runner. It keeps compiled steps, as
// the runner keeps programs, because compiling takes longer than many a use.
type Trainer struct {
	runner *impute.Runner

	mu    sync.Mutex // held while a step compiles
	steps map[string]*train.Step
}

// NewTrainer returns a trainer without anything compiled.
func NewTrainer(runner *impute.Runner) *Trainer {
	return &Trainer{runner: runner, steps: map[string]*train.Step{}}
}

// Runner returns where the networks run.
func (tr *Trainer) Runner() *impute.Runner { return tr.runner }

// Close frees everything that was compiled. The runner stays.
func (tr *Trainer) Close() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, step := range tr.steps {
		step.Close()
	}
	clear(tr.steps)
}

// run runs a task of a config.
func (tr *Trainer) run(ctx context.Context, cfg Config, t train.Task, hooks train.Hooks) ([]float32, train.Report, error) {
	step, err := tr.step(cfg, t)
	if err != nil {
		return nil, train.Report{}, err
	}
	return train.Run(ctx, step, t, hooks)
}

// step returns the compiled step of a task, made anew the first time: tasks with
// the same graph share it. Two runs must not use one at the same time.
func (tr *Trainer) step(cfg Config, t train.Task) (*train.Step, error) {
	// Everything that is built into the graph.
	key := fmt.Sprint(t.Kind, cfg.Design.Network(), t.Optimizer, cfg.Beta, t.Dims)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if step, ok := tr.steps[key]; ok {
		return step, nil
	}
	step, err := t.NewStep(tr.runner.Backend())
	if err != nil {
		return nil, err
	}
	tr.steps[key] = step
	return step, nil
}
