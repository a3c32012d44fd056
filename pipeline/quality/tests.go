package quality

import (
	"math"
	"slices"

	"lacuna/pipeline/field"
)

// A Climatology is the mean and the standard deviation of every cell; NaN where
// they are not known, and nothing is refused.
type Climatology struct{ Mean, Std []float32 }

// OfDays returns the climatology of days around a day: for each cell the median
// of its values, and their robust standard deviation or that of all cells,
// whichever is more. Where few days are bad, as many as are good, it is that of the
// good ones. A cell with fewer than fewestDays values has none.
func OfDays(days [][]float32) Climatology {
	if len(days) == 0 {
		return Climatology{}
	}
	cells := len(days[0])
	out := Climatology{Mean: make([]float32, cells), Std: make([]float32, cells)}
	const chunk = 1 << 14
	each((cells+chunk-1)/chunk, func(k int) {
		values := make([]float32, 0, len(days))
		for c := k * chunk; c < min((k+1)*chunk, cells); c++ {
			values = values[:0]
			for _, day := range days {
				if v := day[c]; v == v { // not NaN
					values = append(values, v)
				}
			}
			out.Mean[c], out.Std[c] = robust(values)
		}
	})
	typical := float32(max(Median(out.Std), 1e-6))
	for c, std := range out.Std {
		if std < typical {
			out.Std[c] = typical
		}
	}
	return out
}

// robust returns the median of values and their robust standard deviation, and
// sorts them; NaN of too few.
func robust(values []float32) (mean, std float32) {
	if len(values) < fewestDays {
		return field.NaN(), field.NaN()
	}
	slices.Sort(values)
	mean = values[len(values)/2]
	for i, v := range values {
		values[i] = float32(math.Abs(float64(v - mean)))
	}
	slices.Sort(values)
	return mean, normal * values[len(values)/2]
}

// outside returns the values further from the mean than so many standard
// deviations.
func (k Climatology) outside(values []float32, sigmas float64) field.Mask {
	out := make(field.Mask, len(values))
	for c, v := range values {
		out[c] = math.Abs(float64(v-k.Mean[c])) > sigmas*float64(k.Std[c]) // false for NaN
	}
	return out
}

// An area has the places of cells beside one another.
type area struct {
	width, height int
	wraps         bool // the last column is beside the first
}

// around calls f with the cells within reach of a cell, itself left out, until f
// returns false.
func (a area) around(cell, reach int, f func(cell int) bool) {
	row, col := cell/a.width, cell%a.width
	for r := max(row-reach, 0); r <= min(row+reach, a.height-1); r++ {
		for c := col - reach; c <= col+reach; c++ {
			at := c
			if a.wraps {
				at = (c + a.width) % a.width
			}
			if at < 0 || at >= a.width || r == row && c == col {
				continue
			}
			if !f(r*a.width + at) {
				return
			}
		}
	}
}

// beside returns the observed cells within reach of a gap in the sky, the cells in
// which a gap is cloud.
func (a area) beside(values []float32, sky field.Mask, reach int) field.Mask {
	out := make(field.Mask, len(values))
	for i, v := range values {
		if v != v { // NaN
			continue
		}
		a.around(i, reach, func(c int) bool {
			out[i] = sky[c] && values[c] != values[c]
			return !out[i]
		})
	}
	return out
}

// Reach of the cells that an observation is compared with, and the number of them
// that it takes.
const (
	medianReach  = 2
	fewestAround = 6
)

// spikes returns the outliers of a map: observations by more than sigmas robust
// standard deviations from the median of the cells around them, and as far from
// the observation of the same cell that is nearest in time, if there is one. One
// test alone is not enough: fronts are steep, and days differ.
func (a area) spikes(values, near []float32, sigmas float64) field.Mask {
	off := a.deviations(values)
	return apart(off, departures(values, near), sigmas*Spread(off), sigmas)
}

// Deviations returns how far each observation of a map is from the median of those
// around it, itself left out; NaN where there are too few.
func Deviations(values []float32, width int) []float32 {
	return area{width: width, height: len(values) / width}.deviations(values)
}

func (a area) deviations(values []float32) []float32 {
	off := make([]float32, len(values))
	around := make([]float32, 0, (2*medianReach+1)*(2*medianReach+1))
	for i := range values {
		off[i] = a.off(i, medianReach, values, values, around)
	}
	return off
}

// off returns how far a value is from the median of the reference around it; NaN
// where there are too few. around is room to work in.
func (a area) off(cell, reach int, values, reference, around []float32) float32 {
	if v := values[cell]; v != v { // NaN
		return v
	}
	around = around[:0]
	a.around(cell, reach, func(c int) bool {
		if v := reference[c]; v == v { // not NaN
			around = append(around, v)
		}
		return true
	})
	if len(around) < fewestAround {
		return field.NaN()
	}
	slices.Sort(around)
	return values[cell] - around[len(around)/2]
}

// departures returns how far values are from those nearest in time, less the
// median of that: days differ as a whole too.
func departures(values, near []float32) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = v - near[i]
	}
	shift := float32(Median(out))
	for i := range out {
		out[i] -= shift
	}
	return out
}

// apart returns the cells that are off in space by more than a limit and, where
// they can be compared, in time by more than sigmas.
func apart(off, late []float32, limit, sigmas float64) field.Mask {
	out := make(field.Mask, len(off))
	lateLimit := sigmas * Spread(late)
	for i, d := range off {
		if !(math.Abs(float64(d)) > limit) { // true for NaN too
			continue
		}
		t := math.Abs(float64(late[i]))
		out[i] = math.IsNaN(t) || t > lateLimit
	}
	return out
}

// An edge is the test of the observations beside gaps.
type edge struct {
	Edge
	area
	near field.Mask // the observations beside a gap
}

// refused returns the observations beside a gap that are further than the
// threshold from the median of those inside, and from the nearest day, in robust
// standard deviations of what lies inside. Cells beside nothing but gaps have no
// inside, and the nearest day decides.
func (e edge) refused(values, nearest []float32) field.Mask {
	if e.Sigmas == 0 {
		out := slices.Clone(e.near)
		for i, v := range values {
			out[i] = out[i] && v == v
		}
		return out
	}
	inside := slices.Clone(values)
	for i, near := range e.near {
		if near {
			inside[i] = field.NaN()
		}
	}
	reach := e.Cells + medianReach
	at, calm := make([]float32, len(values)), make([]float32, len(values))
	around := make([]float32, 0, (2*reach+1)*(2*reach+1))
	for i, near := range e.near {
		at[i], calm[i] = field.NaN(), field.NaN()
		if near {
			at[i] = e.off(i, reach, values, inside, around)
		} else {
			calm[i] = e.off(i, reach, values, inside, around)
		}
	}
	late := departures(values, nearest)
	limit, lateLimit := e.Sigmas*Spread(calm), e.Sigmas*Spread(late)
	out := apart(at, late, limit, e.Sigmas)
	for i, near := range e.near {
		if near && at[i] != at[i] { // no inside
			out[i] = math.Abs(float64(late[i])) > lateLimit // false for NaN
		}
	}
	return out
}
