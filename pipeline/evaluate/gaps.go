package evaluate

import (
	"math"

	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Upper ends of the classes of cells. Both grow by factors, as errors do.
var (
	ageEdgesDays  = []float64{1, 2, 4, 8, 16, samples.LastDays}
	distanceEdges = []float64{1, 2, 4, 8, 16} // cells
)

// WeighGaps gives every scored cell a weight with which overlays resemble the
// true gaps of the same windows in two respects: the age of the last observation
// and the distance to the nearest visible cell. Summaries have a WeightedMSE
// from then on. It returns the share of the true gaps that overlays can
// represent.
func (e *Exam) WeighGaps() (reached float64) {
	hidden, gaps := skill.NewMix(ageEdgesDays, distanceEdges), skill.NewMix(ageEdgesDays, distanceEdges)
	places := make([]cells, len(e.overlays))
	for i, o := range e.overlays {
		last := e.held.Last(o.Ref, samples.LastDays)
		places[i] = cellsOf(last, o.Visible, o.Window)
		observed := o.Observed()
		real := cellsOf(last, observed, o.Window)
		for k := range o.Sea {
			switch {
			case o.Scored[k]:
				hidden.Add(places[i].ageDays[k], places[i].distance[k])
			case o.Sea[k] && !observed[k]:
				gaps.Add(real.ageDays[k], real.distance[k])
			}
		}
	}
	e.weights = make([][]float32, len(e.overlays))
	for i, o := range e.overlays {
		e.weights[i] = make([]float32, len(o.Scored))
		for k, scored := range o.Scored {
			if scored {
				e.weights[i][k] = float32(hidden.Weight(gaps, places[i].ageDays[k], places[i].distance[k]))
			}
		}
	}
	return hidden.Reached(gaps)
}

// cells holds for each cell of a window the age of its last observation and the
// distance to the nearest visible cell.
type cells struct{ ageDays, distance []float64 }

func cellsOf(last samples.Composite, visible []bool, w samples.Window) cells {
	c := cells{make([]float64, len(visible)), skill.Distances(visible, w.Height, w.Width)}
	for i, f := range last.Freshness {
		c.ageDays[i] = math.Inf(1)
		if f > 0 {
			c.ageDays[i] = math.Round(3/float64(f) - 2) // inverse of the freshness of a Composite
		}
	}
	return c
}
