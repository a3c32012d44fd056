package publish

import "fmt"

// Sampling says how much work the networks of a model did for a product.
type Sampling struct {
	Tier    string `json:"tier"`              // fast, standard or full
	Members int    `json:"members"`           // number of members that were drawn, stored or not; 0: none
	Sampler string `json:"sampler,omitempty"` // how they were drawn; empty: there are none
	// Mean is the published mean where there were two, the one that erred less:
	// one-step or members; empty: there was one only.
	Mean    string `json:"mean,omitempty"`
	Follows string `json:"follows,omitempty"` // better tier of the revision that is to supersede this one; empty: none
}

// String returns the sampling in words, to follow the name of what filled a
// product.
func (s *Sampling) String() string {
	if s == nil {
		return ""
	}
	text := fmt.Sprintf(", tier %s", s.Tier)
	if s.Members > 0 {
		text += fmt.Sprintf(" (%d members by %s)", s.Members, s.Sampler)
	}
	switch s.Mean {
	case "one-step":
		text += ", the mean of the one-step prediction"
	case "members":
		text += ", the mean of the members"
	}
	if s.Follows != "" {
		text += fmt.Sprintf(", to be superseded by tier %s", s.Follows)
	}
	return text
}
