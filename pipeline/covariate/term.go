package covariate

import (
	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// A Term is one input of the regression: the maps of a covariate, or of its gradient,
// for the frames of a series.
type Term struct {
	Name  string      // such as sst or sst.gradient
	Units string      // of the maps; empty: none are known
	Maps  [][]float32 // one a frame, on the grid of the series; NaN: missing, nil: all of it is
	// Uniform says that the part that all of the sea shares counts too.
	Uniform bool
	// Stays says that it is one map for all frames.
	Stays bool
}

// known reports whether any frame has a map.
func (t Term) known() bool {
	for _, m := range t.Maps {
		if m != nil {
			return true
		}
	}
	return false
}

// anomalies returns the maps less their smooth mean map, which is made as that of the
// variable itself, and less what all of the sea shares on a day: that is season and
// weather, which a temperature has more of than it tells, and observations of the
// variable itself know it better. Where a map is missing its anomaly is not known, and is expected to be
// as beside the gap, the less the farther: without a step, and zero where nothing is known.
func (t Term) anomalies(s classical.Series) [][]float32 {
	n := s.Grid.Len()
	blank := make([]float32, n)
	for i := range blank {
		blank[i] = field.NaN()
	}
	own := classical.Series{Grid: s.Grid, Sea: s.Sea, Frames: make([]classical.Frame, len(t.Maps))}
	for f, m := range t.Maps {
		own.Frames[f] = classical.Frame{Time: s.Frames[f].Time, Values: m}
		if m == nil {
			own.Frames[f].Values = blank
		}
	}
	mean := classical.Climatology(own, 0).Mean
	out := make([][]float32, len(t.Maps))
	for f, frame := range own.Frames {
		out[f] = make([]float32, n)
		missing := make([]bool, n)
		shared, known := 0.0, 0.0
		for i, v := range frame.Values {
			sea := s.Sea == nil || s.Sea[i]
			if d := v - mean[i]; sea && d-d == 0 {
				out[f][i] = d
				shared, known = shared+float64(d), known+1
			} else {
				missing[i] = true
			}
		}
		for i := range out[f] {
			if !missing[i] && !t.Uniform {
				out[f][i] -= float32(shared / known)
			}
			missing[i] = missing[i] && (s.Sea == nil || s.Sea[i])
		}
		if t.Maps[f] != nil {
			carry(out[f], missing, s.Grid)
		}
	}
	return out
}

const (
	// carrySteps and carryKept, the share of the mean of its neighbours that a missing
	// cell takes, carry anomalies about five cells into a gap: they fall to four fifths
	// from cell to cell.
	carrySteps = 32
	carryKept  = 0.99
)

// carry fills missing cells from their neighbours, at each step one cell farther.
func carry(values []float32, missing []bool, g field.Grid) {
	h, w := g.Height(), g.Width()
	var cells []int
	for c, m := range missing {
		if m {
			cells = append(cells, c)
		}
	}
	if len(cells) == 0 || len(cells) == len(values) {
		return
	}
	next, wraps := make([]float32, len(cells)), g.Periodic()
	for range carrySteps {
		for k, c := range cells {
			i, j := c/w, c%w
			sum := float32(0)
			for _, d := range [4][2]int{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
				a, b := i+d[0], j+d[1]
				if wraps {
					b = (b + w) % w
				}
				if a >= 0 && a < h && b >= 0 && b < w {
					sum += values[a*w+b]
				}
			}
			next[k] = carryKept * sum / 4
		}
		for k, c := range cells {
			values[c] = next[k]
		}
	}
}
