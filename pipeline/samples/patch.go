package samples

import (
	"time"

	"lacuna/pipeline/field"
)

// A Window is a rectangle of cells. It may reach beyond the grid: what lies
// outside counts as land.
type Window struct {
	Row, Col      int // of its first cell
	Height, Width int
}

// Square returns the window of side × side cells at a place.
func Square(row, col, side int) Window { return Window{row, col, side, side} }

// Len returns the number of cells.
func (w Window) Len() int { return w.Height * w.Width }

// A Ref names a patch of an archive: a day of it and a window.
type Ref struct {
	Day    int
	Window Window
}

// A Patch is a window of one day, row by row.
type Patch struct {
	Ref
	Time   time.Time
	Values []float32 // normalised anomalies; NaN: a gap or land
	Sea    []bool
}

// Observed returns where the patch holds a value.
func (p Patch) Observed() []bool {
	out := make([]bool, len(p.Values))
	for i, v := range p.Values {
		out[i] = v == v // not NaN
	}
	return out
}

// archive is what both sides of a split have: days in normalised anomalies.
type archive struct {
	grid      field.Grid
	sea       field.Mask
	transform field.Transform
	scaling   Scaling
	days      []Day // anomalies
	numbers   []int64
}

func newArchive(s Series, days []Day, scaling Scaling) *archive {
	a := &archive{
		grid: s.Grid, sea: s.Sea, transform: s.Transform, scaling: scaling,
		days: make([]Day, len(days)), numbers: make([]int64, len(days)),
	}
	for i, d := range days {
		values := make([]float32, len(d.Values))
		for cell, v := range d.Values {
			values[cell] = scaling.Forward(v, cell)
		}
		a.days[i] = Day{Time: d.Time, Values: values}
		a.numbers[i] = dayNumber(d.Time)
	}
	return a
}

// Days returns how many days there are to see.
func (a *archive) Days() int { return len(a.days) }

// Time returns the time of a day.
func (a *archive) Time(day int) time.Time { return a.days[day].Time }

// Grid returns the grid.
func (a *archive) Grid() field.Grid { return a.grid }

// Sea returns the sea mask of the grid. It must not be changed.
func (a *archive) Sea() field.Mask { return a.sea }

// Scaling returns how anomalies are made.
func (a *archive) Scaling() Scaling { return a.scaling }

// Transform returns the space in which anomalies are taken.
func (a *archive) Transform() field.Transform { return a.transform }

// Cut returns the patch that r names.
func (a *archive) Cut(r Ref) Patch {
	return Patch{Ref: r, Time: a.days[r.Day].Time, Sea: cutMask(a, r.Window), Values: a.CutMap(a.days[r.Day].Values, r.Window)}
}

// CutMap returns the cells of a window from a map of the whole grid, NaN
// outside of it.
func (a *archive) CutMap(m []float32, w Window) []float32 {
	out := make([]float32, w.Len())
	for i := range out {
		out[i] = field.NaN()
	}
	a.rows(w, func(dst, src, n int) { copy(out[dst:dst+n], m[src:src+n]) })
	return out
}

func cutMask(a *archive, w Window) []bool {
	out := make([]bool, w.Len())
	a.rows(w, func(dst, src, n int) { copy(out[dst:dst+n], a.sea[src:src+n]) })
	return out
}

// rows calls f for each stretch of a row of w that lies on the grid: n cells
// from dst in the window and from src in the grid.
func (a *archive) rows(w Window, f func(dst, src, n int)) {
	height, width := a.grid.Height(), a.grid.Width()
	left, right := max(w.Col, 0), min(w.Col+w.Width, width)
	if left >= right {
		return
	}
	for row := max(w.Row, 0); row < min(w.Row+w.Height, height); row++ {
		f((row-w.Row)*w.Width+left-w.Col, row*width+left, right-left)
	}
}

// Refs returns the patches of side × side cells, stride cells apart in both
// directions, that hold at least minObserved values, day by day. The tiling is
// centred on the grid.
func (t Train) Refs(side, stride, minObserved int) []Ref {
	all := make([]int, len(t.days))
	for i := range all {
		all[i] = i
	}
	return t.refs(all, side, stride, minObserved)
}

// Refs returns patches of the held-out days, as those of Train.
func (h HeldOut) Refs(side, stride, minObserved int) []Ref {
	return h.refs(h.targets, side, stride, minObserved)
}

func (a *archive) refs(days []int, side, stride, minObserved int) []Ref {
	rows, cols := starts(a.grid.Height(), side, stride), starts(a.grid.Width(), side, stride)
	var out []Ref
	for _, day := range days {
		for _, row := range rows {
			for _, col := range cols {
				r := Ref{Day: day, Window: Square(row, col, side)}
				if a.observed(r) >= minObserved {
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// starts returns where windows of a side begin along an axis of n cells.
func starts(n, side, stride int) []int {
	if n <= side {
		return []int{(n - side) / 2}
	}
	count := (n-side)/stride + 1
	first := (n - side - (count-1)*stride) / 2
	out := make([]int, count)
	for i := range out {
		out[i] = first + i*stride
	}
	return out
}

func (a *archive) observed(r Ref) int {
	values, n := a.days[r.Day].Values, 0
	a.rows(r.Window, func(_, src, count int) {
		for _, v := range values[src : src+count] {
			if v == v { // not NaN
				n++
			}
		}
	})
	return n
}
