package skill

import (
	"math"
	"testing"
)

func TestWeightsMakeOneMixLookLikeTheOther(t *testing.T) {
	hidden, gaps := NewMix([]float64{1, 5}, []float64{2}), NewMix([]float64{1, 5}, []float64{2})
	// Overlays hide three fresh cells for each old one, clouds the other way
	// round; only clouds hide cells that were never observed.
	for range 3 {
		hidden.Add(1, 1)
		gaps.Add(3, 10)
	}
	hidden.Add(3, 10)
	gaps.Add(1, 1)
	gaps.Add(math.Inf(1), 10)
	fresh, old := hidden.Weight(gaps, 0.5, 2), hidden.Weight(gaps, 5, 50)
	near(t, "weight of fresh cells", fresh, 0.2/0.75, exact)
	near(t, "weight of old cells", old, 0.6/0.25, exact)
	near(t, "weight of a class without hidden cells", hidden.Weight(gaps, 100, 10), 0, 0)
	near(t, "share reached", hidden.Reached(gaps), 0.8, exact)
	near(t, "total weight", 3*fresh+old, 4*0.8, exact)
}

func TestMixesOfDifferentClassesDoNotMix(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("weights between different classes")
		}
	}()
	NewMix([]float64{1}, nil).Weight(NewMix([]float64{2}, nil), 1, 1)
}
