package learn

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

// Distil trains one imputer to answer as several do together: their mean, and the
// variance of their mixture, in every hidden cell of the sea and not only where
// the truth is known. It begins with the weights of the first teacher unless
// hooks say otherwise, and ends as Train does. All teachers are of cfg's design.
func (tr *Trainer) Distil(ctx context.Context, teachers []*impute.Model, m Material, source Source, cfg Config, hooks train.Hooks) (*impute.Model, train.Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, train.Report{}, fmt.Errorf("train config: %w", err)
	}
	if len(teachers) == 0 || !cfg.Design.Variance {
		return nil, train.Report{}, errors.New("distil: give at least one teacher, and a design with a variance")
	}
	network, err := nn.New(cfg.Design.Network())
	if err != nil {
		return nil, train.Report{}, err
	}
	t := cfg.task(network)
	for _, teacher := range teachers {
		if teacher.Design() != cfg.Design {
			return nil, train.Report{}, fmt.Errorf("distil: a teacher is of the design %+v, the student is to be of %+v", teacher.Design(), cfg.Design)
		}
		t.Fixed = append(t.Fixed, teacher.Vector())
		t.Kind += teacher.Fingerprint()[:8]
	}
	if hooks.From == nil {
		if hooks.From, err = tensors.CopyFlatData[float32](teachers[0].Vector()); err != nil {
			return nil, train.Report{}, fmt.Errorf("distil: %w", err)
		}
	}
	t.Kind = fmt.Sprintf("student of %d %s", len(teachers), t.Kind)
	t.Loss, t.Fill = distilLoss(network, len(teachers), cfg.Beta, cfg.BFloat16), newExamples(m, source, cfg).fill
	weights, report, err := tr.run(ctx, cfg, t, hooks)
	if err != nil {
		return nil, report, fmt.Errorf("distil: %w", err)
	}
	model, err := impute.NewModel(tr.runner, cfg.Design, cfg, weights)
	return model, report, err
}

// distilLoss is the loss of a batch of image, times and target, and the weights
// of the teachers: how unlikely the mixture of their answers is to the student,
// the mean over the hidden sea. The teachers learn nothing.
func distilLoss(n nn.Network, teachers int, beta float64, bfloat16 bool) func(w nn.Weights, batch []*Node) *Node {
	return func(w nn.Weights, batch []*Node) *Node {
		x, t := batch[imageTensor], batch[timeTensor]
		var first, second *Node // means over the teachers of the mean, and of its square with the variance
		for _, vector := range batch[targetTensor+1 : targetTensor+1+teachers] {
			fixed := nn.Slices(vector)
			if bfloat16 {
				fixed = nn.WithDType(fixed, dtypes.BFloat16)
			}
			mean, logVariance := impute.MeanAndLogVariance(StopGradient(n.Apply(fixed, x, t)))
			square := Add(Square(mean), Exp(logVariance))
			if first == nil {
				first, second = mean, square
				continue
			}
			first, second = Add(first, mean), Add(second, square)
		}
		first, second = DivScalar(first, float64(teachers)), DivScalar(second, float64(teachers))
		variance := Sub(second, Square(first))
		mean, logVariance := impute.MeanAndLogVariance(n.Apply(w, x, t))
		hidden := Mul(plane(x, impute.SeaPlane), OneMinus(plane(x, impute.MaskPlane)))
		return likelihood(Add(Square(Sub(first, mean)), variance), logVariance, hidden, beta)
	}
}
