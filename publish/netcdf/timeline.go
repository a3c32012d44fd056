package netcdf

import (
	"fmt"
	"math"
	"time"
)

// Timeline are the times of the fields of a file.
type Timeline struct {
	Axis, Dim string // time coordinate and its dimension
	Times     []time.Time
	Bounds    string         // variable with begin and end of each field; empty: there is none
	Periods   [][2]time.Time // its content
}

// Timeline reads the times of a file of WriteProduct, whose first one is first:
// then the reference date of its units, of which there are many dialects, need
// not be understood.
func (f File) Timeline(variable string, first time.Time) (Timeline, error) {
	found, err := findAxes(f, variable)
	if err != nil {
		return Timeline{}, err
	}
	axis, ok := f.variable(found[timeAxis])
	if !ok || len(axis.Dims) != 1 {
		return Timeline{}, fmt.Errorf("file has no time coordinate")
	}
	units, stored := text(axis.Attrs, "units"), unpacked(axis)
	if _, ok := countIn(units); !ok || len(stored) == 0 {
		return Timeline{}, fmt.Errorf("times in %q are not understood", units)
	}
	line := Timeline{Axis: axis.Name, Dim: axis.Dims[0], Bounds: text(axis.Attrs, "bounds")}
	for _, x := range stored {
		line.Times = append(line.Times, later(first, units, x-stored[0]))
	}
	bounds, ok := f.variable(line.Bounds)
	if !ok || len(bounds.Dims) != 2 {
		line.Bounds = ""
		return line, nil
	}
	pairs := unpacked(bounds)
	for i := range stored {
		line.Periods = append(line.Periods, [2]time.Time{
			later(first, units, pairs[2*i]-stored[0]), later(first, units, pairs[2*i+1]-stored[0]),
		})
	}
	return line, nil
}

// later returns the time that is an amount of units after t, to the second: the
// inverse of countIn.
func later(t time.Time, units string, amount float64) time.Time {
	count, _ := countIn(units)
	if perSecond := count(time.Unix(1, 0)) - count(time.Unix(0, 0)); perSecond > 1e-6 { // not months or years
		return t.Add(time.Duration(math.Round(amount/perSecond)) * time.Second).UTC()
	}
	t = t.UTC()
	perYear := count(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)) - count(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	whole, part := math.Modf(months(t) + amount*12/perYear - 1) // months of year 0 count from 1
	first := time.Date(0, time.Month(int(whole)+1), 1, 0, 0, 0, 0, time.UTC)
	return first.Add(time.Duration(math.Round(part*first.AddDate(0, 1, 0).Sub(first).Seconds())) * time.Second)
}
