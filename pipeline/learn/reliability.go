package learn

import (
	"context"
	"fmt"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

const kindReliability = "reliability"

// ReliabilityConfig returns the settings of the classifier for patches like
// cfg's: a tiny network that learns fast, in a third of the steps and batches of
// at least as many cells as 32 windows of 64×64 have. With a third of
// that it is no better than the share of cells that are query.
func ReliabilityConfig(cfg Config) Config {
	const cells = 32 * 64 * 64
	cfg.Design = impute.Design{Backbone: cfg.Design.Backbone, Size: nn.Tiny}
	cfg.Steps = max(cfg.Steps/3, 1)
	cfg.Batch = max(cfg.Batch, cells/(cfg.Side*cfg.Side))
	cfg.LearningRate, cfg.WarmupSteps, cfg.EMADecay = 1e-2, min(cfg.WarmupSteps, cfg.Steps/10), min(cfg.EMADecay, 0.99)
	cfg.Clean, cfg.Beta, cfg.SpreadOnly = 1, 0, false
	return cfg
}

// TrainReliability trains the classifier on the partitions of source: over the
// sea, is a cell query or not? It ends as Train does.
func (tr *Trainer) TrainReliability(ctx context.Context, m Material, source Source, cfg Config, hooks train.Hooks) (*impute.Reliability, train.Report, error) {
	t, err := reliabilityTask(m, source, cfg)
	if err != nil {
		return nil, train.Report{}, err
	}
	weights, report, err := tr.run(ctx, cfg, t, hooks)
	if err != nil {
		return nil, report, fmt.Errorf("train reliability: %w", err)
	}
	r, err := impute.NewReliability(tr.runner, cfg.Design, cfg, weights)
	return r, report, err
}

func reliabilityTask(m Material, source Source, cfg Config) (train.Task, error) {
	if err := cfg.Validate(); err != nil {
		return train.Task{}, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(impute.ReliabilityNetwork(cfg.Design))
	if err != nil {
		return train.Task{}, err
	}
	t := cfg.task(network)
	t.Kind, t.Loss, t.Fill = kindReliability, reliabilityLoss(network), reliabilityExamples{newExamples(m, source, cfg)}.fill
	t.Dims = [][]int{{cfg.Batch, impute.ReliabilityPlanes, cfg.Side, cfg.Side}, {cfg.Batch}, {cfg.Batch, 2, cfg.Side, cfg.Side}}
	return t, nil
}

// reliabilityExamples makes examples of masks alone.
type reliabilityExamples struct{ *imputerExamples }

func (l reliabilityExamples) fill(ctx context.Context, b *train.Batch, item int, n uint64) error {
	t, err := l.augment(ctx, b, n)
	if err != nil {
		return err
	}
	x, y := l.cfg.planes(b, imageTensor, item), l.cfg.planes(b, targetTensor, item)
	impute.EncodeMasks(x, &t.In)
	target, weight := y.Plane(ValueOfTarget), y.Plane(WeightOfTarget)
	for i := range target {
		target[i], weight[i] = 0, 0
		if t.Query[i] {
			target[i] = 1
		}
		if t.In.Sea[i] {
			weight[i] = 1
		}
	}
	b.Buffers[timeTensor][item] = 0
	x.Turn(t.turn)
	y.Turn(t.turn)
	return nil
}
