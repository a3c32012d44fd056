package learn

import (
	"context"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/train"
)

func newTrainer(t testing.TB, batch int) *Trainer {
	t.Helper()
	tr := NewTrainer(imputetest.NewRunner(t, batch))
	t.Cleanup(tr.Close)
	return tr
}

type gaussianSea struct{ imputetest.Sea }

func newGaussianSea(t testing.TB, cfg imputetest.SeaConfig) gaussianSea {
	t.Helper()
	return gaussianSea{imputetest.NewSea(t, cfg)}
}

// tinyConfig trains a network in seconds.
func tinyConfig(side int) Config {
	c := DefaultConfig()
	c.Design = imputetest.TinyDesign()
	c.Side, c.Batch, c.Steps, c.WarmupSteps, c.EMADecay, c.LearningRate = side, 4, 8, 2, 0.95, 3e-3
	c.Workers = 2
	c.Clean = 0.5 // noise is on its way
	c.Flip, c.Transpose, c.Negate, c.Size = false, false, false, 0
	return c
}

// examplesOf returns the material of a training: all days of the sea, split by
// the gaps of other days.
func (s gaussianSea) examplesOf(t testing.TB, seed uint64) (Material, Source) {
	t.Helper()
	data, err := s.Series.Whole()
	if err != nil {
		t.Fatal(err)
	}
	source, err := Fresh(data, data.Refs(s.Side, s.Side, 20), partition.Empirical(data), seed)
	if err != nil {
		t.Fatal(err)
	}
	return Material{Train: data}, source
}

func trained(t testing.TB, tr *Trainer, m Material, src Source, cfg Config) *impute.Model {
	t.Helper()
	model, _, err := tr.Train(context.Background(), m, src, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	return model
}
