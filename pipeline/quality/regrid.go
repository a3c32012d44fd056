package quality

import (
	"cmp"
	"math"
	"slices"

	"lacuna/pipeline/field"
)

// Regrid returns the values of the nearest cells of another grid, NaN where it has
// none within its step.
func Regrid(values []float32, from, to field.Grid) []float32 {
	find := alongAxes
	if from.Plane != nil || to.Plane != nil {
		find = onSphere
	}
	at := find(from, to)
	out := make([]float32, to.Len())
	for i := range out {
		if out[i] = field.NaN(); at(i) >= 0 {
			out[i] = values[at(i)]
		}
	}
	return out
}

// alongAxes returns the function that gives the nearest cell of one grid of latitudes
// and longitudes for a cell of another, or -1.
func alongAxes(from, to field.Grid) func(cell int) int {
	rows := nearest(from.Lat, to.Lat, func(d float64) float64 { return d })
	columns := nearest(from.Lon, to.Lon, field.Wrap)
	return func(cell int) int {
		r, c := rows[cell/to.Width()], columns[cell%to.Width()]
		if r < 0 || c < 0 {
			return -1
		}
		return r*from.Width() + c
	}
}

// nearest returns for each place of an axis the index of the nearest one of
// another; -1 where it is further than a step of that.
func nearest(axis, places []float64, wrap func(float64) float64) []int {
	step := math.Inf(1)
	if n := len(axis); n > 1 {
		step = math.Abs(axis[n-1]-axis[0]) / float64(n-1)
	}
	out := make([]int, len(places))
	for i, place := range places {
		apart := func(x float64) float64 { return math.Abs(wrap(x - place)) }
		at := slices.Index(axis, slices.MinFunc(axis, func(a, b float64) int { return cmp.Compare(apart(a), apart(b)) }))
		if out[i] = at; apart(axis[at]) > step {
			out[i] = -1
		}
	}
	return out
}

// onSphere is alongAxes for grids of any shape: places are compared on the sphere, and
// one that is further from all cells than the longest step between two has none.
func onSphere(from, to field.Grid) func(cell int) int {
	place := func(g field.Grid, cell int) [3]float64 {
		x, y, z := g.Cartesian(cell/g.Width(), cell%g.Width())
		return [3]float64{x, y, z}
	}
	apart := func(a, b [3]float64) float64 {
		return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
	}
	step := 0.0
	places := make([][3]float64, from.Len())
	for c := range places {
		places[c] = place(from, c)
		if c%from.Width() > 0 {
			step = max(step, apart(places[c], places[c-1]))
		}
		if c >= from.Width() {
			step = max(step, apart(places[c], places[c-from.Width()]))
		}
	}
	// Cells by cubes of a step, so that those within a step lie in a cube or beside it.
	cubeOf := func(p [3]float64) [3]int32 {
		return [3]int32{int32(math.Floor(p[0] / step)), int32(math.Floor(p[1] / step)), int32(math.Floor(p[2] / step))}
	}
	cubes := map[[3]int32][]int{}
	for c, p := range places {
		cubes[cubeOf(p)] = append(cubes[cubeOf(p)], c)
	}
	found := make([]int, to.Len())
	for i := range found {
		p := place(to, i)
		home, least := cubeOf(p), step
		found[i] = -1
		for k := range int32(27) {
			for _, c := range cubes[[3]int32{home[0] + k%3 - 1, home[1] + k/3%3 - 1, home[2] + k/9 - 1}] {
				if d := apart(p, places[c]); d < least {
					found[i], least = c, d
				}
			}
		}
	}
	return func(cell int) int { return found[cell] }
}
