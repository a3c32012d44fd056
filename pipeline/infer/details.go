package infer

import (
	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// Details are what else is known of a filled field, cell by cell. They are
// made on demand.
type Details struct {
	// Members are complete fields that could be the truth, in physical units,
	// NaN on land. Nil where none were drawn.
	Members [][]float32
	// Reliability is P(query | context): how likely the cell would have been
	// one to learn from, given what is visible, or else P(query) of its place.
	// A heuristic and no uncertainty. Nil where the model does not have it.
	Reliability []float32
	// DistanceKM is the distance to the nearest observation of the same field,
	// as cells times the step of the grid, and DistanceDays that to the nearest
	// observation of the cell in time; 0 at observed cells, and +Inf and NaN
	// where there is none.
	DistanceKM, DistanceDays []float32
}

// detail measures how far observations are from the cells of frame target of a
// series that holds all that may be seen.
func detail(s classical.Series, target int) *Details {
	visible := make([]bool, s.Grid.Len())
	for i, v := range s.Frames[target].Values {
		visible[i] = finite(v) && (s.Sea == nil || s.Sea[i])
	}
	d := &Details{DistanceKM: distances(visible, s.Grid), DistanceDays: make([]float32, len(visible))}
	step := float32(s.Grid.StepKM())
	last, next := composites(s, target)
	everywhere(len(visible), func(i int) {
		d.DistanceKM[i] *= step
		if !visible[i] {
			d.DistanceDays[i] = nearer(daysOf(last.Freshness[i]), daysOf(next.Freshness[i]))
		}
	})
	return d
}

// nearer returns the shorter of two times, NaN where there is neither.
func nearer(before, after float32) float32 {
	if before != before || after < before { // NaN: none
		return after
	}
	return before
}

// daysOf is the inverse of freshness; NaN for none.
func daysOf(fresh float32) float32 {
	if fresh == 0 {
		return field.NaN()
	}
	return 3/fresh - 2
}
