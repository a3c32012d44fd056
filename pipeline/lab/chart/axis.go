package chart

import (
	"fmt"
	"math"
	"strconv"

	"lacuna/pipeline/field"
)

// A mark is a labelled place on an axis, as a share of its length.
type mark struct {
	share float64
	label string
}

// degrees returns the marks of an axis of cell centres. Shares are of the
// length from the outer edge of the first cell to that of the last.
func degrees(axis []float64, name func(float64) string) []mark {
	n := len(axis)
	if n < 2 {
		return []mark{{share: 0.5, label: name(axis[0])}}
	}
	low, high := min(axis[0], axis[n-1]), max(axis[0], axis[n-1])
	var out []mark
	for _, v := range round(low, high, 4) {
		k := cellAt(axis, v)
		out = append(out, mark{share: (k + 0.5) / float64(n), label: name(v)})
	}
	return out
}

// cellAt returns the fractional index at which an axis has the value v.
func cellAt(axis []float64, v float64) float64 {
	for k := 1; k < len(axis); k++ {
		a, b := axis[k-1], axis[k]
		if (v-a)*(v-b) <= 0 {
			return float64(k-1) + (v-a)/(b-a)
		}
	}
	return 0
}

// round returns about the given number of round numbers between low and high.
func round(low, high float64, about int) []float64 {
	span := high - low
	if !(span > 0) {
		return []float64{low}
	}
	step := math.Pow(10, math.Floor(math.Log10(span/float64(about))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if span/(step*factor) <= float64(about)+0.5 {
			step *= factor
			break
		}
	}
	var out []float64
	for k := math.Ceil(low/step - 1e-9); k*step <= high+1e-9*step; k++ {
		out = append(out, k*step)
	}
	return out
}

func northOf(v float64) string { return hemisphere(v, "N", "S") }

func eastOf(v float64) string {
	v = field.Wrap(v)
	if v == -180 {
		return "180°" // neither east nor west
	}
	return hemisphere(v, "E", "W")
}

func hemisphere(v float64, positive, negative string) string {
	// Rounding leaves 0.30000000000000004 otherwise.
	number := strconv.FormatFloat(math.Round(math.Abs(v)*1e6)/1e6, 'f', -1, 64)
	switch {
	case v > 0:
		return number + "°" + positive
	case v < 0:
		return number + "°" + negative
	}
	return number + "°"
}

// A Scale maps values to colours.
type Scale struct {
	Label     string // label of the colour bar, with its unit
	Low, High float64
	// Log10 says that values are decimal logarithms: the bar is labelled with
	// the physical values.
	Log10   bool
	Colours Colours
}

// share returns the position of a value between Low and High, cut to 0..1.
func (s Scale) share(v float64) float64 {
	if !(s.High > s.Low) {
		return 0.5
	}
	return min(max((v-s.Low)/(s.High-s.Low), 0), 1)
}

// marks returns the labelled places of the colour bar.
func (s Scale) marks() []mark {
	var out []mark
	if !s.Log10 {
		for _, v := range round(s.Low, s.High, 5) {
			out = append(out, mark{share: s.share(v), label: number(v)})
		}
		return out
	}
	for _, steps := range [][]float64{{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 6, 8}} {
		out = out[:0]
		for decade := math.Floor(s.Low); decade <= s.High; decade++ {
			for _, m := range steps {
				if v := decade + math.Log10(m); v >= s.Low-1e-9 && v <= s.High+1e-9 {
					out = append(out, mark{share: s.share(v), label: number(m * math.Pow(10, decade))})
				}
			}
		}
		if len(out) >= 4 {
			break
		}
	}
	return out
}

func number(v float64) string {
	if math.Abs(v) < 1e-9 {
		v = 0 // turns minus zero into zero
	}
	if s := fmt.Sprintf("%.4g", v); len(s) <= 6 {
		return s
	}
	return fmt.Sprintf("%.2g", v)
}

// Range returns a scale that holds all but the extreme two per cent of the
// values at either end, so that a few odd pixels do not take all the colours.
// Its Label, Log10 and Colours are for the caller to set.
func Range(values ...[]float32) Scale {
	var all []float32
	for _, v := range values {
		all = append(all, v...)
	}
	q := field.Quantiles(all, 0.02, 0.98)
	if math.IsNaN(q[0]) {
		return Scale{Low: 0, High: 1}
	}
	if q[0] == q[1] {
		return Scale{Low: q[0] - 1, High: q[1] + 1}
	}
	return Scale{Low: q[0], High: q[1]}
}

// Symmetric is Range for differences: zero is in the middle, and the colours
// diverge.
func Symmetric(values ...[]float32) Scale {
	var all []float32
	for _, list := range values {
		for _, v := range list {
			all = append(all, float32(math.Abs(float64(v))))
		}
	}
	most := field.Quantiles(all, 0.98)[0]
	if math.IsNaN(most) || most == 0 {
		most = 1
	}
	return Scale{Low: -most, High: most, Colours: Diverging}
}
