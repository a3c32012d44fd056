// Package places compares coordinates of cells: whether maps of latitude and
// longitude are those of a regular grid, and how far two descriptions of the same
// cells lie apart.
//
// It is pure, and knows neither files nor what a grid is used for.
package places

import (
	"math"
	"slices"

	"lacuna/pipeline/field"
)

// regularCells is how far, in cells, the coordinates of a regular grid may lie
// off its axes: they are written in single precision, and some are computed from
// a projection and back. It is the tolerance of field.Grid.Same.
const regularCells = 0.05

// Axes returns the axes of coordinates that are maps of height by width cells,
// NaN where a row or a column has none, and nil where they are not those of a
// regular grid. Swapped are those of one whose latitude runs along the columns.
func Axes(lat, lon []float64, height, width int) (rows, cols []float64, swapped bool) {
	byRow, byCol := func(i int) int { return i / width }, func(i int) int { return i % width }
	rows, offRow := along(lat, height, byRow)
	cols, offCol := along(lon, width, byCol)
	if max(offRow, offCol) <= regularCells {
		return rows, cols, false
	}
	_, latAcross := along(lat, width, byCol)
	_, lonAcross := along(lon, height, byRow)
	return nil, nil, max(latAcross, lonAcross) <= regularCells
}

// Cross returns the places of all crossings of two axes, row by row.
func Cross(ys, xs []float64, place func(y, x float64) (lat, lon float64)) (lat, lon []float64) {
	lat, lon = make([]float64, 0, len(ys)*len(xs)), make([]float64, 0, len(ys)*len(xs))
	for _, y := range ys {
		for _, x := range xs {
			n, e := place(y, x)
			lat, lon = append(lat, n), append(lon, e)
		}
	}
	return lat, lon
}

// Farthest returns the largest distance between two lists of places, and where
// that is.
func Farthest(lat, lon, lat2, lon2 []float64) (km float64, at int) {
	const radiusKM, radians = 6371, math.Pi / 180
	for i := range lat {
		north := (lat[i] - lat2[i]) * radians
		east := math.Remainder(lon[i]-lon2[i], 360) * radians
		// Haversine, which is exact for small distances.
		s, e := math.Sin(north/2), math.Sin(east/2)
		a := s*s + math.Cos(lat[i]*radians)*math.Cos(lat2[i]*radians)*e*e
		if d := 2 * radiusKM * math.Asin(math.Sqrt(min(a, 1))); d > km {
			km, at = d, i
		}
	}
	return km, at
}

// along returns the mean coordinate of each of n rows or columns, NaN where one
// has none, and how far the coordinates lie from it at most, in steps. A full
// turn is no distance.
func along(x []float64, n int, of func(i int) int) (axis []float64, offSteps float64) {
	first, sum, count := make([]float64, n), make([]float64, n), make([]float64, n)
	turned := func(v, about float64) float64 { return v - 360*math.Round((v-about)/360) }
	for i, v := range x {
		if !finite(v) {
			continue
		}
		k := of(i)
		if count[k] == 0 {
			first[k] = v
		}
		sum[k] += turned(v, first[k])
		count[k]++
	}
	for k := range sum {
		sum[k] /= count[k] // 0/0 is NaN
	}
	off := 0.0
	for i, v := range x {
		if k := of(i); finite(v) {
			off = max(off, math.Abs(turned(v, sum[k])-sum[k]))
		}
	}
	if off == 0 {
		return sum, 0
	}
	return sum, off / meanStep(sum)
}

// meanStep returns the mean step of an axis, from the first to the last coordinate
// that is there; of a single one it is a degree.
func meanStep(axis []float64) float64 {
	from := slices.IndexFunc(axis, finite)
	to := len(axis) - 1
	for to > from && !finite(axis[to]) {
		to--
	}
	if to <= from {
		return 1
	}
	run := field.Unwrap(slices.DeleteFunc(slices.Clone(axis), func(v float64) bool { return !finite(v) }))
	return math.Abs(run[len(run)-1]-run[0]) / float64(to-from)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
