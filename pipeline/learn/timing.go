package learn

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
func (tr *Trainer) TimeStep(ctx context.Context, m Material, source Source, cfg Config, steps int) (time.Duration, error) {
	if err := cfg.Validate(); err != nil {
		return 0, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(cfg.Design.Network())
	if err != nil {
		return 0, err
	}
	t := imputerTask(network, m, source, cfg)
	step, err := tr.step(cfg, t)
	if err != nil {
		return 0, err
	}
	return train.Time(ctx, step, t, steps)
}
