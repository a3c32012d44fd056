package learn

import (
	"testing"

	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/train"
)

// A step that was compiled for another key or for other shapes would be compiled again.
func TestATrainingFindsTheStepThatWasCompiledAhead(t *testing.T) {
	const side = 16
	cfg := tinyConfig(side)
	cfg.Steps, cfg.WarmupSteps = 2, 1
	cfg.Design.Extras.Last = true
	tr := newTrainer(t, cfg.Batch)
	m, src := newGaussianSea(t, imputetest.SeaConfig{Side: side, Days: 8, Length: 3, Memory: 0.8, Seed: 1}).examplesOf(t, 1)
	members, reliability := MembersConfig(cfg), ReliabilityConfig(cfg)
	for what, err := range map[string]error{
		"imputer": tr.CompileImputer(cfg), "members": tr.CompileMembers(cfg.Design, members), "reliability": tr.CompileReliability(reliability),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	model, _, err := tr.Train(t.Context(), m, src, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	drawn, _, err := tr.TrainMembers(t.Context(), model, m, src, members, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer drawn.Close()
	classifier, _, err := tr.TrainReliability(t.Context(), m, src, reliability, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer classifier.Close()
	if len(tr.steps) != 3 {
		t.Errorf("%d steps for three trainings", len(tr.steps))
	}
	for key, step := range tr.steps {
		if n := step.Compiled(); n != 1 {
			t.Errorf("%d programs of %s", n, key)
		}
	}
}
