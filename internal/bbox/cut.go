package bbox

import (
	"fmt"
	"math"
)

// Span is a run of indices of an axis.
type Span struct {
	First, Len int
	Turn       float64 // degrees to add to its longitudes, so that they go on from the span before
}

// Rows returns the run of latitudes that lie in the box.
func (b Box) Rows(lat []float64) (Span, error) {
	first, last := -1, -1
	for i, y := range lat {
		if !b.HoldsLat(y) {
			continue
		}
		if first < 0 {
			first = i
		}
		if last >= 0 && i != last+1 {
			return Span{}, fmt.Errorf("the latitudes do not run one way")
		}
		last = i
	}
	if first < 0 {
		return Span{}, fmt.Errorf("no latitude lies in the bbox %v; the grid has %s", b, extent(lat))
	}
	return Span{First: first, Len: last - first + 1}, nil
}

// Columns returns the runs of longitudes that lie in the box, from west to east
// for an axis that does so: one, or two where the box crosses the edge of the
// grid.
func (b Box) Columns(lon []float64) ([]Span, error) {
	var runs []Span
	for i, x := range lon {
		if !b.HoldsLon(x) {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].First+runs[n-1].Len == i {
			runs[n-1].Len++
			continue
		}
		runs = append(runs, Span{First: i, Len: 1})
	}
	switch {
	case len(runs) == 0:
		return nil, fmt.Errorf("no longitude lies in the bbox %v; the grid has %s", b, extent(lon))
	case len(runs) == 1:
		return runs, nil
	case len(runs) > 2 || runs[0].First != 0 || runs[1].First+runs[1].Len != len(lon):
		return nil, fmt.Errorf("the longitudes do not run one way")
	}
	runs[0].Turn = math.Copysign(360, lon[len(lon)-1]-lon[0])
	return []Span{runs[1], runs[0]}, nil
}

func extent(axis []float64) string {
	if len(axis) == 0 {
		return "none"
	}
	return fmt.Sprintf("%v to %v", axis[0], axis[len(axis)-1])
}
