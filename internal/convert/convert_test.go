package convert

import (
	"slices"
	"strconv"
	"testing"
)

func TestEachKeepsTheOrderAndIsNeverNil(t *testing.T) {
	if got := Each([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("Each() = %v", got)
	}
	if got := Each(nil, strconv.Itoa); got == nil || len(got) > 0 { // JSON has [], not null
		t.Errorf("Each(nil) = %#v", got)
	}
}
