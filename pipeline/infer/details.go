package infer

import (
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// Details are further facts about a filled field, cell by cell. They are made
// on demand.
type Details struct {
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
func detail(s classical.Series, target int, step time.Duration) *Details {
	visible := make([]bool, s.Grid.Len())
	for i, v := range s.Frames[target].Values {
		visible[i] = finite(v) && (s.Sea == nil || s.Sea[i])
	}
	d := &Details{DistanceKM: distances(visible, s.Grid), DistanceDays: make([]float32, len(visible))}
	km := float32(s.Grid.StepKM())
	eachCell(len(visible), func(i int) {
		d.DistanceKM[i] *= km
		if !visible[i] {
			d.DistanceDays[i] = field.NaN()
		}
	})
	for f, frame := range s.Frames {
		if f == target {
			continue
		}
		days := daysApart(s, target, f, step)
		eachCell(len(visible), func(i int) {
			if !visible[i] && finite(frame.Values[i]) && !(d.DistanceDays[i] <= days) {
				d.DistanceDays[i] = days
			}
		})
	}
	return d
}

// daysApart returns the time between two frames in days, whole ones where there is
// a frame a day: the time of day of an overpass says nothing there.
func daysApart(s classical.Series, a, b int, step time.Duration) float32 {
	if Daily(step) {
		return float32(ageDays(s, a, b))
	}
	return float32(s.Frames[a].Time.Sub(s.Frames[b].Time).Abs().Hours() / 24)
}
