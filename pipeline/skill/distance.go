package skill

import (
	"math"

	"lacuna/pipeline/field"
)

// Distances returns for every cell the Euclidean distance, in cells, to the
// nearest true cell of m: 0 on such a cell, infinite where there is none.
//
// It is exact: the squared distance along columns first, then for each row the
// lower envelope of the parabolas that the columns give. See Felzenszwalb and
// Huttenlocher, Theory of Computing 8 (2012), 415-428.
func Distances(m field.Mask, height, width int) []float64 {
	if len(m) != height*width {
		panic(badLength)
	}
	squared := downColumns(m, height, width)
	row := make([]float64, width)
	hull := newEnvelope(width)
	for i := range height {
		line := squared[i*width : (i+1)*width]
		copy(row, line)
		hull.lower(line, row)
	}
	for c, v := range squared {
		squared[c] = math.Sqrt(v)
	}
	return squared
}

// downColumns returns the squared distance to the nearest true cell of the
// same column.
func downColumns(m field.Mask, height, width int) []float64 {
	d := make([]float64, len(m))
	for j := range width {
		gap := math.Inf(1)
		for i := range height {
			gap++
			if m[i*width+j] {
				gap = 0
			}
			d[i*width+j] = gap
		}
		gap = math.Inf(1)
		for i := height - 1; i >= 0; i-- {
			gap = min(gap+1, d[i*width+j])
			d[i*width+j] = gap * gap
		}
	}
	return d
}

// An envelope is the lower envelope of parabolas (x - place)² + height.
type envelope struct {
	place []int
	from  []float64 // left end of the range where each parabola is lowest
}

func newEnvelope(n int) *envelope {
	return &envelope{place: make([]int, n), from: make([]float64, n+1)}
}

// lower stores in dst the least of (x - j)² + height[j] over all j.
func (e *envelope) lower(dst, height []float64) {
	n := 0
	for j, h := range height {
		if math.IsInf(h, 1) {
			continue
		}
		start := math.Inf(-1)
		for n > 0 {
			last := e.place[n-1]
			start = (h - height[last] + float64(j*j-last*last)) / float64(2*(j-last))
			if start > e.from[n-1] {
				break
			}
			n--
			start = math.Inf(-1)
		}
		e.place[n], e.from[n] = j, start
		n++
	}
	if n == 0 {
		return // all heights are infinite, and so are the distances
	}
	e.from[n] = math.Inf(1)
	k := 0
	for x := range dst {
		for e.from[k+1] < float64(x) {
			k++
		}
		d := float64(x - e.place[k])
		dst[x] = d*d + height[e.place[k]]
	}
}
