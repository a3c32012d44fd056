package evaluate

import (
	"fmt"

	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// A Coarsening makes maps coarser for a table at another scale: each coarse
// cell is the mean of the observations in a square of cells.
type Coarsening struct {
	Factor int `json:"factor"` // side of a square in cells; 1: unchanged
	// Majority asks for a value in half of a square's sea cells; without it one
	// is enough.
	Majority bool `json:"majority"`
}

// Of returns the series on the coarser grid. A square is sea where half of its
// cells or more are. Rows and columns that fill no square are left out, and so
// are days without any observation left.
func (c Coarsening) Of(s samples.Series) (samples.Series, error) {
	height, width := 0, 0
	if c.Factor > 0 {
		height, width = s.Grid.Height()/c.Factor, s.Grid.Width()/c.Factor
	}
	if height == 0 || width == 0 {
		return s, fmt.Errorf("coarsen: squares of %d cells, the grid has %d × %d", c.Factor, s.Grid.Height(), s.Grid.Width())
	}
	out := samples.Series{
		Grid:      s.Grid.Coarse(c.Factor),
		Sea:       make(field.Mask, height*width),
		Transform: s.Transform,
	}
	for i := range out.Sea {
		sea := 0
		c.square(s.Grid.Width(), i/width, i%width, func(cell int) {
			if s.Sea[cell] {
				sea++
			}
		})
		out.Sea[i] = 2*sea >= c.Factor*c.Factor
	}
	for _, d := range s.Days {
		values, some := make([]float32, len(out.Sea)), false
		for i := range values {
			values[i] = field.NaN()
			if out.Sea[i] {
				values[i] = c.mean(s, d.Values, i/width, i%width)
			}
			some = some || values[i] == values[i] // not NaN
		}
		if some {
			out.Days = append(out.Days, samples.Day{Time: d.Time, Values: values})
		}
	}
	return out, nil
}

// mean returns the mean of the observations in a square, NaN if there are too
// few.
func (c Coarsening) mean(s samples.Series, values []float32, row, col int) float32 {
	sum, observed, sea := 0.0, 0, 0
	c.square(s.Grid.Width(), row, col, func(cell int) {
		if s.Sea[cell] {
			sea++
		}
		if v := values[cell]; v == v { // not NaN
			sum, observed = sum+float64(v), observed+1
		}
	})
	if observed == 0 || c.Majority && 2*observed < sea {
		return field.NaN()
	}
	return float32(sum / float64(observed))
}

// square calls f for the cells of a square; columns is the width of the grid.
func (c Coarsening) square(columns, row, col int, f func(cell int)) {
	for r := range c.Factor {
		for k := range c.Factor {
			f((row*c.Factor+r)*columns + col*c.Factor + k)
		}
	}
}
