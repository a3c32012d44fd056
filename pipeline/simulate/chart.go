package simulate

import (
	"math"
	"runtime"
	"sync"

	"lacuna/pipeline/field"
)

const (
	earthRadiusKM = 6371.0
	kmPerDegree   = earthRadiusKM * math.Pi / 180
)

// A chart is the geometry of a grid with its coasts.
type chart struct {
	grid     field.Grid
	sea      field.Mask
	h, w     int
	periodic bool

	sinLat, cosLat []float64
	sinLon, cosLon []float64
	northKM        []float64 // per row: distance to the next row; negative where rows run south
	eastKM         []float64 // per row: distance to the next column, with its sign

	coastKM []float32 // distance to the nearest land; 0 on land
}

func newChart(g field.Grid, sea field.Mask) *chart {
	c := &chart{grid: g, sea: sea, h: g.Height(), w: g.Width(), periodic: g.Periodic()}
	c.sinLat, c.cosLat = sincos(g.Lat)
	c.sinLon, c.cosLon = sincos(g.Lon)
	c.northKM = make([]float64, c.h)
	c.eastKM = make([]float64, c.h)
	for i := range c.h {
		a, b := max(i-1, 0), min(i+1, c.h-1)
		c.northKM[i] = (g.Lat[b] - g.Lat[a]) / float64(b-a) * kmPerDegree
		c.eastKM[i] = (g.Lon[1] - g.Lon[0]) * kmPerDegree * max(c.cosLat[i], 0.01) // no zero at a pole
	}
	c.coastKM = c.distanceToLand()
	return c
}

func sincos(degrees []float64) (sin, cos []float64) {
	sin, cos = make([]float64, len(degrees)), make([]float64, len(degrees))
	for i, d := range degrees {
		sin[i], cos[i] = math.Sincos(d * math.Pi / 180)
	}
	return sin, cos
}

// point returns the place of a fractional row and column on the sphere, in
// kilometres.
func (c *chart) point(row, col float64) (x, y, z float64) {
	sinLat, cosLat := between(c.sinLat, row), between(c.cosLat, row)
	sinLon, cosLon := between(c.sinLon, col), between(c.cosLon, col)
	return earthRadiusKM * cosLat * cosLon, earthRadiusKM * cosLat * sinLon, earthRadiusKM * sinLat
}

func between(x []float64, at float64) float64 {
	i := min(int(at), len(x)-2)
	return lerp(at-float64(i), x[i], x[i+1])
}

// distanceToLand returns the distance of each cell to the nearest land cell
// by a chamfer transform: two sweeps that pass distances on to eight
// neighbours, exact along rows, columns and diagonals and at most 8 % too
// long in between. A grid that closes in longitude is swept twice, to carry
// distances across its seam. Where there is no land at all the distance is
// farKM.
func (c *chart) distanceToLand() []float32 {
	d := make([]float32, c.h*c.w)
	for i, sea := range c.sea {
		if sea {
			d[i] = farKM
		}
	}
	sweeps := 1
	if c.periodic {
		sweeps = 2
	}
	for range sweeps {
		for i := range c.h {
			c.sweepRow(d, i, i-1, 1)
		}
		for i := c.h - 1; i >= 0; i-- {
			c.sweepRow(d, i, i+1, -1)
		}
	}
	return d
}

// farKM is farther from land than any place on Earth.
const farKM = 3000

// sweepRow shortens the distances in row i by way of row from and, running in
// the direction step, by way of the row itself.
func (c *chart) sweepRow(d []float32, i, from, step int) {
	ns, ew := float32(math.Abs(c.northKM[i])), float32(math.Abs(c.eastKM[i]))
	diagonal := float32(math.Hypot(float64(ns), float64(ew)))
	row := d[i*c.w : (i+1)*c.w]
	if from >= 0 && from < c.h {
		other := d[from*c.w : (from+1)*c.w]
		for j := range row {
			near := other[j] + ns
			if k, ok := c.column(j - 1); ok {
				near = min(near, other[k]+diagonal)
			}
			if k, ok := c.column(j + 1); ok {
				near = min(near, other[k]+diagonal)
			}
			row[j] = min(row[j], near)
		}
	}
	first := 0
	if step < 0 {
		first = c.w - 1
	}
	for _, step := range [2]int{step, -step} {
		for n, j := 0, first; n < c.w; n, j = n+1, j+step {
			if k, ok := c.column(j - step); ok {
				row[j] = min(row[j], row[k]+ew)
			}
		}
		first = c.w - 1 - first
	}
}

// column returns the index of column j, which may lie one past an edge, and
// whether there is one.
func (c *chart) column(j int) (int, bool) {
	if c.periodic {
		return (j + c.w) % c.w, true
	}
	return j, j >= 0 && j < c.w
}

// eachRow calls do for all rows, on all cores; do must touch nothing but its
// row of the result.
func (c *chart) eachRow(do func(i int)) { parallel(c.h, do) }

func parallel(n int, do func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() {
			for i := k; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}
