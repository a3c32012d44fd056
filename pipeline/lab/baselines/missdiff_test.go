package baselines

import (
	"context"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// Without noise and without a partition, the best answer is the input itself:
// the network learns to copy what it sees and nothing about gaps. A partition of
// the same days, in as many steps, teaches it to fill them.
func TestMissDiffWithoutNoiseLearnsToCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("training takes seconds")
	}
	const side, days, learned = 16, 80, 60
	sea := imputetest.NewSea(t, imputetest.SeaConfig{Side: side, Days: days, Length: 4, Memory: 0, Seed: 1})
	data, err := sea.Series.Whole()
	if err != nil {
		t.Fatal(err)
	}
	var refs []samples.Ref
	for _, r := range data.Refs(side, side, partition.MinObservedCells) {
		if r.Day < learned {
			refs = append(refs, r)
		}
	}
	everything, err := Everything(data, refs, 1)
	if err != nil {
		t.Fatal(err)
	}
	parted, err := learn.Fresh(data, refs, partition.Empirical(data), 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := learn.DefaultConfig()
	cfg.Design = imputetest.TinyDesign()
	cfg.Design.Extras, cfg.Design.Departure, cfg.Design.Variance = impute.Extras{}, false, false
	cfg.Side, cfg.Batch, cfg.Steps, cfg.WarmupSteps, cfg.EMADecay, cfg.LearningRate, cfg.Workers = side, 8, 200, 10, 0.95, 3e-3, 2
	cfg.Clean, cfg.Beta, cfg.LossOn = 1, 0, learn.OnQuery
	trainer := learn.NewTrainer(imputetest.NewRunner(t, 1))
	defer trainer.Close()
	misses := func(source learn.Source) (seen, hidden, variance float64) {
		m, _, err := trainer.Train(t.Context(), learn.Material{Train: data}, source, cfg, train.Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var visible, gaps float64
		for day := learned; day < days; day++ {
			ref := samples.Ref{Day: day, Window: samples.Square(0, 0, side)}
			in := impute.Surroundings{Days: data}.Inputs(ref, data.Cut(ref).Observed(), impute.Single)
			answer, err := m.Denoise(context.Background(), []impute.Inputs{in}, nil) // visible cells are not copied over it
			if err != nil {
				t.Fatal(err)
			}
			for k, is := range in.Visible {
				d := float64(answer[0].Mean[k] - sea.Truth[day][k])
				if is {
					seen, visible = seen+d*d, visible+1
					continue
				}
				hidden, gaps = hidden+d*d, gaps+1
				variance += float64(sea.Truth[day][k]) * float64(sea.Truth[day][k])
			}
		}
		return seen / visible, hidden / gaps, variance / gaps
	}
	copied, blind, variance := misses(everything)
	_, filled, _ := misses(parted)
	t.Logf("squared error: %.4f where it sees, %.3f where it does not, of a variance of %.3f; with a partition %.3f", copied, blind, variance, filled)
	if copied > 0.02*variance {
		t.Errorf("visible cells come back with a squared error of %.4f, want next to none of %.3f", copied, variance)
	}
	if blind < 0.5*variance || filled > 0.7*blind {
		t.Errorf("gaps are filled with %.3f of a variance of %.3f without a partition, %.3f with one", blind, variance, filled)
	}
}
