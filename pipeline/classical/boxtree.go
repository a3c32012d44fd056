package classical

import (
	"math"

	"lacuna/pipeline/field"
)

// leafSide is the side, in cells, of the smallest boxes of a boxTree: few
// enough cells to scan them all, enough to keep the boxes small beside them.
const leafSide = 4

// A boxTree finds the observations of one frame that lie nearest to a point.
// Observations come on a grid, so there is nothing to sort: leaves are blocks
// of cells, four boxes make one of the next level, and each box knows the
// Cartesian extent of the observations in it. Distances are chords through
// the Earth, so date line and poles need no special care.
type boxTree struct {
	sphere []point  // positions of all cells of the grid, shared by all trees
	cells  []int32  // observed cells, in order of their leaves
	levels []boxMap // leaves first, one box last
}

// A point is a cell, in kilometres from the centre of the Earth.
// Single precision is good to half a metre there.
type point struct {
	x, y, z float32
	cell    int32
	rank    int32 // place in the order of rows and of longitudes from -180
}

type boxMap struct {
	rows, cols int
	boxes      []box
}

// A box is the extent of the cells first..last-1. An empty one has
// first == last.
type box struct {
	low, high   [3]float32
	first, last int32 // range of cells; on upper levels only empty or not
}

func newBoxTree(sphere []point, g field.Grid, observed func(cell int) bool) boxTree {
	n := 0
	for cell := range sphere {
		if observed(cell) {
			n++
		}
	}
	t := boxTree{sphere: sphere, cells: make([]int32, 0, n)}
	h, w := g.Height(), g.Width()
	leaves := newBoxMap((h+leafSide-1)/leafSide, (w+leafSide-1)/leafSide)
	for k := range leaves.boxes {
		b := &leaves.boxes[k]
		b.first = int32(len(t.cells))
		top, left := k/leaves.cols*leafSide, k%leaves.cols*leafSide
		for i := top; i < min(top+leafSide, h); i++ {
			for j := left; j < min(left+leafSide, w); j++ {
				if cell := i*w + j; observed(cell) {
					t.cells = append(t.cells, int32(cell))
					b.include(sphere[cell])
				}
			}
		}
		b.last = int32(len(t.cells))
	}
	t.levels = append(t.levels, leaves)
	for top := leaves; len(top.boxes) > 1; {
		top = top.halved()
		t.levels = append(t.levels, top)
	}
	return t
}

func newBoxMap(rows, cols int) boxMap {
	m := boxMap{rows: rows, cols: cols, boxes: make([]box, rows*cols)}
	far := float32(math.Inf(1))
	for k := range m.boxes {
		m.boxes[k].low = [3]float32{far, far, far}
		m.boxes[k].high = [3]float32{-far, -far, -far}
	}
	return m
}

// halved returns the next level: each of its boxes holds up to 2×2 of m.
func (m boxMap) halved() boxMap {
	up := newBoxMap((m.rows+1)/2, (m.cols+1)/2)
	for k, b := range m.boxes {
		if b.first == b.last {
			continue
		}
		p := &up.boxes[k/m.cols/2*up.cols+k%m.cols/2]
		p.last = p.first + 1
		for a := range 3 {
			p.low[a] = min(p.low[a], b.low[a])
			p.high[a] = max(p.high[a], b.high[a])
		}
	}
	return up
}

func (b *box) include(p point) {
	for a, v := range [3]float32{p.x, p.y, p.z} {
		b.low[a] = min(b.low[a], v)
		b.high[a] = max(b.high[a], v)
	}
}

// distance2 returns the squared distance from q to the nearest point of the
// box, in km². Rounding cannot lift it above that of a point inside.
func (b *box) distance2(q point) float32 {
	dx := max(b.low[0]-q.x, q.x-b.high[0], 0)
	dy := max(b.low[1]-q.y, q.y-b.high[1], 0)
	dz := max(b.low[2]-q.z, q.z-b.high[2], 0)
	return dx*dx + dy*dy + dz*dz
}

// extent returns how far the box reaches along axis, seen from q. Rounding
// is allowed for, so that no point inside lies outside of it.
func (b *box) extent(axis [3]float32, q point) (low, high float32) {
	const slackKM = 0.01 // coordinates are good to a metre
	from := [3]float32{q.x, q.y, q.z}
	for a, u := range axis {
		l, h := u*(b.low[a]-from[a]), u*(b.high[a]-from[a])
		low += min(l, h)
		high += max(l, h)
	}
	return low - slackKM, high + slackKM
}

// collect offers to h all points that may be among its neighbours.
func (t *boxTree) collect(h *neighbourhood) {
	if len(t.cells) > 0 {
		t.descend(len(t.levels)-1, 0, 0, h)
	}
}

func (t *boxTree) descend(level, row, col int, h *neighbourhood) {
	if level == 0 {
		b := &t.levels[0].boxes[row*t.levels[0].cols+col]
		for _, c := range t.cells[b.first:b.last] {
			h.offer(t.sphere[c])
		}
		return
	}
	down := &t.levels[level-1]
	var order [4]child
	n := 0
	for i := 2 * row; i < min(2*row+2, down.rows); i++ {
		for j := 2 * col; j < min(2*col+2, down.cols); j++ {
			b := &down.boxes[i*down.cols+j]
			if b.first == b.last {
				continue
			}
			c := child{distance2: b.distance2(h.centre), row: i, col: j, box: b}
			k := n
			for ; k > 0 && order[k-1].distance2 > c.distance2; k-- {
				order[k] = order[k-1]
			}
			order[k] = c
			n++
		}
	}
	for _, c := range order[:n] {
		if h.wants(c.box, c.distance2) {
			t.descend(level-1, c.row, c.col, h)
		}
	}
}

type child struct {
	distance2 float32
	row, col  int
	box       *box
}
