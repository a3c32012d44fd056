package samples

import (
	"slices"

	"lacuna/pipeline/field"
)

// Seen are days of a place that a version has learned from or was chosen by.
// None of its descendants is judged on them, nor chosen by days that it learned
// from. Days that chose it may choose again: nothing has learned from them.
type Seen struct {
	Box     *Box   // nil: the place is not known, and may be any
	Learned []Date // in order
	Chosen  []Date // in order
	// Until is the last day that may have been learned from where Learned is not
	// known; 0: it is. None up to it judges; some of them have to choose.
	Until Date
}

// bars reports whether a day of a place must not have a role.
func (s Seen) bars(box Box, d Date, role Role) bool {
	if s.Box != nil && !s.Box.Overlaps(box) {
		return false
	}
	_, learned := slices.BinarySearch(s.Learned, d)
	_, chosen := slices.BinarySearch(s.Chosen, d)
	switch role {
	case Choose:
		return learned
	case Judge:
		return learned || chosen || s.Until != 0 && d <= s.Until
	}
	return false
}

func barred(seen []Seen, g field.Grid, d Date, role Role) bool {
	return slices.ContainsFunc(seen, func(s Seen) bool { return s.bars(BoxOf(g), d, role) })
}

// Box is the extent of a grid in degrees. East is at least West; both may be
// counted from either meridian.
type Box struct {
	South float64 `json:"south"`
	North float64 `json:"north"`
	West  float64 `json:"west"`
	East  float64 `json:"east"`
}

// BoxOf returns the extent of the cell centres of a grid.
func BoxOf(g field.Grid) Box {
	var b Box
	b.South, b.North, b.West, b.East = g.Bounds()
	return b
}

// Overlaps reports whether b and o have a place in common.
func (b Box) Overlaps(o Box) bool {
	if b.North < o.South || o.North < b.South {
		return false
	}
	for _, turn := range []float64{-720, -360, 0, 360, 720} { // longitudes run from -180 to 360, or across either end
		if b.West <= o.East+turn && o.West+turn <= b.East {
			return true
		}
	}
	return false
}
