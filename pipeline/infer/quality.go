package infer

import (
	"math"
	"slices"
	"strings"

	"lacuna/internal/faults"
	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// Quality says which observations are refused or corrected. The zero value
// publishes every observation bit for bit.
type Quality struct {
	// Reject refuses spikes, observations more than Sigmas away from the cells
	// around them and from the nearest day; they are filled and flagged as
	// rejected.
	Reject bool `yaml:"reject,omitempty"`
	// Sigmas is the smallest deviation of a spike; 0: 5.
	Sigmas float64 `yaml:"sigmas,omitempty"`
	// Observed is the treatment of all others: keep, blend or denoise; empty:
	// keep. The latter two take three analyses instead of one.
	Observed string `yaml:"observed,omitempty"`
}

// defaultSigmas leaves one of two million values of a normal distribution
// outside: less than one in a basin.
const defaultSigmas = 5

// Validate reports everything wrong with q. Each message begins with the key.
func (q Quality) Validate() error {
	var errs faults.List
	errs.Check(q.Sigmas == 0 || q.Sigmas >= 2 && q.Sigmas <= 100, "quality.sigmas is %g, must be 2..100, or 0 for %d", q.Sigmas, defaultSigmas)
	names := []string{Keep, Blend, Denoise}
	errs.Check(q.Observed == "" || slices.Contains(names, q.Observed), "quality.observed is %q, must be one of %s", q.Observed, strings.Join(names, ", "))
	return errs.Err()
}

func (q Quality) sigmas() float64 {
	if q.Sigmas == 0 {
		return defaultSigmas
	}
	return q.Sigmas
}

// medianReach is how many cells to each side a spike is compared with.
const medianReach = 2

// fewestAround is the number of observations around a cell that it takes to
// call it a spike.
const fewestAround = 6

// Spikes returns the outliers of a map: observations by more than sigmas
// robust standard deviations from the median of the cells around them, and as
// far from the observation of the same cell that is nearest in time, if there
// is one. One test alone is not enough: fronts are steep, and days differ.
//
// A robust standard deviation is 1.4826 times the median distance from the
// median, here of the whole map, so that a calm patch does not make ordinary
// noise a spike. values and near are in the space in which errors are
// additive; NaN in values is a gap and in near no observation. See Rousseeuw and
// Croux, Journal of the American Statistical Association 88 (1993), 1273-1283.
func Spikes(values, near []float32, width int, sigmas float64) field.Mask {
	out := make(field.Mask, len(values))
	off, nearOff := deviations(values, width), make([]float32, len(values))
	for i := range nearOff {
		nearOff[i] = field.NaN()
		if near != nil {
			nearOff[i] = values[i] - near[i]
		}
	}
	limit, nearLimit := sigmas*spread(off), sigmas*spread(nearOff)
	shift := median(nearOff)
	for i, d := range off {
		if !(math.Abs(float64(d)) > limit) { // true for NaN too
			continue
		}
		apart := math.Abs(float64(nearOff[i]) - shift)
		out[i] = math.IsNaN(apart) || apart > nearLimit
	}
	return out
}

// deviations returns how far each observation is from the median of those
// around it, itself left out; NaN where there are too few.
func deviations(values []float32, width int) []float32 {
	height := len(values) / width
	out := make([]float32, len(values))
	around := make([]float32, 0, (2*medianReach+1)*(2*medianReach+1))
	for i, v := range values {
		out[i] = field.NaN()
		if v != v { // NaN
			continue
		}
		around = around[:0]
		row, col := i/width, i%width
		for r := max(row-medianReach, 0); r <= min(row+medianReach, height-1); r++ {
			for c := max(col-medianReach, 0); c <= min(col+medianReach, width-1); c++ {
				if w := values[r*width+c]; w == w && (r != row || c != col) {
					around = append(around, w)
				}
			}
		}
		if len(around) >= fewestAround {
			slices.Sort(around)
			out[i] = v - around[len(around)/2]
		}
	}
	return out
}

// nearestInTime returns for each cell the observation nearest in time to frame
// target, NaN where there is none.
func nearestInTime(s classical.Series, target int) []float32 {
	last, next := composites(s, target)
	out := make([]float32, s.Grid.Len())
	for i := range out {
		switch {
		case last.Freshness[i] == 0 && next.Freshness[i] == 0:
			out[i] = field.NaN()
		case last.Freshness[i] >= next.Freshness[i]:
			out[i] = last.Value[i]
		default:
			out[i] = next.Value[i]
		}
	}
	return out
}

func median(values []float32) float64 { return field.Quantiles(values, 0.5)[0] }

// spread returns the robust standard deviation of values, and never 0, so that
// rounding in a constant map makes no spikes.
func spread(values []float32) float64 {
	const normal = 1.4826
	middle := median(values)
	off := make([]float32, len(values))
	for i, v := range values {
		off[i] = float32(math.Abs(float64(v) - middle))
	}
	return max(normal*median(off), 1e-6)
}
