package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
)

// source returns the lessons of a strategy from lesson first on, and what ends
// it.
func (b *bench) source(ctx context.Context, strategy string, cfg impute.TrainConfig, first uint64) (impute.Source, func(), error) {
	train := b.material.Train
	refs := train.Refs(cfg.Side, cfg.Side/2, prior.MinObservedCells)
	if strategy == "everything" {
		s, err := impute.Everything(train, refs, cfg.Seed)
		return s, func() {}, err
	}
	p, pooled, err := b.partitioner(strategy)
	if err != nil {
		return nil, nil, err
	}
	if !pooled && b.perPatch > 0 {
		s, err := impute.Repeated(train, refs, p, b.perPatch, cfg.Seed)
		return s, func() {}, err
	}
	if !pooled {
		s, err := impute.Fresh(train, refs, p, cfg.Seed)
		return s, func() {}, err
	}
	pool, err := prior.NewPool(ctx, prior.Windows{Data: train, Refs: refs, By: p}, prior.DefaultPool(), noise.New(cfg.Seed, "pool"), first)
	if err != nil {
		return nil, nil, err
	}
	return impute.Queue(pool.Next, first), func() {
		pool.Close()
		b.log.Info("partition pool", "use", pool.Use())
	}, nil
}

// partitioner returns the strategy of a name such as pixel:0.3 or block8, and
// whether it is worth a pool.
func (b *bench) partitioner(name string) (p prior.Partitioner, pooled bool, err error) {
	kind, argument, _ := strings.Cut(name, ":")
	share := 0.3
	if argument != "" {
		if _, err := fmt.Sscan(argument, &share); err != nil {
			return nil, false, fmt.Errorf("partition %q: %w", name, err)
		}
	}
	switch kind {
	case "pixel":
		return prior.Pixel(share, share), false, nil
	case "block8":
		return prior.Block(8, 0.5, 0.5), false, nil
	case "block3":
		return prior.Block(3, 0.5, 0.5), false, nil
	case "saliency":
		return prior.Saliency(0.5), false, nil
	case "coherent":
		return prior.Coherent(), false, nil
	case "empirical":
		return prior.Empirical(b.material.Train), false, nil
	}
	m, err := b.loadPrior()
	if err != nil {
		return nil, false, err
	}
	guide := prior.DefaultGuidance()
	switch kind {
	case "unconditional":
		cfg := prior.DefaultSampling()
		cfg.Batch = prior.DefaultPool().Batch
		p, err = prior.NewUnconditional(m, cfg)
	case "guided-pixel":
		guide = prior.PaperGuidance()
		fallthrough
	case "guided":
		guide.Batch = prior.DefaultPool().Batch
		p, err = prior.NewGuided(m, guide)
	default:
		return nil, false, fmt.Errorf("partition is %q, must be pixel[:share], block8, block3, saliency, coherent, empirical, unconditional, guided or guided-pixel", name)
	}
	return p, true, err
}

func (b *bench) loadPrior() (*prior.Model, error) {
	if b.priors != nil {
		return b.priors, nil
	}
	if b.prior == "" {
		return nil, errors.New("the partition needs a mask prior: give one with -prior")
	}
	data, err := os.ReadFile(b.prior)
	if err != nil {
		return nil, err
	}
	b.priors, err = prior.Load(b.engine, data)
	return b.priors, err
}
