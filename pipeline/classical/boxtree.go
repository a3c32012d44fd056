package classical

import (
	"math"
	"math/bits"

	"lacuna/pipeline/field"
)

// leafSide is the side, in cells, of the smallest boxes of a boxTree: few
// enough cells to scan them all and to have a bit each in a uint16.
const leafSide = 4

// A boxTree finds the observations of one frame that lie nearest to a point.
// Observations come on a grid, so there is nothing to sort: leaves are blocks
// of cells, four boxes make one of the next level, and each box knows the
// Cartesian extent of the observations in it. Distances are chords through
// the Earth, so date line and poles need no special care.
//
// Only leaves have the extent of all their cells, which all frames share, and a frame
// has a bit for each of these: half a byte for every observation of a sea that is a
// quarter seen.
type boxTree struct {
	sphere *sphere
	seen   []uint16 // of each leaf: its observed cells, row by row
	levels []boxMap // those above the leaves; one box last
}

type boxMap struct {
	rows, cols int
	boxes      []box
}

// A box is the extent of cells. An empty one reaches from +Inf to -Inf.
type box struct{ low, high [3]float32 }

func newBoxTree(sphere *sphere, g field.Grid, observed func(cell int) bool) boxTree {
	leaves := &sphere.leaves
	t := boxTree{sphere: sphere, seen: make([]uint16, len(leaves.boxes))}
	h, w := g.Height(), g.Width()
	top := newBoxMap((leaves.rows+1)/2, (leaves.cols+1)/2)
	for k := range t.seen {
		row, col := k/leaves.cols, k%leaves.cols
		b := &top.boxes[row/2*top.cols+col/2]
		for i := range min(leafSide, h-row*leafSide) {
			for j := range min(leafSide, w-col*leafSide) {
				if y, x := row*leafSide+i, col*leafSide+j; observed(y*w + x) {
					t.seen[k] |= 1 << (i*leafSide + j)
					b.include(sphere.at(y, x))
				}
			}
		}
	}
	t.levels = append(t.levels, top)
	for len(top.boxes) > 1 {
		top = top.halved()
		t.levels = append(t.levels, top)
	}
	return t
}

// empty reports whether the frame has no observation.
func (t *boxTree) empty() bool { return t.levels[len(t.levels)-1].boxes[0].empty() }

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
func (m *boxMap) halved() boxMap {
	up := newBoxMap((m.rows+1)/2, (m.cols+1)/2)
	for k := range m.boxes {
		b, p := &m.boxes[k], &up.boxes[k/m.cols/2*up.cols+k%m.cols/2]
		for a := range 3 { // an empty box changes nothing
			p.low[a] = min(p.low[a], b.low[a])
			p.high[a] = max(p.high[a], b.high[a])
		}
	}
	return up
}

func (b *box) empty() bool { return b.low[0] > b.high[0] }

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
	if !t.empty() {
		t.descend(len(t.levels), 0, 0, h)
	}
}

// descend looks through a box, of level 0 for a leaf.
func (t *boxTree) descend(level, row, col int, h *neighbourhood) {
	if level == 0 {
		t.offer(row, col, h)
		return
	}
	down := &t.sphere.leaves
	if level > 1 {
		down = &t.levels[level-2]
	}
	var order [4]child
	n := 0
	for i := 2 * row; i < min(2*row+2, down.rows); i++ {
		for j := 2 * col; j < min(2*col+2, down.cols); j++ {
			k := i*down.cols + j
			b := &down.boxes[k]
			if level == 1 && t.seen[k] == 0 || b.empty() {
				continue
			}
			c := child{distance2: b.distance2(h.centre), row: i, col: j, box: b}
			at := n
			for ; at > 0 && order[at-1].distance2 > c.distance2; at-- {
				order[at] = order[at-1]
			}
			order[at] = c
			n++
		}
	}
	for _, c := range order[:n] {
		if h.wants(c.box, c.distance2) {
			t.descend(level-1, c.row, c.col, h)
		}
	}
}

// offer offers the points of a leaf.
func (t *boxTree) offer(row, col int, h *neighbourhood) {
	left := t.seen[row*t.sphere.leaves.cols+col]
	for i := row * leafSide; left != 0; i, left = i+1, left>>leafSide {
		for line := left & (1<<leafSide - 1); line != 0; line &= line - 1 {
			h.offer(t.sphere.at(i, col*leafSide+bits.TrailingZeros16(line)))
		}
	}
}

type child struct {
	distance2 float32
	row, col  int
	box       *box
}
