package simulate

import (
	"math"
	"sync"
)

// A current describes the motion of the water of a region: eddies that drift with the
// planetary waves, and a rim current that follows the coast.
type current struct {
	longestKM, shortestKM float64 // wavelengths of the eddies
	speedKMPerDay         float64 // root mean square, away from the coast
	memoryDays            float64 // life time of the largest eddies
	eastKMPerDay          float64 // drift of the eddies; negative: west
	rimKMPerDay           float64 // speed at the coast; positive: land on the right
	coastKM               float64 // width of the rim current, and of the strip where eddies fade
}

// epochDays is how long the flow and the source stand still before they move
// on: short against the memory of eddies, long enough to share one epoch
// among several days.
const epochDays = 2

// An epoch is the flow and the source field of one stretch of epochDays, on
// the nodes of a coarser grid.
type epoch struct {
	flow   [][2]float32 // rows and columns a day
	source []float32    // value to which the tracer relaxes
}

// A basin holds the flow and the sources of the tracer. Epochs are computed on
// demand; those around the last requested day are kept.
type basin struct {
	*chart
	current current
	water   *water
	nodes   nodes
	eddies  *medium // stream function
	patches *medium // random part of the source
	fine    *medium // small structures that drift along

	mu   sync.Mutex
	kept map[int]*epoch
}

// nodes is the grid of every step-th row and column, on which flow and source
// are smooth enough to be interpolated.
type nodes struct {
	step, h, w int
	perRow     float64 // 1/step
	active     []bool  // nodes near the sea
}

func newBasin(c *chart, seed uint64, cur current, wat *water) *basin {
	stepKM := c.grid.StepKM()
	step := max(1, int(cur.shortestKM/nodesPerWave/stepKM))
	for c.periodic && c.w%step != 0 {
		step--
	}
	n := nodes{step: step, perRow: 1 / float64(step), h: (c.h-1+step-1)/step + 1, w: (c.w-1+step-1)/step + 1}
	if c.periodic {
		n.w = c.w/step + 1 // the last column is the first again
	}
	b := &basin{
		chart: c, current: cur, water: wat, nodes: n, kept: map[int]*epoch{},
		eddies:  cur.eddies(c).seeded(mix(seed, seedFlow)),
		patches: wat.patches().seeded(mix(seed, seedPatches)),
		fine:    wat.fine(c).seeded(mix(seed, seedFine)),
	}
	b.nodes.active = make([]bool, n.h*n.w)
	parallel(n.h, func(i int) {
		for j := range n.w {
			b.nodes.active[i*n.w+j] = b.seaNear(i*step, j*step, 2*step)
		}
	})
	return b
}

// nodesPerWave resolves the shortest eddies well enough for linear
// interpolation.
const nodesPerWave = 10

func (b *basin) seaNear(row, col, reach int) bool {
	for i := max(row-reach, 0); i <= min(row+reach, b.h-1); i++ {
		for j := col - reach; j <= col+reach; j++ {
			k := j
			if b.periodic {
				k = (j + b.w) % b.w
			}
			if k >= 0 && k < b.w && b.sea[i*b.w+k] {
				return true
			}
		}
	}
	return false
}

// keptEpochs bounds the memory: twice the epochs of a day.
const keptEpochs = 20

// epochs returns the epochs first to last.
func (b *basin) epochs(first, last int) []*epoch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.kept) > keptEpochs {
		for k := range b.kept {
			if k < first || k > last {
				delete(b.kept, k)
			}
		}
	}
	out := make([]*epoch, 0, last-first+1)
	for k := first; k <= last; k++ {
		e, ok := b.kept[k]
		if !ok {
			e = b.epoch(k)
			b.kept[k] = e
		}
		out = append(out, e)
	}
	return out
}

func (b *basin) epoch(k int) *epoch {
	day := (float64(k) + 0.5) * epochDays
	n := b.nodes
	e := &epoch{flow: make([][2]float32, n.h*n.w), source: make([]float32, n.h*n.w)}
	eddies, patches := b.eddies.at(day), b.patches.at(day)
	psi := make([]float64, n.h*n.w)
	parallel(n.h, func(i int) {
		row := min(i*n.step, b.h-1)
		for j := range n.w {
			if at := i*n.w + j; n.active[at] {
				col := b.nodeColumn(j)
				x, y, z := b.point(float64(row), float64(col))
				coastKM := float64(b.coastKM[row*b.w+col])
				psi[at] = b.current.stream(eddies.value(x, y, z), coastKM)
				e.source[at] = float32(b.water.source(row*b.w+col, day, patches.value(x, y, z)))
			}
		}
	})
	for range b.smoothings() {
		psi = b.smoothed(psi)
	}
	b.setFlow(e, psi)
	return e
}

// smoothings is how often the stream function is smoothed to remove the steps of
// the pixelated coast, which would comb the tracer into stripes: twice where the
// nodes are dense, never where it would weaken the eddies.
func (b *basin) smoothings() int {
	const nodesPerPass = 5 // nodes in the shortest wave for each pass
	nodeKM := float64(b.nodes.step) * b.grid.StepKM()
	return min(2, int(b.current.shortestKM/nodeKM/nodesPerPass))
}

// smoothed returns x after a pass of the binomial filter 1-2-1 in rows and
// columns.
func (b *basin) smoothed(x []float64) []float64 {
	n := b.nodes
	out := make([]float64, len(x))
	parallel(n.h, func(i int) {
		south, north := max(i-1, 0)*n.w, min(i+1, n.h-1)*n.w
		column := func(j int) float64 { return x[south+j] + 2*x[i*n.w+j] + x[north+j] }
		for j := range n.w {
			west, east := b.beside(j)
			out[i*n.w+j] = (column(west) + 2*column(j) + column(east)) / 16
		}
	})
	return out
}

