package skill

import "slices"

// A Mix counts cells by how long ago they were last observed and how far away
// the nearest observation of their day is. An overlay hides cells under clear
// sky, and clear sky persists: what it hides was seen more recently, and lies
// nearer to what is visible, than what real clouds hide. Two mixes give the
// weights that make the one look like the other.
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

// Weight returns what a cell of the mix m must count so that m looks like
// wanted: the share of its class there over its share here, 0 where m has no
// such cell. Both must have the same edges.
func (m *Mix) Weight(wanted *Mix, ageDays, distanceCells float64) float64 {
	m.mustMatch(wanted)
	k := m.class(ageDays, distanceCells)
	if m.counts[k] == 0 || wanted.total == 0 {
		return 0
	}
	return (wanted.counts[k] / wanted.total) / (m.counts[k] / m.total)
}

// Reached returns the share of wanted that lies in classes of which m has
// cells: what no weight can stand for is the rest.
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
