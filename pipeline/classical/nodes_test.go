package classical

import (
	"math"
	"testing"
)

func TestWeightsOfNodesSumToOne(t *testing.T) {
	for _, spacing := range []int{1, 2, 3, 4, 7} {
		for _, lines := range []int{1, 2, 5, 12, 13, 14, 15, 16} {
			sums := make([]float64, lines)
			for _, n := range axisNodes(lines, spacing) {
				for _, l := range n.lines {
					sums[l.index] += l.weight
				}
			}
			for i, sum := range sums {
				if math.Abs(sum-1) > 1e-12 {
					t.Errorf("%d lines, nodes every %d: the weights on line %d sum to %v", lines, spacing, i, sum)
				}
			}
		}
	}
}

func TestRowsOfNodesOfOnePhaseShareNoCell(t *testing.T) {
	for _, spacing := range []int{1, 2, 3, 4} {
		owner := map[[2]int]int{} // by phase and line
		for k, n := range axisNodes(40, spacing) {
			for _, l := range n.lines {
				at := [2]int{k % phases, int(l.index)}
				if other, taken := owner[at]; taken {
					t.Errorf("spacing %d: nodes %d and %d, which may be solved at the same time, share line %d", spacing, other, k, l.index)
				}
				owner[at] = k
			}
		}
	}
}

// The sums of lines that two bands share must be carried from one to the other.
func TestBandsOfNodesAreOneMap(t *testing.T) {
	s := cloudy(61, 23, 3, 5)
	for _, spacing := range []int{1, 2, 3, 4} {
		o := DefaultOI(s.Grid)
		o.Spacing = spacing
		filled := func(band int) Estimate {
			a := &analysis{oi: o, series: s, target: 2, bg: newBackground(s, o.SmoothKM), sphere: newSphere(s.Grid)}
			a.search(o.buildTrees(s, a.sphere))
			e := gaps(s.Grid.Len())
			a.keepObserved(e)
			a.fillBands(t.Context(), band, a.gap, e, nil)
			return e
		}
		whole := filled(1 << 20)
		for _, band := range []int{1, 2, 3, 5, 7, 64} {
			e := filled(band)
			for c := range e.Mean {
				if off := math.Abs(float64(e.Mean[c] - whole.Mean[c])); !(off < 1e-6) {
					t.Fatalf("spacing %d, bands of %d: cell %d is %v, in one band %v", spacing, band, c, e.Mean[c], whole.Mean[c])
				}
				if ratio := float64(e.Sigma[c] / whole.Sigma[c]); !(math.Abs(ratio-1) < 1e-5) {
					t.Fatalf("spacing %d, bands of %d: sigma of cell %d is %v of that in one band", spacing, band, c, ratio)
				}
			}
		}
	}
}

func TestTabledDecayAgreesWithTheExponential(t *testing.T) {
	places := [][3]float64{{0, 0, 0}, {1e-9, 0, 0}, {0.3, -0.2, 0.1}, {1.0 / 64, 0, 0}, {5, 4, 3}, {39.99, 0, 0}}
	got := make([]float64, len(places))
	decays(got, places, [3]float64{})
	for i, p := range places {
		want := math.Exp(-math.Sqrt(p[0]*p[0] + p[1]*p[1] + p[2]*p[2]))
		if math.Abs(got[i]-want) > 1e-11*want {
			t.Errorf("decay over %v is %v, want %v", p, got[i], want)
		}
	}
	decays(got[:1], [][3]float64{{1e6, 0, 0}}, [3]float64{})
	if got[0] > 1e-17 || got[0] < 0 {
		t.Errorf("decay over a million lengths is %v", got[0])
	}
}
