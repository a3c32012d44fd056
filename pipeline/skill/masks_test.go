package skill

import (
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/field"
)

// drawn reads a mask from a picture: x is true.
func drawn(rows ...string) (m field.Mask, height, width int) {
	for _, r := range rows {
		for _, c := range r {
			m = append(m, c == 'x')
		}
	}
	return m, len(rows), len(rows[0])
}

func TestGapsAreConnectedBySidesOnly(t *testing.T) {
	observed, h, w := drawn(
		".x..x",
		"x....",
		"xx.xx",
		"xx.x.",
	)
	if got := GapSizes(observed, nil, h, w); !slices.Equal(got, []int{1, 1, 8}) {
		t.Errorf("gaps have %v cells", got)
	}
	land, _, _ := drawn(
		".....",
		"..x..",
		".....",
		".....",
	)
	sea := make(field.Mask, len(land))
	for c := range sea {
		sea[c] = !land[c]
	}
	// Land in the middle neither connects gaps nor is one.
	if got := GapSizes(observed, sea, h, w); !slices.Equal(got, []int{1, 1, 1, 2, 4}) {
		t.Errorf("around land gaps have %v cells", got)
	}
}

func TestClearSkyHasNoGaps(t *testing.T) {
	observed, h, w := drawn("xx", "xx")
	if g := DescribeGaps(observed, nil, h, w); g != (GapStats{Sea: 4, Coverage: 1}) {
		t.Errorf("gaps of a clear sky: %+v", g)
	}
	if g := DescribeGaps(observed, make(field.Mask, 4), h, w); g != (GapStats{}) {
		t.Errorf("gaps of a map without sea: %+v", g)
	}
}

func TestDistancesWithoutAnyObservationAreInfinite(t *testing.T) {
	for _, d := range Distances(make(field.Mask, 12), 3, 4) {
		if !math.IsInf(d, 1) {
			t.Fatalf("distance to nothing is %v", d)
		}
	}
}

func TestDistancesAgreeWithBruteForce(t *testing.T) {
	const h, w = 17, 23
	for seed := range 12 {
		m := make(field.Mask, h*w)
		for c, u := range uniform(uint64(seed)+40, h*w) {
			m[c] = u < 0.02*float64(seed)
		}
		for c, got := range Distances(m, h, w) {
			want := math.Inf(1)
			for k, on := range m {
				if on {
					want = min(want, math.Hypot(float64(c/w-k/w), float64(c%w-k%w)))
				}
			}
			if math.Abs(got-want) > exact {
				t.Fatalf("seed %d: cell %d is %v from the nearest, want %v", seed, c, got, want)
			}
		}
	}
}
