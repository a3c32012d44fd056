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

// Members that begin with those of a parent take half the steps of its imputer, and a
// wish for other steps of the imputer keeps that; where there are none to begin with, as
// many as it.
func TestMembersOfAFineTuneTakeHalfTheSteps(t *testing.T) {
	parent := firstModel(t).Parts
	for _, c := range []struct {
		name  string
		from  Parts
		steps int // that are wished for
		want  float64
	}{
		{"with members", parent, 0, 0.5},
		{"with members, and a wish", parent, 100, 0.5},
		{"without", Parts{PartImputer: parent[PartImputer]}, 0, 1},
		{"no parent", nil, 60, 1},
	} {
		s := DefaultSettings("tiny", true)
		if c.from != nil {
			if err := s.From(c.from); err != nil {
				t.Fatal(err)
			}
		}
		s = s.With(Budget{Steps: c.steps, MembersSteps: -1, ReliabilitySteps: -1})
		if got := float64(s.Members.Steps) / float64(s.Imputer.Steps); got != c.want || c.steps > 0 && s.Imputer.Steps != c.steps {
			t.Errorf("%s: %d steps of the members for %d of the imputer", c.name, s.Members.Steps, s.Imputer.Steps)
		}
	}
	paper := DefaultSettings("tiny", true).WithPaper().With(Budget{MembersSteps: -1, ReliabilitySteps: -1})
	if paper.Members.Steps != 0 {
		t.Errorf("the paper's preset has members of %d steps", paper.Members.Steps)
	}
}
