package covariate

import (
	"errors"
	"fmt"
	"slices"

	"lacuna/pipeline/skill"
)

// Kept says which covariates a network uses, with the evidence on days that choose.
type Kept struct {
	Judged []Verdict `json:"judged"`
	Gain   *Gain     `json:"gain,omitempty"` // of all that are used, over none; nil: none is
}

// Keep decides which covariates a network uses that has learned to do without any of
// them. Those that have no map of the days are out; losses returns its squared errors on
// days that choose where it sees the others by these numbers only. One after the other is
// dropped, the least convincing first, until each that is left pays, and all of them
// together.
func Keep(names []string, known []bool, losses func(seen []int) ([]skill.Loss, error)) (Kept, error) {
	var k Kept
	var kept []int
	for i, name := range names {
		v := Verdict{Name: name, Why: "it has no map of these days"}
		if known[i] {
			kept, v.Why = append(kept, i), noGain
		}
		k.Judged = append(k.Judged, v)
	}
	kept, whole, err := narrow(k.Judged, kept, func(set []int) (gains, error) { return gainsBy(set, losses) })
	if few := (*skill.TooFewDays)(nil); errors.As(err, &few) {
		for _, i := range kept {
			k.Judged[i].Why = fmt.Sprintf("the days that choose do not tell: %v", few)
		}
		return k, nil
	}
	if err != nil {
		return k, err
	}
	k.Gain = whole
	for _, i := range kept {
		k.Judged[i].Used, k.Judged[i].Why = true, ""
	}
	return k, nil
}

// narrow drops one input after the other, the least convincing first, until each that is
// left pays, and all of them together. It returns those, and their gain over none; with
// an error, those that were left when it came. Every input that was compared has its gain
// in judged.
func narrow(judged []Verdict, kept []int, compare func(set []int) (gains, error)) ([]int, *Gain, error) {
	for len(kept) > 0 {
		g, err := compare(kept)
		if err != nil {
			return kept, nil, err
		}
		worst := 0
		for i, d := range g.without {
			judged[kept[i]].Gain = gainOf(d)
			if d.Interval.High > g.without[worst].Interval.High {
				worst = i
			}
		}
		if pays(g.without[worst]) && pays(g.whole) {
			return kept, gainOf(g.whole), nil
		}
		kept = slices.Delete(kept, worst, worst+1)
	}
	return nil, nil, nil
}

// gainsBy compares inputs with none of them and with each left out, by the squared errors
// of a method that sees some of them.
func gainsBy(set []int, losses func([]int) ([]skill.Loss, error)) (g gains, err error) {
	boot := skill.DefaultBootstrap()
	all, err := losses(set)
	if err != nil {
		return g, err
	}
	against := func(set []int) (skill.Difference, error) {
		other, err := losses(set)
		if err != nil {
			return skill.Difference{}, err
		}
		return boot.Paired(all, other)
	}
	if g.whole, err = against(nil); err != nil {
		return g, err
	}
	for i := range set {
		d, err := against(slices.Delete(slices.Clone(set), i, i+1))
		if err != nil {
			return g, err
		}
		g.without = append(g.without, d)
	}
	return g, nil
}
