package covariate

import (
	"fmt"
	"math"
	"slices"

	"lacuna/pipeline/field"
)

// leastKnown is the share of a cell that must be known of a map for the cell to have a
// value: below it the mean would be that of a corner.
const leastKnown = 0.5

// A Regridder brings maps of one regular grid to the cells of another grid. A cell is
// the mean over its area of the map, taken as linear between its own cells: of a finer
// map the cells below it count by their area, and of a coarser one no step shows where
// its cells meet. Away from edges the mean over the sea is kept.
type Regridder struct {
	from, to   field.Grid
	rows, cols []weights // by row and column of to; nil where it has a plane
}

// weights are the shares of the lines of an axis in a line of another.
type weights struct {
	at    []int
	share []float64
	full  float64 // sum of the shares where all of the line lies within the axis
}

// NewRegridder returns the Regridder of two grids, or an error that says why there is
// none.
func NewRegridder(from, to field.Grid) (*Regridder, error) {
	if from.Plane != nil {
		return nil, fmt.Errorf("its grid (%v) is not one of parallels and meridians: regrid it first, for example with cdo remapcon", from)
	}
	if from.Height() < 2 || from.Width() < 2 {
		return nil, fmt.Errorf("its grid (%v) has a single row or column, and no area", from)
	}
	r := &Regridder{from: from, to: to}
	if to.Plane == nil {
		lat, lon := newLine(from.Lat, false), newLine(from.Lon, from.Periodic())
		for _, c := range cells(to.Lat, lat.step) {
			r.rows = append(r.rows, lat.over(c[0], c[1], cosine))
		}
		for _, c := range cells(to.Lon, lon.step) {
			r.cols = append(r.cols, lon.over(lon.turned(c)))
		}
	}
	if !r.touches() {
		return nil, fmt.Errorf("its grid (%v) covers nothing of the granules' (%v): look whether its axes are swapped or shifted", from, to)
	}
	return r, nil
}

// touches reports whether any cell gets a value of a map without gaps.
func (r *Regridder) touches() bool {
	whole := make([]float32, r.from.Len())
	return slices.ContainsFunc(r.Apply(whole), func(v float32) bool { return v == v })
}

// Apply returns a map on the other grid, NaN where less than half of a cell is known.
func (r *Regridder) Apply(values []float32) []float32 {
	out := make([]float32, r.to.Len())
	w := r.to.Width()
	if r.rows != nil {
		for i := range out {
			out[i] = r.mean(values, r.rows[i/w], r.cols[i%w])
		}
		return out
	}
	lat, lon := newLine(r.from.Lat, false), newLine(r.from.Lon, r.from.Periodic())
	half := r.to.StepKM() / 2 / kilometresPerDegree
	for i := range out {
		y, x := r.to.Place(i/w, i%w)
		wide := half / max(cosine(y), 0.01)
		out[i] = r.mean(values, lat.over(y-half, y+half, cosine), lon.over(lon.turned([2]float64{x - wide, x + wide})))
	}
	return out
}

const kilometresPerDegree = 6371.0088 * math.Pi / 180

func cosine(lat float64) float64 { return math.Max(math.Cos(lat*math.Pi/180), 0) }

// mean returns the mean of the known part of a cell.
func (r *Regridder) mean(values []float32, row, col weights) float32 {
	sum, known := 0.0, 0.0
	for a, i := range row.at {
		for b, j := range col.at {
			if v := float64(values[i*r.from.Width()+j]); v-v == 0 {
				share := row.share[a] * col.share[b]
				sum, known = sum+share*v, known+share
			}
		}
	}
	if known <= 0 || known < leastKnown*row.full*col.full*(1-1e-9) {
		return field.NaN()
	}
	return float32(sum / known)
}

// cells returns the edges of the cells of an axis, the lower first; alone is the width
// of one that is alone.
func cells(axis []float64, alone float64) [][2]float64 {
	out := make([][2]float64, len(axis))
	for i, x := range axis {
		before, after := alone/2, alone/2
		if len(axis) > 1 {
			before = math.Abs(axis[max(i, 1)]-axis[max(i, 1)-1]) / 2
			next := min(i+1, len(axis)-1)
			after = math.Abs(axis[next]-axis[next-1]) / 2
			if axis[1] < axis[0] {
				before, after = after, before
			}
		}
		out[i] = [2]float64{x - before, x + after}
	}
	return out
}

// A line is an axis to take means over, ascending.
type line struct {
	x      []float64
	of     []int   // index in the axis
	step   float64 // mean distance of two of its places
	closed bool
}

func newLine(axis []float64, closed bool) line {
	n := len(axis)
	l := line{step: math.Abs(axis[n-1]-axis[0]) / float64(n-1), closed: closed}
	turns := []float64{0}
	if closed { // a turn more on either side, for cells across the seam
		turns = []float64{-360, 0, 360}
	}
	for _, turn := range turns {
		for k := range axis {
			i := k
			if axis[n-1] < axis[0] {
				i = n - 1 - k
			}
			l.x, l.of = append(l.x, axis[i]+turn), append(l.of, i)
		}
	}
	return l
}

// turned returns a cell of longitudes counted as the line counts them, with no weight of
// their own.
func (l line) turned(c [2]float64) (low, high float64, weight func(float64) float64) {
	first := l.x[0] - l.step/2
	if l.closed {
		first += 360
	}
	turn := -360 * math.Floor(((c[0]+c[1])/2-first)/360)
	return c[0] + turn, c[1] + turn, func(float64) float64 { return 1 }
}

// over returns the shares of the places of a line in the mean over an interval of what
// is linear between them. Half a step beyond its ends it goes on as it ends.
func (l line) over(low, high float64, weight func(float64) float64) weights {
	w := weights{full: (high - low) * weight((low+high)/2)}
	n := len(l.x)
	add := func(i int, share float64) {
		if at := slices.Index(w.at, l.of[i]); at >= 0 {
			w.share[at] += share
		} else if share > 0 {
			w.at, w.share = append(w.at, l.of[i]), append(w.share, share)
		}
	}
	piece := func(from, to float64, use func(mid, length float64)) {
		if a, b := max(low, from), min(high, to); a < b {
			use((a+b)/2, (b-a)*weight((a+b)/2))
		}
	}
	piece(l.x[0]-l.step/2, l.x[0], func(_, length float64) { add(0, length) })
	first, _ := slices.BinarySearch(l.x, low)
	for i := max(first-1, 0); i+1 < n && l.x[i] < high; i++ {
		piece(l.x[i], l.x[i+1], func(mid, length float64) {
			t := (mid - l.x[i]) / (l.x[i+1] - l.x[i])
			add(i, (1-t)*length)
			add(i+1, t*length)
		})
	}
	piece(l.x[n-1], l.x[n-1]+l.step/2, func(_, length float64) { add(n-1, length) })
	return w
}
