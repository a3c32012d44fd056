package masks

import (
	"math"

	"lacuna/pipeline/prior"
	"lacuna/pipeline/skill"
)

// Statistics describes a set of masks by the properties that a prior must match.
type Statistics struct {
	Masks        int     `json:"masks"`
	CoverageMean float64 `json:"coverage_mean"` // mean over masks of the share of sea that is observed
	CoverageSD   float64 `json:"coverage_sd"`
	// CorrelationCells is the distance at which the correlation of two cells of
	// a mask falls to 1/e, half of a mask where it does not fall that far, and 0
	// where all cells are alike.
	CorrelationCells float64 `json:"correlation_cells"`
	// EdgeDensity is the share of neighbouring pairs of sea cells of which one
	// is observed and one is not: salt and pepper has a high one.
	EdgeDensity float64 `json:"edge_density"`
	GapCells    float64 `json:"gap_cells"` // mean over masks of the size of the gap that a missing cell lies in
}

// Describe returns the statistics of masks. Masks without sea do not count.
func Describe(masks []prior.Mask) Statistics {
	var s Statistics
	var squares, edges, neighbours, gaps float64
	for _, m := range masks {
		g := skill.DescribeGaps(m.Observed, m.Sea, m.Height, m.Width)
		if g.Sea == 0 {
			continue
		}
		s.Masks++
		s.CoverageMean += g.Coverage
		squares += g.Coverage * g.Coverage
		gaps += g.TypicalSize
		differ, n := pairs(m, 1, func(a, b bool) float64 { return indicator(a != b) })
		edges += differ
		neighbours += float64(n)
	}
	if s.Masks == 0 {
		return s
	}
	n := float64(s.Masks)
	s.CoverageMean /= n
	s.CoverageSD = math.Sqrt(max(squares/n-s.CoverageMean*s.CoverageMean, 0))
	s.GapCells = gaps / n
	if neighbours > 0 {
		s.EdgeDensity = edges / neighbours
	}
	s.CorrelationCells = correlationCells(masks)
	return s
}

// pairs adds up f over the pairs of sea cells that lie lag apart along a row or
// a column.
func pairs(m prior.Mask, lag int, f func(a, b bool) float64) (sum float64, n int) {
	for i := range m.Height {
		for j := range m.Width {
			c := i*m.Width + j
			if !m.Sea[c] {
				continue
			}
			if j+lag < m.Width && m.Sea[c+lag] {
				sum += f(m.Observed[c], m.Observed[c+lag])
				n++
			}
			if d := c + lag*m.Width; i+lag < m.Height && m.Sea[d] {
				sum += f(m.Observed[c], m.Observed[d])
				n++
			}
		}
	}
	return sum, n
}

// correlationCells returns how far apart cells of a mask are that are alike by
// 1/e, up to half a window. Each mask is taken about its own coverage: about
// that of all masks, two cells of a mask would be alike at any distance, because
// masks differ in coverage, and the length would hang on how much they do.
func correlationCells(masks []prior.Mask) float64 {
	shortest := math.MaxInt
	coverage := make([]float64, len(masks))
	for i, m := range masks {
		shortest = min(shortest, m.Height, m.Width)
		ones, cells := 0.0, 0.0
		for c, sea := range m.Sea {
			if sea {
				cells++
				ones += indicator(m.Observed[c])
			}
		}
		coverage[i] = ones / max(cells, 1)
	}
	before := 1.0
	for lag := 1; lag <= shortest/2; lag++ {
		sum, variance := 0.0, 0.0
		for i, m := range masks {
			p := coverage[i]
			s, n := pairs(m, lag, func(a, b bool) float64 { return (indicator(a) - p) * (indicator(b) - p) })
			sum, variance = sum+s, variance+float64(n)*p*(1-p)
		}
		if variance == 0 {
			return 0 // every mask is all observed or all missing
		}
		now := sum / variance
		if now <= 1/math.E {
			return float64(lag-1) + (before-1/math.E)/(before-now)
		}
		before = now
	}
	return float64(shortest / 2)
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Distance returns how far s is from those of real masks: 0 where all agree,
// about 1 where one of them is off by half. It is the mean over the coverage's
// mean and standard deviation, the correlation length and the edge density of
// the absolute logarithm of their ratio, in units of ln 1.5.
func (s Statistics) Distance(real Statistics) float64 {
	sum := 0.0
	for _, pair := range [][2]float64{
		{s.CoverageMean, real.CoverageMean},
		{s.CoverageSD, real.CoverageSD},
		{s.CorrelationCells, real.CorrelationCells},
		{s.EdgeDensity, real.EdgeDensity},
	} {
		const least = 1e-3 // nothing at all is a hundred times too little, not infinitely
		sum += math.Abs(math.Log(max(pair[0], least) / max(pair[1], least)))
	}
	return sum / 4 / math.Log(1.5)
}
