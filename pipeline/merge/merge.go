package merge

import (
	"math"
	"slices"
)

// Merged is one field of those of several sources.
type Merged struct {
	Values []float32 // corrected to the reference; NaN: no source saw the cell
	Errors []float32 // standard error, NaN where it is not known
	Field  []int     // the field of the list that a cell comes from; -1: none
	Bias   []float32 // that was taken from the value; 0: it is as it came
}

// surelyBetter is the error of a source, by that of one that goes before it, from
// which on it is preferred: within a tenth fits change from day to day, and a map
// that changes its source with them would flicker.
const surelyBetter = 0.9

// Merge gives each cell to the source with the least error there, corrected for its
// bias. Where errors are unknown, or differ by less than a tenth, the order of the
// sources decides, and of fields of one source their order. Errors that came with a
// field keep their pattern and are scaled to the fitted error of the source.
func Merge(f Fit, fields []Field) Merged {
	n := f.shape.Height * f.shape.Width
	out := Merged{Values: gaps(n), Errors: gaps(n), Field: make([]int, n), Bias: make([]float32, n)}
	order := make([]int, len(fields))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return fields[a].Source - fields[b].Source })
	usual := make([]float64, len(fields))
	for i, x := range fields {
		usual[i] = usualError(x.Errors)
	}
	for cell := range n {
		out.Field[cell] = -1
		best := Quality{Sigma: math.NaN()}
		for _, at := range order {
			if v := fields[at].Values[cell]; v-v != 0 {
				continue
			}
			q := f.Quality(fields[at].Source, cell)
			q.Sigma = scaled(q.Sigma, fields[at].Errors, cell, usual[at])
			if out.Field[cell] < 0 || q.Sigma < surelyBetter*best.Sigma {
				out.Field[cell], best = at, q
			}
		}
		if at := out.Field[cell]; at >= 0 {
			out.Bias[cell] = float32(best.Bias)
			out.Values[cell] = fields[at].Values[cell] - out.Bias[cell]
			out.Errors[cell] = float32(best.Sigma)
		}
	}
	return out
}

// usualError returns the median of the errors that came with a field; NaN where none
// did.
func usualError(errors []float32) float64 {
	var known []float64
	for _, e := range errors {
		if e > 0 && !math.IsInf(float64(e), 0) {
			known = append(known, float64(e))
		}
	}
	if len(known) == 0 {
		return math.NaN()
	}
	slices.Sort(known)
	return middle(known)
}

// scaled returns the error of a cell: the fitted one, with the pattern of those that
// came with the field.
func scaled(fitted float64, errors []float32, cell int, usual float64) float64 {
	if errors == nil || !(errors[cell] > 0) || math.IsInf(float64(errors[cell]), 0) {
		return fitted
	}
	own := float64(errors[cell])
	if math.IsNaN(fitted) {
		return own
	}
	return fitted * own / usual
}
