package publish

import "fmt"

// Trust says how far a model was followed on its way from optimal interpolation.
type Trust struct {
	Model      string  `json:"model"`
	Weight     float64 `json:"weight"`      // 0: not at all, to 1: all the way
	ScoredDays int     `json:"scored_days"` // of the dataset, from which the weight comes
}

// String returns the trust in words, to follow the name of what filled a product.
func (t *Trust) String() string {
	switch {
	case t == nil:
		return ""
	case t.Weight > 0:
		return fmt.Sprintf(", followed to %.2f of its way from optimal interpolation, from %d scored days", t.Weight, t.ScoredDays)
	}
	return fmt.Sprintf(", with model %s not followed, from %d scored days", t.Model, t.ScoredDays)
}
