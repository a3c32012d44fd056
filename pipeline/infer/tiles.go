package infer

import (
	"math"
	"slices"

	"lacuna/pipeline/field"
)

// leastWindow is the side of the smallest window in cells: that of the training
// patches.
const leastWindow = 64

// alignCells aligns windows: they begin at multiples of it, so that the coarse
// levels of a network see the same blocks of cells in every window.
const alignCells = 8

// A tiling covers a grid with windows of one size.
type tiling struct {
	gridHeight, gridWidth int
	periodic              bool // the grid goes round the globe
	height, width         int  // size of a window
	rows, cols            []int
	up, across            []ramp // weights along each axis, one ramp for each row or column of windows
}

// A ramp is the weight of each line of a window.
type ramp []float32

// A tile is a window of a tiling by its place in it.
type tile struct{ row, col int }

// newTiling covers grid with windows of at most window × window cells that
// overlap. A grid with no more cells than that is one window, unless it goes
// round: then the window reaches across the seam on both sides.
func newTiling(grid field.Grid, window, overlap int) tiling {
	t := tiling{gridHeight: grid.Height(), gridWidth: grid.Width(), periodic: grid.Periodic()}
	overlap = min(overlap, window/2)
	high, wide := window, window
	if t.gridHeight*t.gridWidth <= window*window {
		high, wide = t.gridHeight, t.gridWidth
	}
	t.height, t.rows = spreadOut(t.gridHeight, high, overlap)
	t.up = ramps(t.rows, t.height, t.gridHeight)
	if !t.periodic {
		t.width, t.cols = spreadOut(t.gridWidth, wide, overlap)
		t.across = ramps(t.cols, t.width, t.gridWidth)
		return t
	}
	count := 1
	if wide < t.gridWidth {
		count = (t.gridWidth + wide - overlap - 1) / (wide - overlap)
		t.width = min(aligned(t.gridWidth/count+1+overlap), wide)
	} else {
		t.width = t.gridWidth + 2*min(overlap, t.gridWidth/2)
	}
	for i := range count {
		t.cols = append(t.cols, i*t.gridWidth/count-overlap/2)
	}
	for range t.cols {
		t.across = append(t.across, newRamp(t.width, overlap, overlap))
	}
	return t
}

// Borders returns the rows and columns of a grid at which windows of a given
// side begin or end if they overlap by a quarter: where seams would show.
func Borders(grid field.Grid, window int) (rows, cols []int) {
	t := newTiling(grid, window, window/4)
	both := func(starts []int, size, n int) []int {
		var out []int
		for _, s := range starts {
			for _, at := range []int{s, s + size} {
				if at > 0 && at < n {
					out = append(out, at)
				}
			}
		}
		return out
	}
	return both(t.rows, t.height, t.gridHeight), both(t.cols, t.width, t.gridWidth)
}

// spreadOut covers an axis of n cells with overlapping windows: as few as the
// given size allows, and no larger than needed. It returns their size and their
// first cells.
func spreadOut(n, size, overlap int) (int, []int) {
	if n <= size {
		return n, []int{0}
	}
	count := (n - overlap + size - overlap - 1) / (size - overlap)
	size = min(aligned((n+(count-1)*overlap+count-1)/count+alignCells), size)
	out := make([]int, count)
	for i := 1; i < count; i++ {
		out[i] = i * (n - size) / (count - 1)
		if i < count-1 {
			out[i] = out[i] / alignCells * alignCells
		}
	}
	return size, out
}

func aligned(n int) int { return (n + alignCells - 1) / alignCells * alignCells }

// ramps returns the weights of windows that begin at starts: one at the edges
// of the grid, rising from zero where a window reaches into another.
func ramps(starts []int, size, n int) []ramp {
	out := make([]ramp, len(starts))
	for i, s := range starts {
		before, after := 0, 0
		if s > 0 {
			before = starts[i-1] + size - s
		}
		if s+size < n {
			after = s + size - starts[i+1]
		}
		out[i] = newRamp(size, before, after)
	}
	return out
}

// newRamp returns weights that rise over the first cells and fall over the
// last ones as sin². The outer eighth of each has no weight: there a network
// sees only one side.
func newRamp(size, before, after int) ramp {
	out := make(ramp, size)
	for i := range out {
		out[i] = min(rise(i, before), rise(size-1-i, after))
	}
	return out
}

func rise(i, over int) float32 {
	if i >= over {
		return 1
	}
	margin := float64(over) / 8
	at := (float64(i) + 0.5 - margin) / (float64(over) - 2*margin)
	s := math.Sin(math.Pi / 2 * min(max(at, 0), 1))
	// Never zero: a cell that only margins cover still has a value.
	return float32(max(s*s, 1e-6))
}

// tiles returns the windows that hold a cell of need, row by row.
func (t tiling) tiles(need []bool) []tile {
	var out []tile
	for row := range t.rows {
		for col := range t.cols {
			at := tile{row, col}
			found := false
			t.spans(at, func(_, cell, n int) { found = found || slices.Contains(need[cell:cell+n], true) })
			if found {
				out = append(out, at)
			}
		}
	}
	return out
}

// spans calls f for every run of cells that is contiguous both in a window and
// in the grid, with its first cell in either and its length.
func (t tiling) spans(at tile, f func(inside, cell, n int)) {
	for i := range t.height {
		row := (t.rows[at.row] + i) * t.gridWidth
		for j := 0; j < t.width; {
			col := t.cols[at.col] + j
			if t.periodic {
				col = ((col % t.gridWidth) + t.gridWidth) % t.gridWidth
			}
			n := min(t.width-j, t.gridWidth-col)
			f(i*t.width+j, row+col, n)
			j += n
		}
	}
}

// whole reports whether one window is exactly the grid.
func (t tiling) whole() bool {
	return t.height == t.gridHeight && t.width == t.gridWidth && len(t.cols) == 1 && t.cols[0] == 0
}

// cut returns the cells of a window. They must not be changed: where the window
// is the whole grid they are not copied.
func cut[T any](t tiling, at tile, m []T) []T {
	if m == nil || t.whole() {
		return m
	}
	out := make([]T, t.height*t.width)
	t.spans(at, func(inside, cell, n int) { copy(out[inside:inside+n], m[cell:]) })
	return out
}

// A blend is the weighted mean of the windows at the cells that they share.
type blend struct {
	t      tiling
	sum    []float32
	weight []float32 // sum over all windows; shared by blends of the same windows
}

// weights returns the sum of the weights of windows at every cell.
func (t tiling) weights(tiles []tile) []float32 {
	out := make([]float32, t.gridHeight*t.gridWidth)
	for _, at := range tiles {
		t.spans(at, func(inside, cell, n int) {
			up, across := t.weight(at, inside, n)
			for k, w := range across {
				out[cell+k] += up * w
			}
		})
	}
	return out
}

// weight returns the weights of a run of cells of a window: that of its row,
// and that of each column.
func (t tiling) weight(at tile, inside, n int) (up float32, across ramp) {
	col := inside % t.width
	return t.up[at.row][inside/t.width], t.across[at.col][col : col+n]
}

// add adds the values of a window. For sums to be the same bit for bit, windows
// must always be added in the same order.
func (b blend) add(at tile, predicted []float32) {
	b.t.spans(at, func(inside, cell, n int) {
		up, across := b.t.weight(at, inside, n)
		sum, all, predicted := b.sum[cell:cell+n], b.weight[cell:cell+n], predicted[inside:inside+n]
		for k, w := range across {
			sum[k] += up * w / all[k] * predicted[k]
		}
	})
}
