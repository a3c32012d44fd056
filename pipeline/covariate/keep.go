package covariate

import (
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
		v := Verdict{Name: name, Why: noMap}
		if known[i] {
			kept, v.Why = append(kept, i), noGain
		}
		k.Judged = append(k.Judged, v)
	}
	kept, whole, err := narrow(k.Judged, kept, func(set []int) (gains, error) { return gainsBy(set, losses) })
	if tellsNothing(err) {
		for _, i := range kept {
			k.Judged[i].Why = fmt.Sprintf("the days that choose do not tell: %v", err)
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

// Bring says of each covariate what it brings to a network that uses some of them, on days
// that had no part in that choice. Losses are those of Keep.
func Bring(names []string, known, used []bool, losses func(seen []int) ([]skill.Loss, error)) (Kept, error) {
	var k Kept
	var there, kept []int
	for i, name := range names {
		v := Verdict{Name: name, Used: used[i]}
		switch {
		case !known[i]:
			v.Used, v.Why = false, noMap
		case !used[i]:
			v.Why = noGain
		default:
			kept = append(kept, i)
		}
		if known[i] {
			there = append(there, i)
		}
		k.Judged = append(k.Judged, v)
	}
	var err error
	k.Gain, err = bring(k.Judged, there, kept, losses)
	if tellsNothing(err) {
		return k, nil
	}
	return k, err
}

// bring puts the gains on days that judge into the verdicts: of each input in use over the
// others, and of any other beside those in use. It returns that of all in use over none,
// nil where none is.
func bring(judged []Verdict, known, kept []int, losses func([]int) ([]skill.Loss, error)) (*Gain, error) {
	var whole *Gain
	gains := make([]*Gain, len(judged))
	of := func(set []int) error {
		g, err := gainsBy(set, losses)
		if err != nil {
			return err
		}
		for i, k := range set {
			if gains[k] == nil {
				gains[k] = gainOf(g.without[i])
			}
		}
		if len(set) == len(kept) {
			whole = gainOf(g.whole)
		}
		return nil
	}
	if len(kept) > 0 {
		if err := of(kept); err != nil {
			return nil, err
		}
	}
	for _, k := range known {
		if !slices.Contains(kept, k) {
			if err := of(append(slices.Clone(kept), k)); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range known {
		judged[k].Gain = gains[k]
	}
	return whole, nil
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
