package infer

import (
	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// Details are further facts about a filled field, cell by cell. They are made
// on demand.
type Details struct {
	// Members are equally likely complete fields in physical units, NaN on
	// land. Nil if no members were drawn.
	Members [][]float32
	// Reliability is P(query | context), the probability that the cell would
	// have been a query cell in training, given the visible ones; or else
	// P(query) of its place. It is a heuristic and no uncertainty. Nil if the
	// model has neither.
	Reliability []float32
	// DistanceKM is the distance to the nearest observation of the same field,
	// as cells times the step of the grid, and DistanceDays that to the nearest
	// observation of the cell in time; 0 at observed cells, and +Inf and NaN
	// where there is none.
	DistanceKM, DistanceDays []float32
}

// detail measures the distances from the cells of frame target to the
// observations of a series that is already cut to its window of days.
func detail(s classical.Series, target int) *Details {
	visible := make([]bool, s.Grid.Len())
	for i, v := range s.Frames[target].Values {
		visible[i] = finite(v) && (s.Sea == nil || s.Sea[i])
	}
	d := &Details{DistanceKM: distances(visible, s.Grid), DistanceDays: make([]float32, len(visible))}
	step := float32(s.Grid.StepKM())
	last, next := composites(s, target)
	eachCell(len(visible), func(i int) {
		d.DistanceKM[i] *= step
		if !visible[i] {
			d.DistanceDays[i] = nearer(daysOf(last.Freshness[i]), daysOf(next.Freshness[i]))
		}
	})
	return d
}

// nearer returns the shorter of two times, NaN if both are.
func nearer(before, after float32) float32 {
	if before != before || after < before { // NaN: no observation before
		return after
	}
	return before
}

// daysOf is the inverse of freshness; NaN for 0, which marks no observation.
func daysOf(fresh float32) float32 {
	if fresh == 0 {
		return field.NaN()
	}
	return 3/fresh - 2
}
