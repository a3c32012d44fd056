package classical

import "math"

// A neighbour is one observation that takes part in a solve.
type neighbour struct {
	distance2 float32 // squared, in units of the covariance scales
	frame     int32   // index in analysis.frames
	cell      int32
	rank      int32 // rank of the cell, see point
}

// before orders neighbours by distance. Observations on a grid often tie, so
// frame and place decide then, and the choice depends neither on the order of
// the search nor on the column at which the grid begins.
func (a neighbour) before(b neighbour) bool {
	if a.distance2 != b.distance2 {
		return a.distance2 < b.distance2
	}
	if a.frame != b.frame {
		return a.frame < b.frame
	}
	return a.rank < b.rank
}

// A nearest keeps the best of the neighbours it is offered: a heap whose root
// is the worst one kept. It allocates nothing after newNearest.
type nearest struct {
	heap []neighbour
	most int
}

func newNearest(most int) nearest {
	return nearest{heap: make([]neighbour, 0, most), most: most}
}

func (n *nearest) reset() { n.heap = n.heap[:0] }

// worst returns the squared distance that a further neighbour must not exceed.
func (n *nearest) worst() float32 {
	if len(n.heap) < n.most {
		return float32(math.Inf(1))
	}
	return n.heap[0].distance2
}

func (n *nearest) offer(c neighbour) {
	switch {
	case len(n.heap) < n.most:
		n.heap = append(n.heap, c)
		n.up(len(n.heap) - 1)
	case c.before(n.heap[0]):
		n.heap[0] = c
		n.down(len(n.heap))
	}
}

func (n *nearest) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !n.heap[parent].before(n.heap[i]) {
			return
		}
		n.heap[parent], n.heap[i] = n.heap[i], n.heap[parent]
		i = parent
	}
}

// down restores the order of the first size elements after the root changed.
func (n *nearest) down(size int) {
	for i := 0; ; {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < size; child++ {
			if n.heap[worst].before(n.heap[child]) {
				worst = child
			}
		}
		if worst == i {
			return
		}
		n.heap[worst], n.heap[i] = n.heap[i], n.heap[worst]
		i = worst
	}
}

// sorted returns the neighbours, nearest first. The heap is used up.
func (n *nearest) sorted() []neighbour {
	all := n.heap
	for size := len(all) - 1; size > 0; size-- {
		all[0], all[size] = all[size], all[0]
		n.down(size)
	}
	return all
}
