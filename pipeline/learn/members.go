package learn

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/train"
)

const kindMembers = "members"

// membersBatch is the most windows of a step of the members: they learn the shape of
// residuals, of which a stormy window has as much as a calm one.
const membersBatch = 64

// MembersConfig returns the settings for the members of a model that was
// trained with cfg.
func MembersConfig(cfg Config) Config {
	cfg.SpreadOnly = false
	cfg.Clean = 1 // the context is clean; the residual is noised
	cfg.Beta = 0
	cfg.LossOn = OnQuery
	cfg.Design.Variance = false
	cfg.Batch = min(cfg.Batch, membersBatch)
	return cfg
}

// TrainMembers trains the members of a model. The extras of cfg's design are
// ignored: they are those of the model. It ends as Train does.
func (tr *Trainer) TrainMembers(ctx context.Context, model *impute.Model, m Material, source Source, cfg Config, hooks train.Hooks) (*impute.Members, train.Report, error) {
	t, cfg, err := membersTask(model.Design(), model.Vector(), m, source, cfg)
	if err != nil {
		return nil, train.Report{}, err
	}
	weights, report, err := tr.run(ctx, cfg, t, hooks)
	if err != nil {
		return nil, report, fmt.Errorf("train members: %w", err)
	}
	members, err := impute.NewMembers(model, cfg.Design, cfg, weights)
	return members, report, err
}

// membersTask returns the task of the members of an imputer with these weights, and cfg
// with the extras of that.
func membersTask(imputer impute.Design, weights *tensors.Tensor, m Material, source Source, cfg Config) (train.Task, Config, error) {
	cfg.Design.Extras, cfg.Design.Departure = imputer.Extras, imputer.Departure
	cfg.Design.Covariates, cfg.Design.Standing = imputer.Covariates, imputer.Standing
	if err := cfg.Validate(); err != nil {
		return train.Task{}, cfg, fmt.Errorf("train config: %w", err)
	}
	if cfg.Clean != 1 || cfg.LossOn != OnQuery {
		return train.Task{}, cfg, fmt.Errorf("train config: members see a clean context and are scored on the query; clean is %g, loss_on %q", cfg.Clean, cfg.LossOn)
	}
	network, err := nn.New(impute.MembersNetwork(imputer, cfg.Design))
	if err != nil {
		return train.Task{}, cfg, err
	}
	fixed, err := nn.New(imputer.Network())
	if err != nil {
		return train.Task{}, cfg, err
	}
	l := residualExamples{imputerExamples: newExamples(m, source, cfg), levels: noise.New(cfg.Seed, "levels"), noise: noise.New(cfg.Seed, "residual noise")}
	t := cfg.task(network)
	t.Kind, t.Fill, t.Dims = kindMembers+fmt.Sprint(" of ", imputer.Network()), l.fill, append(t.Dims, []int{cfg.Batch, 1, cfg.Side, cfg.Side})
	t.Loss, t.Fixed = residualLoss(network, fixed, cfg.BFloat16), []*tensors.Tensor{weights}
	return t, cfg, nil
}

// residualExamples adds noise for the residual to the examples of the imputer.
// The residual itself is made on the device, where the prediction is.
type residualExamples struct {
	*imputerExamples
	levels, noise noise.Stream
}

// epsTensor is the tensor of noise, [batch, 1, side, side], after those of the
// imputer.
const epsTensor = targetTensor + 1

func (l residualExamples) fill(ctx context.Context, b *train.Batch, item int, n uint64) error {
	if err := l.imputerExamples.fill(ctx, b, item, n); err != nil {
		return err
	}
	l.levels.Uniforms(b.Buffers[timeTensor][item:item+1], n)
	l.noise.Normals(l.cfg.planes(b, epsTensor, item).Data, n)
	return nil
}
