package infer

import (
	"lacuna/pipeline/classical"
	"lacuna/pipeline/skill"
)

// widen multiplies the sigmas of a filling, and the spread of its members, by what
// scored days say of their size at a distance from the nearest observation. Until
// enough days were scored, a model that was trained elsewhere is as sure of itself
// as optimal interpolation, which calibrates itself on the days at hand: the mean
// of the two errs alike on a sea that the model has not seen.
func (out *filling) widen(w skill.Widening, away []float64) {
	sigma := out.estimate.Sigma
	assumed := skill.Unchanged()
	if out.familiar != nil {
		assumed = skill.Matching(sigma, out.familiar, away)
	}
	factors := w.Factors(assumed)
	out.own, out.estimate.Sigma = sigma, make([]float32, len(sigma))
	eachCell(len(sigma), func(i int) {
		factor := float32(factors.At(away[i]))
		out.estimate.Sigma[i] = factor * sigma[i]
		for _, x := range out.members {
			x[i] = out.estimate.Mean[i] + factor*(x[i]-out.estimate.Mean[i])
		}
	})
}

// distancesFrom returns how far every cell is from the nearest observation of a
// frame, in cells.
func distancesFrom(s classical.Series, frame int) []float64 {
	visible := make([]bool, s.Grid.Len())
	for i, v := range s.Frames[frame].Values {
		visible[i] = finite(v) && (s.Sea == nil || s.Sea[i])
	}
	away := make([]float64, len(visible))
	for i, cells := range distances(visible, s.Grid) {
		away[i] = float64(cells)
	}
	return away
}
