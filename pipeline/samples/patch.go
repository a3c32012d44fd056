package samples

import "time"

// A Window is a rectangle of cells. It may reach beyond the grid: cells outside
// count as land, or are those of the other side where the grid goes round the globe.
type Window struct {
	Row, Col      int // place of its first cell
	Height, Width int
}

// Square returns the window of side × side cells at a place.
func Square(row, col, side int) Window { return Window{row, col, side, side} }

// Len returns the number of cells.
func (w Window) Len() int { return w.Height * w.Width }

// A Ref names a patch of an archive: a day of it, which is of one place, and a
// window there.
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
	Place  int // number of its series, the same on both sides of a split
}

// Observed returns the observation mask of the patch.
func (p Patch) Observed() []bool {
	out := make([]bool, len(p.Values))
	for i, v := range p.Values {
		out[i] = v == v // not NaN
	}
	return out
}

// Cut returns the patch that r names.
func (a *archive) Cut(r Ref) Patch {
	p := a.placeOf[r.Day]
	return Patch{Ref: r, Place: p.number, Time: a.days[r.Day].Time, Sea: p.cutSea(r.Window), Values: p.CutMap(a.days[r.Day].Values, r.Window)}
}

// Refs returns the patches of side × side cells, stride cells apart in both
// directions, that hold at least minObserved values, day by day. The tiling is
// centred on the grid of the day; round the globe it goes all the way, and its first
// window lies across the meridian at which the grid begins.
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
	var out []Ref
	for _, day := range days {
		grid := a.placeOf[day].Grid
		rows, cols := starts(grid.Height(), side, stride), starts(grid.Width(), side, stride)
		if grid.Periodic() && grid.Width() > side {
			cols = around(grid.Width(), side, stride)
		}
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

// starts returns the first cells of windows of a side along an axis of n cells.
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

// around returns the first cells of windows of a side along an axis of n cells that
// closes. No two overlap that are a side apart.
func around(n, side, stride int) []int {
	out := make([]int, max(n/stride, 1))
	for i := range out {
		out[i] = i*stride - side/2
	}
	return out
}

func (a *archive) observed(r Ref) int {
	values, n := a.days[r.Day].Values, 0
	a.placeOf[r.Day].rows(r.Window, func(_, src, count int) {
		for _, v := range values[src : src+count] {
			if v == v { // not NaN
				n++
			}
		}
	})
	return n
}
