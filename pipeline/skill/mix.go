package skill

import "slices"

// A Mix counts cells by the age of their last observation and the distance to
// the nearest observation of their day. An overlay hides cells under clear sky,
// and clear sky persists: its hidden cells were observed more recently, and lie
// nearer to visible ones, than cells under real clouds. Two mixes give the
// weights that make the one resemble the other.
type Mix struct {
	ageEdges, distanceEdges []float64
	counts                  []float64 // ages × distances
	total                   float64
}

// NewMix returns a mix without any cell. The edges are the upper ends of the
// classes, ascending, in days and in cells; a last class without end follows.
func NewMix(ageEdgesDays, distanceEdgesCells []float64) *Mix {
	if !slices.IsSorted(ageEdgesDays) || !slices.IsSorted(distanceEdgesCells) {
		panic("skill: edges of a mix do not ascend")
	}
	return &Mix{
		ageEdges: ageEdgesDays, distanceEdges: distanceEdgesCells,
		counts: make([]float64, (len(ageEdgesDays)+1)*(len(distanceEdgesCells)+1)),
	}
}

// Add counts one cell. Either number may be infinite.
func (m *Mix) Add(ageDays, distanceCells float64) {
	m.counts[m.class(ageDays, distanceCells)]++
	m.total++
}

func (m *Mix) class(ageDays, distanceCells float64) int {
	a, _ := slices.BinarySearch(m.ageEdges, ageDays)
	d, _ := slices.BinarySearch(m.distanceEdges, distanceCells)
	return a*(len(m.distanceEdges)+1) + d
}

// Weight returns the weight of a cell of m with which m resembles wanted: the
// share of its class in wanted over its share in m, 0 if m has no such cell.
// Both must have the same edges.
func (m *Mix) Weight(wanted *Mix, ageDays, distanceCells float64) float64 {
	m.mustMatch(wanted)
	k := m.class(ageDays, distanceCells)
	if m.counts[k] == 0 || wanted.total == 0 {
		return 0
	}
	return (wanted.counts[k] / wanted.total) / (m.counts[k] / m.total)
}

// Reached returns the share of wanted in classes of which m has cells. No
// weight can represent the rest.
func (m *Mix) Reached(wanted *Mix) float64 {
	m.mustMatch(wanted)
	reached := 0.0
	for k, n := range wanted.counts {
		if m.counts[k] > 0 {
			reached += n
		}
	}
	return reached / max(wanted.total, 1)
}

func (m *Mix) mustMatch(o *Mix) {
	if !slices.Equal(m.ageEdges, o.ageEdges) || !slices.Equal(m.distanceEdges, o.distanceEdges) {
		panic("skill: mixes with different edges")
	}
}
