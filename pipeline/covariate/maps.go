package covariate

import (
	"math"
	"time"

	"lacuna/pipeline/field"
)

// Gradient returns the magnitude of the gradient of a map in its units per kilometre,
// NaN where a cell or all its neighbours along an axis are missing.
func Gradient(values []float32, g field.Grid) []float32 {
	h, w := g.Height(), g.Width()
	out, wraps := make([]float32, len(values)), g.Periodic()
	at := func(i, j int) (float64, bool) {
		if wraps {
			j = (j + w) % w
		}
		if i < 0 || i >= h || j < 0 || j >= w {
			return 0, false
		}
		v := float64(values[i*w+j])
		return v, v-v == 0
	}
	// The neighbour that way, or the cell itself where there is none.
	beside := func(i, j, down, right int) (v float64, row, col int) {
		if v, ok := at(i+down, j+right); ok {
			return v, i + down, j + right
		}
		return float64(values[i*w+j]), i, j
	}
	slope := func(i, j, down, right int) float64 {
		a, i1, j1 := beside(i, j, -down, -right)
		b, i2, j2 := beside(i, j, down, right)
		if i1 == i2 && j1 == j2 {
			return math.NaN()
		}
		return (b - a) / apart(g, i1, j1, i2, j2)
	}
	for c := range values {
		i, j := c/w, c%w
		out[c] = float32(math.Hypot(slope(i, j, 1, 0), slope(i, j, 0, 1)))
		if values[c] != values[c] { // NaN
			out[c] = field.NaN()
		}
	}
	return out
}

// apart returns the distance of two cells in kilometres.
func apart(g field.Grid, i, j, k, l int) float64 {
	w := g.Width()
	x, y, z := g.Cartesian(i, (j+w)%w)
	a, b, c := g.Cartesian(k, (l+w)%w)
	return math.Sqrt((x-a)*(x-a) + (y-b)*(y-b) + (z-c)*(z-c))
}

// Nearest returns which of several times is nearest to a time by its date, and of those
// of one date by the hour; -1: none is within most. Later dates count only where ahead
// allows them, as in delayed mode: a near-real-time product must not know of them. Of an
// earlier and a later date that are as near, it is the earlier.
func Nearest(times []time.Time, at time.Time, most time.Duration, ahead bool) int {
	best, least := -1, [3]int64{}
	for i, t := range times {
		days := int64(date(t).Sub(date(at)) / (24 * time.Hour))
		if days > 0 && !ahead || max(days, -days) > int64(most/(24*time.Hour)) {
			continue
		}
		later := int64(0)
		if days > 0 {
			later = 1
		}
		rank := [3]int64{max(days, -days), later, int64(t.Sub(at).Abs())}
		if best < 0 || less(rank, least) {
			best, least = i, rank
		}
	}
	return best
}

func less(a, b [3]int64) bool {
	for k := range a {
		if a[k] != b[k] {
			return a[k] < b[k]
		}
	}
	return false
}

// date returns the begin of the day of a time.
func date(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// Shallow returns heights or depths, of either sign and in metres, as decimal logarithms
// of 1 m and more: a metre counts on the shelf and not in the deep.
func Shallow(heights []float32) []float32 {
	out := make([]float32, len(heights))
	for i, z := range heights {
		out[i] = float32(math.Log10(1 + math.Abs(float64(z))))
	}
	return out
}

// Season returns day_of_year as the two maps of a circle, which has no step at New Year.
func Season(at time.Time, cells int) (cos, sin []float32) {
	s, c := math.Sincos(2 * math.Pi * float64(at.UTC().YearDay()) / 365.25)
	cos, sin = make([]float32, cells), make([]float32, cells)
	for i := range cos {
		cos[i], sin[i] = float32(c), float32(s)
	}
	return cos, sin
}
