package version

import (
	"slices"
	"testing"

	"lacuna/pipeline/partition"
)

// Zero means never, in enough draws to say so; too few draws say nothing.
func TestSharesOfQueriesTellNeverFromNotKnown(t *testing.T) {
	q := partition.NewQueryMap(1, 5)
	q.Drawn = []int{0, fewestDraws - 1, fewestDraws, 5000, 10}
	q.Queried = []int{0, 0, 0, 1, 3}
	if got, want := queryShares(q), []float32{-1, -1, 0, 0.001, 0.3}; !slices.Equal(got, want) {
		t.Errorf("shares are %v, want %v", got, want)
	}
}
