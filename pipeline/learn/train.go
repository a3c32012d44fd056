package learn

import (
	"context"
	"fmt"
	"slices"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

const kindImputer = "imputer"

// Train trains an imputer. It returns ctx.Err() when cancelled and an error
// that is train.ErrNotFinite when the loss blew up, with the last good state
// in the checkpoint in both cases.
func (tr *Trainer) Train(ctx context.Context, m Material, source Source, cfg Config, hooks train.Hooks) (*impute.Model, train.Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, train.Report{}, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(cfg.Design.Network())
	if err != nil {
		return nil, train.Report{}, err
	}
	if cfg.SpreadOnly && hooks.From != nil {
		hooks.From = withoutMean(network.Layout(), hooks.From)
	}
	weights, report, err := tr.run(ctx, cfg, imputerTask(network, m, source, cfg), hooks)
	if err != nil {
		return nil, report, fmt.Errorf("train imputer: %w", err)
	}
	model, err := impute.NewModel(tr.runner, cfg.Design, cfg, weights)
	return model, report, err
}

// TrainBy trains a network of cfg's design by the squared error, on examples
// whose image and target draw makes. The kind tells its checkpoints from those
// of others. It returns the weights, and ends as Train does.
func (tr *Trainer) TrainBy(ctx context.Context, kind string, draw func(x, y impute.Image, t Augmented) error, m Material, source Source, cfg Config, hooks train.Hooks) ([]float32, train.Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, train.Report{}, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(cfg.Design.Network())
	if err != nil {
		return nil, train.Report{}, err
	}
	t := cfg.task(network)
	t.Kind, t.Loss, t.Fill = kind, imputerLoss(network, 0, pointLoss), customExamples{newExamples(m, source, cfg), draw}.fill
	weights, report, err := tr.run(ctx, cfg, t, hooks)
	if err != nil {
		return nil, report, fmt.Errorf("train %s: %w", kind, err)
	}
	return weights, report, nil
}

// customExamples makes examples whose image and target are drawn by a function.
type customExamples struct {
	*imputerExamples
	draw func(x, y impute.Image, t Augmented) error
}

func (l customExamples) fill(ctx context.Context, b *train.Batch, item int, n uint64) error {
	t, err := l.augment(ctx, b, n)
	if err != nil {
		return err
	}
	x, y := l.cfg.planes(b, imageTensor, item), l.cfg.planes(b, targetTensor, item)
	if err := l.draw(x, y, t); err != nil {
		return fmt.Errorf("example %d: %w", n, err)
	}
	b.Buffers[timeTensor][item] = t.Level.T
	x.Turn(t.turn)
	y.Turn(t.turn)
	return nil
}

func imputerTask(network nn.Network, m Material, source Source, cfg Config) train.Task {
	t := cfg.task(network)
	t.Kind, t.Loss, t.Fill = kindImputer, imputerLoss(network, cfg.Beta, pointLoss), newExamples(m, source, cfg).fill
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

// task returns the fields that the tasks of a config share: its batches are
// those of the imputer, its examples come from a source.
func (c Config) task(network nn.Network) train.Task {
	return train.Task{
		Settings: c, Layout: network.Layout(), Optimizer: c.optimizer(), Seed: c.Seed,
		Dims: c.batchDims(), Scratch: scratchWindows * c.Side * c.Side, Workers: c.Workers,
	}
}
