package impute

import (
	"context"
	"fmt"
	"slices"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

// Train trains an imputer. It returns ctx.Err() when cancelled and an error
// that is train.ErrNotFinite when the loss blew up, with the last good state
// in the checkpoint in both cases.
func Train(ctx context.Context, shop *Workshop, m Material, source Source, cfg TrainConfig, hooks train.Hooks) (*Model, train.Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, train.Report{}, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(cfg.Design.network())
	if err != nil {
		return nil, train.Report{}, err
	}
	if cfg.SpreadOnly && hooks.From != nil {
		hooks.From = withoutMean(network.Layout(), hooks.From)
	}
	weights, report, err := shop.train(ctx, cfg, imputerTask(network, m, source, cfg), hooks)
	if err != nil {
		return nil, report, fmt.Errorf("train imputer: %w", err)
	}
	model, err := NewModel(shop, cfg, weights)
	return model, report, err
}

func imputerTask(network nn.Network, m Material, source Source, cfg TrainConfig) train.Task {
	t := cfg.task(network)
	t.Kind, t.Loss, t.Fill = kindImputer, imputerLoss(network, cfg.Beta, pointLoss), newLessons(m, source, cfg).fill
	if cfg.SpreadOnly {
		t.Kind, t.Loss = kindImputer+" of spread", imputerLoss(network, cfg.Beta, spreadLoss)
	}
	return t
}

// withoutMean returns weights of a UNet whose mean is zero everywhere. Without a
// gradient it stays so.
func withoutMean(layout *nn.Layout, weights []float32) []float32 {
	out := slices.Clone(weights)
	for _, p := range layout.Params {
		if p.Name == "last.kernel" || p.Name == "last.bias" {
			channels := p.Dims[0]
			clear(out[p.Offset : p.Offset+p.Size()/channels]) // the first
		}
	}
	return out
}

// task returns what the tasks of a config share: its batches are those of the
// imputer, its examples the lessons of a source.
func (c TrainConfig) task(network nn.Network) train.Task {
	return train.Task{
		Settings: c, Layout: network.Layout(), Optimizer: c.optimizer(), Seed: c.Seed,
		Dims: c.batchDims(), Scratch: scratchWindows * c.Side * c.Side, Workers: c.Workers,
	}
}

// train runs a task of a config.
func (s *Workshop) train(ctx context.Context, cfg TrainConfig, t train.Task, hooks train.Hooks) ([]float32, train.Report, error) {
	step, err := s.step(cfg, t)
	if err != nil {
		return nil, train.Report{}, err
	}
	return train.Run(ctx, step, t, hooks)
}

// step returns the compiled step of a task, made anew the first time: tasks with
// the same graph share it. Two runs must not use one at the same time.
func (s *Workshop) step(cfg TrainConfig, t train.Task) (*train.Step, error) {
	// Everything that is built into the graph.
	key := fmt.Sprint(t.Kind, cfg.Design.network(), t.Optimizer, cfg.Beta, t.Dims)
	s.mu.Lock()
	defer s.mu.Unlock()
	if step, ok := s.steps[key]; ok {
		return step, nil
	}
	step, err := t.NewStep(s.backend)
	if err != nil {
		return nil, err
	}
	s.steps[key] = step
	return step, nil
}