// beside returns the columns of nodes on either side of j, or j itself at the
// edge of the grid.
func (b *basin) beside(j int) (west, east int) {
	if last := b.nodes.w - 1; b.periodic {
		return (j + last - 1) % last, (j + 1) % last
	}
	return max(j-1, 0), min(j+1, b.nodes.w-1)
}

// nodeColumn returns the column of the grid of a column of nodes.
func (b *basin) nodeColumn(j int) int {
	if b.periodic {
		return j * b.nodes.step % b.w
	}
	return min(j*b.nodes.step, b.w-1)
}

func (c current) eddies(ch *chart) turbulence {
	return turbulence{
		longestKM: c.longestKM, shortestKM: c.shortestKM,
		slope:      1.5, // a stream function: the velocity is one power of k flatter
		memoryDays: c.memoryDays, eastKMPerDay: c.eastKMPerDay, latDegrees: ch.grid.Lat[ch.h/2],
	}
}

// stream returns the stream function in square kilometres a day. It is
// constant along the coast, so no water crosses it (R. Bridson and others,
// Curl-noise for procedural fluid flow, 2007).
func (c current) stream(eddies, coastKM float64) float64 {
	t := min(coastKM/c.coastKM, 1)
	fadeIn := t * t * (3 - 2*t)
	rim := c.rimKMPerDay * c.coastKM * (math.Exp(-coastKM/c.coastKM) - 1)
	return fadeIn*eddies*c.speedKMPerDay*c.longestKM/gradientOfWave + rim
}

// gradientOfWave is the root mean square gradient of the eddies, which have
// unit variance, times their longest wavelength: 2 pi for each of the two
// directions of a pure wave, more with the shorter waves added.
// TestEddiesHaveTheSpeedAskedFor measures it.
const gradientOfWave = 8.7

// setFlow stores the velocity (-dpsi/dy, dpsi/dx) by central differences.
func (b *basin) setFlow(e *epoch, psi []float64) {
	n := b.nodes
	parallel(n.h, func(i int) {
		south, north := max(i-1, 0), min(i+1, n.h-1)
		row := min(i*n.step, b.h-1)
		northKM, eastKM := b.northKM[row], b.eastKM[row]
		for j := range n.w {
			west, east := b.beside(j)
			gap := 2
			if !b.periodic {
				gap = east - west
			}
			dy := (psi[north*n.w+j] - psi[south*n.w+j]) / (float64((north-south)*n.step) * northKM)
			dx := (psi[i*n.w+east] - psi[i*n.w+west]) / (float64(gap*n.step) * eastKM)
			e.flow[i*n.w+j] = [2]float32{float32(dx / northKM), float32(-dy / eastKM)}
		}
	})
}

// velocity returns the flow of e in rows and columns a day.
func (b *basin) velocity(e *epoch, row, col float64) (rows, cols float64) {
	at, fr, fc := b.node(row, col)
	north := e.flow[at : at+2 : at+2]
	south := e.flow[at+b.nodes.w : at+b.nodes.w+2 : at+b.nodes.w+2]
	r0 := north[0][0] + fc*(north[1][0]-north[0][0])
	c0 := north[0][1] + fc*(north[1][1]-north[0][1])
	r1 := south[0][0] + fc*(south[1][0]-south[0][0])
	c1 := south[0][1] + fc*(south[1][1]-south[0][1])
	return float64(r0 + fr*(r1-r0)), float64(c0 + fr*(c1-c0))
}

// sourceAt returns a source field at a place.
func (b *basin) sourceAt(source []float32, row, col float64) float64 {
	at, fr, fc := b.node(row, col)
	next := at + b.nodes.w
	s0 := source[at] + fc*(source[at+1]-source[at])
	s1 := source[next] + fc*(source[next+1]-source[next])
	return float64(s0 + fr*(s1-s0))
}

// node returns the node before a place in rows and columns, and how far the
// place is towards the next ones. The place must be inside.
func (b *basin) node(row, col float64) (at int, fr, fc float32) {
	r, c := row*b.nodes.perRow, col*b.nodes.perRow
	i, j := int(r), int(c)
	return i*b.nodes.w + j, float32(r - float64(i)), float32(c - float64(j))
}

// back returns the place of the water at row, col a number of days earlier in the flow of e,
// by one midpoint step. Water that would have come from outside the grid is
// held at its edge.
func (b *basin) back(e *epoch, days, row, col float64) (float64, float64) {
	dr, dc := b.velocity(e, row, col)
	dr, dc = b.velocity(e, b.rowInside(row-dr*days/2), b.colInside(col-dc*days/2))
	return b.rowInside(row - dr*days), b.colInside(col - dc*days)
}

// edgeCells keeps places off the last row and column, so that a next node always
// exists.
const edgeCells = 1e-6

func (b *basin) rowInside(row float64) float64 {
	return min(max(row, 0), float64(b.h-1)-edgeCells)
}

func (b *basin) colInside(col float64) float64 {
	if !b.periodic {
		return min(max(col, 0), float64(b.w-1)-edgeCells)
	}
	if w := float64(b.w); col < 0 {
		col += w
	} else if col >= w {
		col -= w
	}
	return min(max(col, 0), float64(b.w)-edgeCells)
}
