package baselines

import (
	"context"
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/train"
)

func TestDINDiffFillsAndKeeps(t *testing.T) {
	runner := imputetest.NewRunner(t, 2)
	s := imputetest.NewSea(t, imputetest.SeaConfig{Side: 16, Days: 12, Length: 3, Memory: 0.8, Seed: 1})
	data, err := s.Series.Whole()
	if err != nil {
		t.Fatal(err)
	}
	src, err := learn.Fresh(data, data.Refs(16, 16, 20), partition.Empirical(data), 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := learn.DefaultConfig()
	cfg.Design = imputetest.TinyDesign()
	cfg.Side, cfg.Batch, cfg.Steps, cfg.WarmupSteps, cfg.EMADecay, cfg.LearningRate, cfg.Workers, cfg.Flip = 16, 4, 8, 2, 0.95, 3e-3, 2, false
	cfg = DINDiffConfig(cfg)
	trainer := learn.NewTrainer(runner)
	defer trainer.Close()
	d, _, err := TrainDINDiff(context.Background(), trainer, learn.Material{Train: data}, src, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	in := imputetest.SomeInputs(t, 16, 3)
	defer d.Close()
	draw := func(in impute.Inputs) [][]float32 {
		out, err := d.Draw(context.Background(), []impute.Inputs{in}, []noise.Stream{noise.New(1)}, 3, 3)
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	want := draw(in)
	dirty := in
	dirty.Values = slices.Clone(in.Values)
	for i, visible := range in.Visible {
		if !visible {
			dirty.Values[i] = 1e6
		}
		for k := range want {
			if visible && want[k][i] != in.Values[i] || !finite(want[k][i]) {
				t.Fatalf("cell %d, visible %v, went in as %v and came out as %v", i, visible, in.Values[i], want[k][i])
			}
		}
	}
	for k, got := range draw(dirty) {
		if !slices.Equal(got, want[k]) {
			t.Error("a hidden value changes a member")
		}
	}
	if slices.Equal(want[0], want[1]) {
		t.Error("two members are alike")
	}
}

func finite(v float32) bool { return v-v == 0 }

func TestPublishedSamplersRunOnAModel(t *testing.T) {
	m := imputetest.BusyModel(t, imputetest.NewRunner(t, 2), imputetest.TinyDesign())
	in := imputetest.SomeInputs(t, 16, 3)
	masks := Masks{Visible: in.Visible, Observed: [][]bool{imputetest.SomeInputs(t, 16, 1).Visible, imputetest.SomeInputs(t, 16, 2).Visible}}
	cfg := DefaultSampler()
	cfg.Members, cfg.Steps, cfg.Jumps, cfg.Length, cfg.Every = 2, 4, 2, 1, 2
	for _, name := range []string{"direct", "proximal", "iterative", "resampling", "recursive"} {
		s, err := SamplerOf(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Sample(context.Background(), m, in, Sampling{s, masks, cfg}, noise.New(1))
		if err != nil {
			t.Fatal(err)
		}
		for i, visible := range in.Visible {
			if v := d.Members[0][i]; visible && v != in.Values[i] || !finite(v) {
				t.Fatalf("%s: cell %d, visible %v, went in as %v and came out as %v", name, i, visible, in.Values[i], v)
			}
		}
		if name == "direct" {
			p := imputetest.PredictOne(t, m, in)
			for i, v := range d.Members[0] {
				if math.Abs(float64(v-p.Mean[i])) > 1e-5 {
					t.Fatalf("direct projection of all that is visible gives %v at cell %d, a prediction %v", v, i, p.Mean[i])
				}
			}
		}
	}
}

func TestTheSettingsOfDINDiffAreValid(t *testing.T) {
	if err := DINDiffConfig(learn.DefaultConfig().AsPaper()).Validate(); err != nil {
		t.Error(err)
	}
}
