package maskprior

import (
	"context"
	"time"

	"lacuna/pipeline/learn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/train"
)

// poolStudy is the cost of a pool to a training on the same device. The training
// is that of another prior, with the network size and the batch of an imputer.
type poolStudy struct {
	Strategy       string             `json:"strategy"` // none: the training alone
	StepsPerSecond float64            `json:"steps_per_second"`
	Cost           float64            `json:"cost"` // relative increase of the time of a step, without priming
	Use            *partition.PoolUse `json:"use,omitempty"`
}

// pools trains alone, beside a guided and beside an unconditional pool, and
// alone again.
func (b *bench) pools(ctx context.Context, m *prior.Model) error {
	found, err := b.strength(ctx, m, prior.AnchorCoherent)
	if err != nil {
		return err
	}
	guide := b.guide
	guide.Weight, guide.Batch = found.Weight, b.pool.Batch
	guided, err := prior.NewGuided(m, guide)
	if err != nil {
		return err
	}
	free, err := prior.NewUnconditional(m, guide.SampleConfig)
	if err != nil {
		return err
	}
	var alone []float64
	for _, by := range []partition.Strategy{nil, guided, free, nil} {
		s, err := b.trainBeside(ctx, by)
		if err != nil {
			return err
		}
		if by == nil {
			alone = append(alone, s.StepsPerSecond)
		}
		b.report.Pools = append(b.report.Pools, s)
	}
	for i := range b.report.Pools {
		b.report.Pools[i].Cost = mean(alone)/b.report.Pools[i].StepsPerSecond - 1
	}
	return nil
}

// trainBeside times steps that take their items from a pool, from the first
// report on: the steps before it include compiling and priming.
func (b *bench) trainBeside(ctx context.Context, by partition.Strategy) (poolStudy, error) {
	s := poolStudy{Strategy: "none"}
	cfg := b.options.train
	cfg.EvaluateEvery, cfg.CalibrateMasks, cfg.Step.Steps = 0, 0, b.poolSteps
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var pool *partition.Pool
	if by != nil {
		s.Strategy = by.Name()
		from := partition.Windows{Data: b.train, Refs: b.train.Refs(cfg.Side, cfg.Stride, partition.MinObservedCells), By: by}
		var err error
		if pool, err = partition.NewPool(ctx, from, b.pool, noise.New(cfg.Seed, "pool"), 0); err != nil {
			return s, err
		}
		defer pool.Close()
	}
	var first train.Progress
	var began time.Time
	taken := 0
	hooks := train.Hooks{Progress: func(p train.Progress) {
		if p.Step%reportEvery != 0 {
			return
		}
		for ; pool != nil && taken < p.Step*cfg.Batch; taken++ {
			if _, err := pool.Next(ctx); err != nil {
				stop(err)
				return
			}
		}
		if began.IsZero() {
			first, began = p, time.Now()
			return
		}
		s.StepsPerSecond = float64(p.Step-first.Step) / time.Since(began).Seconds()
	}}
	other, _, err := learn.TrainPrior(ctx, b.engine, b.train, b.held, cfg, hooks)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return s, cause
		}
		return s, err
	}
	other.Close()
	if pool != nil {
		use := pool.Use()
		s.Use = &use
	}
	return s, nil
}
