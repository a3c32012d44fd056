package skill

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Coverage is the share of truths that lay inside the central interval of a
// nominal probability.
type Coverage struct {
	Nominal float64 `json:"nominal"`
	Share   float64 `json:"share"`
}

// A Calibration compares the stated uncertainty with the real errors.
type Calibration struct {
	Pixels int     `json:"pixels"`
	CRPS   float64 `json:"crps"`
	// SpreadSkill is the root mean square of the stated standard deviation
	// over that of the error; 1 is calibrated. For an ensemble of M members
	// the variance counts (M+1)/M, because the mean of few members errs too.
	// See Fortin and others, Journal of Hydrometeorology 15 (2014), 1708-1713.
	// For centred members it is the root mean square of their deviations from
	// the mean over that of the truth's.
	SpreadSkill *float64   `json:"spread_skill,omitempty"`
	Coverage    []Coverage `json:"coverage"`
	// Histogram counts the position of the truth in the distribution: the rank
	// among the members, or the tenth of a Gaussian. A flat one is calibrated;
	// a valley means too narrow, a hill too wide.
	Histogram []float64 `json:"histogram"`
	CBGD      *float64  `json:"cbgd,omitempty"` // mean over single members, whose texture is that of a map
}

// Covers returns the share of truths in the interval of the nominal
// probability, and false if it was not measured.
func (c *Calibration) Covers(nominal float64) (share float64, known bool) {
	if c == nil {
		return 0, false
	}
	for _, v := range c.Coverage {
		if v.Nominal == nominal {
			return v.Share, true
		}
	}
	return 0, false
}

// Levels are the nominal probabilities of the central intervals that are
// measured, the widest last.
func Levels() []float64 { return []float64{0.5, 0.8, 0.9} }

// gaussianBins is the number of classes of the histogram of a Gaussian.
const gaussianBins = 10

// A tally accumulates a Calibration.
type tally struct {
	levels     []float64
	halfWidths []float64 // half widths of the intervals in standard deviations
	members    int       // 0: a Gaussian
	centred    bool      // members were moved to the mean
	pixels     int
	crps       float64
	variance   float64
	squares    float64
	inside     []float64
	histogram  []float64
	boundary   Boundary
}

func newTally(members int, centred bool) *tally {
	t := &tally{levels: Levels(), members: members, centred: centred}
	t.inside = make([]float64, len(t.levels))
	t.histogram = make([]float64, gaussianBins)
	if members > 0 {
		t.histogram = make([]float64, members+1)
	}
	for _, p := range t.levels {
		t.halfWidths = append(t.halfWidths, halfWidth(p, members, centred))
	}
	return t
}

// covered returns how many truths lay in the widest interval, that of 90 %.
func (t *tally) covered() float64 { return t.inside[len(t.inside)-1] }

// halfWidth returns how many standard deviations either side of the mean hold
// the probability p. For members it is that of Student's distribution with
// √(1+1/M), which is exact for the next draw from the Gaussian of the members.
// The mean of centred members is not estimated from them, so their root is 1.
func halfWidth(p float64, members int, centred bool) float64 {
	if members == 0 {
		return distuv.UnitNormal.Quantile((1 + p) / 2)
	}
	if members == 1 {
		return 0
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(members - 1)}
	if centred {
		return t.Quantile((1 + p) / 2)
	}
	return t.Quantile((1+p)/2) * math.Sqrt(1+1/float64(members))
}

// addGaussian counts one truth y under a normal distribution and returns its
// CRPS.
func (t *tally) addGaussian(mean, sigma, y float64) float64 {
	crps := CRPSGaussian(mean, sigma, y)
	t.pixels++
	t.crps += crps
	t.variance += sigma * sigma
	t.squares += (y - mean) * (y - mean)
	for k, w := range t.halfWidths {
		if math.Abs(y-mean) <= w*sigma {
			t.inside[k]++
		}
	}
	place := distuv.UnitNormal.CDF((y - mean) / max(sigma, math.SmallestNonzeroFloat64))
	t.histogram[min(int(place*gaussianBins), gaussianBins-1)]++
	return crps
}

// addMembers counts one truth y among members, which are sorted in place, and
// returns their CRPS.
func (t *tally) addMembers(x []float64, y float64) float64 {
	slices.Sort(x)
	m := float64(len(x))
	mean := 0.0
	for _, v := range x {
		mean += v / m
	}
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	claimed := variance / m // mean square deviation of members from the mean
	if len(x) > 1 && !t.centred {
		variance /= m - 1
		claimed = variance * (m + 1) / m
	} else {
		variance = claimed
	}
	crps := crpsSorted(x, y, t.centred)
	t.pixels++
	t.crps += crps
	t.variance += claimed
	t.squares += (y - mean) * (y - mean)
	for k, p := range t.levels {
		share, resolved := 0.0, false
		if !t.centred { // ranks are defined for independent draws
			share, resolved = insideOrder(x, y, p)
		}
		if !resolved && math.Abs(y-mean) <= t.halfWidths[k]*math.Sqrt(variance) {
			share = 1
		}
		t.inside[k] += share
	}
	addRank(t.histogram, x, y)
	return crps
}

// insideOrder returns whether y lies in the central interval of probability p
// between two of the sorted members: 1 or 0, or a share where the interval
// falls between two pairs of members, so that members drawn from the right
// distribution cover exactly p. The next draw lies below the k-th of M with
// probability k/(M+1), so M members resolve no more than (M-1)/(M+1).
func insideOrder(x []float64, y, p float64) (share float64, resolved bool) {
	m := len(x)
	// Rounding must not cost an interval that fits exactly.
	const slack = 1e-9
	pos := (1-p)/2*float64(m+1) - 1
	if pos < -slack {
		return 0, false
	}
	k := int(max(pos, 0))
	part := max(pos, 0) - float64(k)
	between := func(k int) float64 {
		return indicator(k < m-1-k && x[k] <= y && y <= x[m-1-k])
	}
	return (1-part)*between(k) + part*between(k+1), true
}

// addRank adds one truth to a rank histogram. Where it equals members, it is
// shared out evenly among the ranks that it might have had.
func addRank(histogram, sorted []float64, y float64) {
	low, found := slices.BinarySearch(sorted, y)
	high := low
	for found && high < len(sorted) && sorted[high] == y {
		high++
	}
	for r := low; r <= high; r++ {
		histogram[r] += 1 / float64(high-low+1)
	}
}

// calibration returns the summary, or nil if nothing was added.
func (t *tally) calibration() *Calibration {
	if t == nil || t.pixels == 0 {
		return nil
	}
	n := float64(t.pixels)
	c := &Calibration{Pixels: t.pixels, CRPS: t.crps / n, Histogram: slices.Clone(t.histogram)}
	c.SpreadSkill = present(math.Sqrt(t.variance / t.squares))
	for k, p := range t.levels {
		c.Coverage = append(c.Coverage, Coverage{Nominal: p, Share: t.inside[k] / n})
	}
	if ratio, known := t.boundary.CBGD(); known {
		c.CBGD = present(ratio)
	}
	return c
}

// present returns a pointer to v, or nil if v is not finite.
func present(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
