package merge

import (
	"math"
	"time"

	"lacuna/pipeline/field"
)

// A Source is one of the places that fields of a day come from. In a list of
// sources the first is the reference, and an earlier one goes before a later one
// where their errors do not differ.
type Source struct {
	Name   string
	Sensor string  // sources of one sensor share its errors, so their differences do not show them; empty: Name
	Error  float64 // standard error as far as it is known beforehand; 0: it is not
}

func (s Source) sensor() string {
	if s.Sensor == "" {
		return s.Name
	}
	return s.Sensor
}

// A Field is what one source has of a day, in the space in which errors are
// additive. NaN is a gap, and an unknown error.
type Field struct {
	Source int       // in the list of sources
	Values []float32 // a cell each, row by row
	Errors []float32 // standard errors that came with the values; nil: none did
}

// A Shape is the size of a grid, cut into regions of equal size: none smaller than
// regionCells across, and at most mostRegions along an axis, for a region needs
// common cells on many days before it tells anything.
type Shape struct{ Height, Width int }

const (
	regionCells = 24
	mostRegions = 4
)

// regions returns the number of regions along each axis.
func (s Shape) regions() (rows, cols int) {
	along := func(n int) int { return min(max(n/regionCells, 1), mostRegions) }
	return along(s.Height), along(s.Width)
}

// region returns the region of a cell.
func (s Shape) region(cell int) int {
	rows, cols := s.regions()
	return cell/s.Width*rows/s.Height*cols + cell%s.Width*cols/s.Width
}

// wholeGrid stands for all regions together.
const wholeGrid = -1

// A Day is the summary of a day's common cells.
type Day struct {
	Date  string `json:"date"` // as 2006-01-02
	Pairs []Pair `json:"pairs"`
}

// A Pair is the comparison of two sources on a day, in one region.
type Pair struct {
	A      string  `json:"a"`
	B      string  `json:"b"`
	Region int     `json:"region"` // -1: the whole grid
	Cells  int     `json:"cells"`
	Bias   float64 `json:"bias"`   // median of A - B
	Spread float64 `json:"spread"` // robust standard deviation of A - B about it

	// Of the common cells that have a background: their number, and the robust
	// standard deviation of either source about it.
	Backed  int     `json:"backed,omitempty"`
	SpreadA float64 `json:"spread_a,omitempty"`
	SpreadB float64 `json:"spread_b,omitempty"`
}

// leastCells is the number of common cells below which a day says nothing about a
// pair: the median of fewer wanders by a third of its spread.
const leastCells = 10

// Summarize compares the fields of a day, pair by pair, over the grid and in each of
// its regions. background is an estimate from earlier days, NaN where there is none;
// nil: there is none at all. Of a source that has several fields the first one that
// saw a cell counts.
func Summarize(date time.Time, shape Shape, sources []Source, fields []Field, background []float32) Day {
	day := Day{Date: date.UTC().Format(time.DateOnly)}
	seen := make([][]float32, len(sources))
	for _, f := range fields {
		if len(f.Values) != shape.Height*shape.Width {
			panic("merge: a field of another size")
		}
		seen[f.Source] = overlay(seen[f.Source], f.Values)
	}
	for a := range sources {
		for b := a + 1; b < len(sources); b++ {
			if seen[a] != nil && seen[b] != nil {
				day.Pairs = append(day.Pairs, compare(shape, [2]Source{sources[a], sources[b]}, seen[a], seen[b], background)...)
			}
		}
	}
	return day
}

// overlay returns first with its gaps filled from second.
func overlay(first, second []float32) []float32 {
	if first == nil {
		return second
	}
	out := make([]float32, len(first))
	for i, v := range first {
		if v != v {
			v = second[i]
		}
		out[i] = v
	}
	return out
}

// compare returns the pairs of two sources on a day: the whole grid first, then the
// regions that have enough common cells.
func compare(shape Shape, names [2]Source, a, b, background []float32) []Pair {
	rows, cols := shape.regions()
	type sample struct{ diff, offA, offB []float64 }
	samples := make([]sample, 1+rows*cols) // the whole grid, then the regions
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		if math.IsNaN(d) || math.IsInf(d, 0) {
			continue
		}
		for _, at := range []int{0, 1 + shape.region(i)} {
			s := &samples[at]
			s.diff = append(s.diff, d)
			if background != nil && background[i] == background[i] {
				s.offA = append(s.offA, float64(a[i]-background[i]))
				s.offB = append(s.offB, float64(b[i]-background[i]))
			}
		}
	}
	var pairs []Pair
	for at, s := range samples {
		if len(s.diff) < leastCells {
			continue
		}
		p := Pair{A: names[0].Name, B: names[1].Name, Region: at - 1, Cells: len(s.diff)}
		p.Bias, p.Spread = centre(s.diff)
		if len(s.offA) >= leastCells {
			p.Backed = len(s.offA)
			_, p.SpreadA = centre(s.offA)
			_, p.SpreadB = centre(s.offB)
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// Background returns the latest known value of each cell of earlier fields, given
// the latest first.
func Background(earlier ...[]float32) []float32 {
	var out []float32
	for _, e := range earlier {
		out = overlay(out, e)
	}
	return out
}

// gaps returns n gaps.
func gaps(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = field.NaN()
	}
	return out
}
