package jobs

import (
	"slices"
	"testing"

	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Ten cells of an overlay in a row: two visible, the rest hidden, of which half
// were asked for. The classifier rules out two cells that the map does not, and
// one of them was asked for after all.
func TestLineOfAClassifierByHand(t *testing.T) {
	o := samples.Overlay{
		Patch: samples.Patch{
			Ref: samples.Ref{Window: samples.Window{Height: 1, Width: 10}}, Values: []float32{0, 0, 1, 1, 1, 1, 9, 9, 9, 9},
			Sea: []bool{true, true, true, true, true, true, true, true, true, false},
		},
		Visible: []bool{true, true, false, false, false, false, false, false, false, false},
		Scored:  []bool{false, false, true, true, true, true, false, false, false, false},
	}
	said := []float32{0, 0, 0.9, 0.6, 0.4, 0.001, 0.001, 0.001, 0.4, 0.5}
	mapped := []float32{0, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.01, 0.5, 0.5}
	filled := []float32{7, 7, 1.1, 1.2, 0.7, 1.4, 0, 0, 0, 0}
	var a answers
	a.add(o, said, mapped, filled)
	got := a.line("by hand")
	if want := (overlooked{Cells: 2, Queried: 1}); got.Overlooked != want {
		t.Errorf("overlooked are %+v, want %+v", got.Overlooked, want)
	}
	if got.Job != "by hand" || got.Cells != 7 {
		t.Errorf("%d cells of %q, want the 7 of the sea that were hidden", got.Cells, got.Job)
	}
	counts := []int{}
	for _, bin := range got.Curve {
		counts = append(counts, bin.Count)
	}
	if want := []int{3, 2, 1, 1}; !slices.Equal(counts, want) || got.Curve[0].Observed < 0.33 || got.Curve[0].Observed > 0.34 {
		t.Errorf("curve is %+v, want %v forecasts in its bins and a third of the first asked for", got.Curve, want)
	}
	if len(got.Deciles) != 4 || got.Deciles[0].Pixels != 1 || got.Deciles[0].High > 0.01 || !got.Monotone {
		t.Errorf("deciles are %+v, monotone %v, want four scored cells whose errors fall", got.Deciles, got.Monotone)
	}
	filled[2] = 3 // the surest cell has the largest error now
	a = answers{}
	a.add(o, said, mapped, filled)
	if got := a.line("by hand"); got.Monotone {
		t.Errorf("deciles are %+v and count as falling", got.Deciles)
	}
	if b := skill.Brier(a.said, a.asked); got.Classifier != b || !(got.Map > 0) {
		t.Errorf("Brier scores are %g and %g, want %g for the classifier", got.Classifier, got.Map, b)
	}
}
