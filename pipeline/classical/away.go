package classical

import (
	"math"

	"lacuna/pipeline/field"
)

// apartKM returns the root mean square distance between two observations, of
// which count has the number in each coarse cell.
func (m smoother) apartKM(count []float64) float64 {
	// Moments of the positions on the sphere: nothing depends on where the grid
	// begins.
	grid := field.Grid{Lat: m.rows.centre, Lon: m.cols.centre}
	var n, x, y, z, squares float64
	for c, v := range count {
		if v == 0 {
			continue
		}
		px, py, pz := grid.Cartesian(c/grid.Width(), c%grid.Width())
		if m.places != nil {
			px, py, pz = m.places[c][0], m.places[c][1], m.places[c][2]
		}
		n, x, y, z = n+v, x+v*px, y+v*py, z+v*pz
		squares += v * (px*px + py*py + pz*pz)
	}
	return math.Sqrt(max(2*(squares/n-(x*x+y*y+z*z)/n/n), 0))
}

// awayKM returns the distance of every coarse cell from the nearest one in which
// count has an observation: along columns first, then along each row the least
// root of the sum of squares.
func (m smoother) awayKM(count []float64) []float64 {
	h, w := len(m.rows.centre), len(m.cols.centre)
	down := m.downKM(count)
	away := make([]float64, len(count))
	steps := w - 1
	if m.periodic {
		steps = w / 2
	}
	for i := range h {
		row := down[i*w : (i+1)*w]
		for j, best := range row {
			for n := 1; n <= steps; n++ {
				nearest := math.Inf(1) // of the two columns n away
				for _, k := range [2]int{j - n, j + n} {
					if m.periodic {
						k = (k + w) % w
					} else if k < 0 || k >= w {
						continue
					}
					across := m.apart(i, j, i, k)
					nearest, best = min(nearest, across), min(best, math.Hypot(across, row[k]))
				}
				if nearest > best {
					break
				}
			}
			away[i*w+j] = best
		}
	}
	return away
}

// downKM returns the distance of every coarse cell from the nearest one with an
// observation in its column; infinite where the column has none.
func (m smoother) downKM(count []float64) []float64 {
	h, w := len(m.rows.centre), len(m.cols.centre)
	down := make([]float64, len(count))
	for j := range w {
		for _, upwards := range [2]bool{false, true} {
			last := -1
			for n := range h {
				i := n
				if upwards {
					i = h - 1 - n
				}
				c := i*w + j
				if count[c] > 0 {
					last = i
				}
				gap := math.Inf(1)
				if last >= 0 {
					gap = m.apart(i, j, last, j)
				}
				if upwards {
					gap = min(gap, down[c])
				}
				down[c] = gap
			}
		}
	}
	return down
}
