package learn

import (
	"context"
	"fmt"
	"sync"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

// A Trainer trains networks that run in a runner. It keeps compiled steps, as
// the runner keeps programs, because compiling takes longer than many a use.
type Trainer struct {
	runner *impute.Runner

	mu    sync.Mutex // guards steps
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

// CompileImputer compiles the step of Train by cfg, which then finds it ready.
func (tr *Trainer) CompileImputer(cfg Config) error {
	network, err := nn.New(cfg.Design.Network())
	if err != nil {
		return err
	}
	return tr.compile(cfg, imputerTask(network, Material{}, nil, cfg))
}

// CompileMembers compiles the step of TrainMembers by cfg, for an imputer of a design.
func (tr *Trainer) CompileMembers(imputer impute.Design, cfg Config) error {
	network, err := nn.New(imputer.Network())
	if err != nil {
		return err
	}
	weights := tensors.FromShape(shapes.Make(dtypes.Float32, network.Layout().Size))
	t, cfg, err := membersTask(imputer, weights, Material{}, nil, cfg)
	if err != nil {
		return err
	}
	return tr.compile(cfg, t)
}

// CompileReliability compiles the step of TrainReliability by cfg.
func (tr *Trainer) CompileReliability(cfg Config) error {
	t, err := reliabilityTask(Material{}, nil, cfg)
	if err != nil {
		return err
	}
	return tr.compile(cfg, t)
}

func (tr *Trainer) compile(cfg Config, t train.Task) error {
	step, err := tr.step(cfg, t)
	if err != nil {
		return err
	}
	return t.Compile(step)
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
