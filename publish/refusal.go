package publish

import (
	"fmt"
	"strings"
)

// A Refusal is how many observed pixels of a granule a test has refused.
type Refusal struct {
	Test   string `json:"test"` // ice, range, edge or spike
	Pixels int    `json:"pixels"`
}

// Refusals are those of the tests that were made, in their order; nil: none was.
type Refusals []Refusal

// String returns the refusals in words, to follow a description of the product.
func (r Refusals) String() string {
	if len(r) == 0 {
		return ""
	}
	parts := make([]string, len(r))
	for i, one := range r {
		parts[i] = fmt.Sprintf("%d by %s", one.Pixels, one.Test)
	}
	return ", observations refused: " + strings.Join(parts, ", ")
}
