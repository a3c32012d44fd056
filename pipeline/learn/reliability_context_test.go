package learn

import (
	"context"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// swaths splits an observation as if a satellite had seen one half of it: one
// half of the rows of the west, or of the east, is context and the other query.
type swaths struct{}

func (swaths) Name() string { return "swaths" }

func (swaths) Partition(_ context.Context, patches []samples.Patch, s noise.Stream) ([]partition.Parts, error) {
	out := make([]partition.Parts, len(patches))
	for i, p := range patches {
		r := s.Sub(uint64(i)).Rand(0)
		west, from, side := r.IntN(2) == 0, r.IntN(p.Window.Height), p.Window.Width
		out[i] = partition.Parts{Context: make([]bool, len(p.Values)), Query: make([]bool, len(p.Values))}
		for k, o := range p.Observed() {
			if o && (k%side < side/2) == west {
				shown := (k/side+side-from)%side < side/2
				out[i].Context[k], out[i].Query[k] = shown, !shown
			}
		}
	}
	return out, nil
}

// Remark 1 of Ma, Zhou and Yu takes the mean of P(query) over contexts. Here it
// is positive for every cell, with confidence; yet under a context in the west no
// cell of the east is ever query. The classifier, asked context by context, must
// list those cells, and no others.
func TestClassifierListsCellsThatTheMeanOverContextsHides(t *testing.T) {
	if testing.Short() {
		t.Skip("training takes seconds")
	}
	const side, never = 16, 0.02
	tr := newTrainer(t, 1)
	s := newGaussianSea(t, imputetest.SeaConfig{Side: side, Days: 40, Length: 3, Memory: 0.8, Seed: 1})
	m, _ := s.examplesOf(t, 1)
	refs := m.Train.Refs(side, side, 20)
	src, err := Fresh(m.Train, refs, swaths{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	mean := partition.NewQueryMap(side, side)
	patches := make([]samples.Patch, len(refs))
	for i, ref := range refs {
		patches[i] = m.Train.Cut(ref)
	}
	if err := partition.DrawQueries(t.Context(), swaths{}, patches, 40, mean, noise.New(1, "mean")); err != nil {
		t.Fatal(err)
	}
	lowest, err := mean.Lowest(partition.ClaimDraws)
	if err != nil || !(lowest.Bound > 0.1) || lowest.Cells != side*side {
		t.Fatalf("the lowest mean P(query) is %+v, %v, want a bound above 0.1 for every cell", lowest, err)
	}

	cfg := ReliabilityConfig(tinyConfig(side))
	cfg.Steps, cfg.Batch = 300, 16
	r, _, err := tr.TrainReliability(t.Context(), m, src, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	const tests, from = 40, 1 << 30 // examples that were not learned from
	var elsewhere, listed, own, wrongly float64
	for i := range uint64(tests) {
		l, err := src.Example(t.Context(), from+i)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Probability(t.Context(), impute.Inputs{Height: side, Width: side, Sea: s.Series.Sea, Visible: l.Context})
		if err != nil {
			t.Fatal(err)
		}
		west := false
		for k, shown := range l.Context {
			west = west || shown && k%side < side/2
		}
		for k := range p {
			switch dead := p[k] < never; {
			case l.Context[k]:
			case (k%side < side/2) != west:
				elsewhere++
				listed += float64(number(dead))
			case l.Query[k]:
				own++
				wrongly += float64(number(dead))
			}
		}
	}
	t.Logf("listed are %.3f of the %.0f cells that are never query under their context, and %.3f of the %.0f that were", listed/elsewhere, elsewhere, wrongly/own, own)
	if listed < 0.95*elsewhere || wrongly > 0.01*own {
		t.Errorf("listed are %.3f of the cells that are never query under their context, and %.3f of those that were, want at least 0.95 and none", listed/elsewhere, wrongly/own)
	}
}
