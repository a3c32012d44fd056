package impute

import (
	"context"
	"fmt"
	"time"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

// TimeStep returns how long the training step of cfg takes where its batch is
// on the device already, the mean over so many steps. It shares the compiled
// step with Train.
func TimeStep(ctx context.Context, shop *Workshop, m Material, source Source, cfg TrainConfig, steps int) (time.Duration, error) {
	if err := cfg.Validate(); err != nil {
		return 0, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(cfg.Design.network())
	if err != nil {
		return 0, err
	}
	t := imputerTask(network, m, source, cfg)
	step, err := shop.step(cfg, t)
	if err != nil {
		return 0, err
	}
	return train.Time(ctx, step, t, steps)
}
