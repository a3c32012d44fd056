package impute

import (
	"context"
	"fmt"
	"time"

	"lacuna/pipeline/nn"
)

// TimeStep returns how long the training step of cfg takes where its batch is
// on the device already, the mean over so many steps: what a training can
// reach at best. It shares the compiled step with Train.
func TimeStep(ctx context.Context, shop *Workshop, m Material, source Source, cfg TrainConfig, steps int) (time.Duration, error) {
	if err := cfg.Validate(); err != nil {
		return 0, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(cfg.Design.network())
	if err != nil {
		return 0, err
	}
	c := imputerCourse(network, m, source, cfg)
	step, err := shop.step(c.key(), network.Layout(), cfg.optimizer(), c.loss)
	if err != nil {
		return 0, err
	}
	if err := step.Start(network.Layout().Init(cfg.Seed)); err != nil {
		return 0, err
	}
	l := c.loader(shop)
	b, err := l.make(ctx, nil, 0)
	if b != nil {
		defer release(b.tensors...)
	}
	if err != nil {
		return 0, err
	}
	const warm = 5 // steps that compile, and settle clocks
	var began time.Time
	for i := range warm + steps {
		if i == warm {
			began = time.Now()
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := step.Run(b.tensors...); err != nil {
			return 0, err
		}
	}
	return time.Since(began) / time.Duration(max(steps, 1)), nil
}
