package version

import "testing"

// The members of a network learn in small batches, and a wish for another setting
// does not make them as large as those of the imputer.
func TestMembersLearnInSmallBatches(t *testing.T) {
	s := DefaultSettings("base", true)
	wishes := Budget{MembersSteps: -1, ReliabilitySteps: -1}
	if got := s.With(wishes).Members.Batch; got != 64 || s.Imputer.Batch <= got {
		t.Errorf("a step of the members has %d windows and one of the imputer %d, want 64 and more", got, s.Imputer.Batch)
	}
	wishes.Batch = 16
	if got := s.With(wishes).Members.Batch; got != 16 {
		t.Errorf("a step of the members has %d windows where 16 are wished for", got)
	}
}

// Weights that are good already are best after few steps: a fine-tune is asked often
// enough to see it and ends soon after, and one on a processor, which has few steps, is
// asked as before.
func TestAFineTuneEndsSoonAfterItsBest(t *testing.T) {
	for _, gpu := range []bool{true, false} {
		first := DefaultSettings("tiny", gpu)
		tune := first
		if err := tune.From(Parts{PartImputer: firstModel(t).Parts[PartImputer]}); err != nil {
			t.Fatal(err)
		}
		tune = tune.With(Budget{MembersSteps: -1, ReliabilitySteps: -1})
		if tune.ScoreEvery > 200 || tune.Patience != 3 || first.Patience != 6 {
			t.Errorf("a fine-tune is scored every %d steps and ends after %d scores, a training after %d", tune.ScoreEvery, tune.Patience, first.Patience)
		}
		longest := tune.ScoreEvery * (tune.Patience + 1)
		if gpu && longest >= tune.Imputer.Steps {
			t.Errorf("one that begins with its best weights takes %d of %d steps", longest, tune.Imputer.Steps)
		}
		if !gpu && (tune.ScoreEvery != first.ScoreEvery || longest < tune.Imputer.Steps) {
			t.Errorf("on a processor it is scored every %d steps, and may end after %d of %d", tune.ScoreEvery, longest, tune.Imputer.Steps)
		}
	}
}
