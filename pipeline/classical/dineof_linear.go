package classical

import "math"

// A table is a matrix, row by row.
type table struct {
	rows, cols int
	x          []float64
}

// orthonormalise makes the columns of m orthonormal from the first on, by Gram
// and Schmidt's process, twice for the sake of rounding. A column that depends
// on those before it becomes zero.
func (m table) orthonormalise() {
	x, rows, width := m.x, m.rows, m.cols
	column := make([]float64, rows)
	for c := range width {
		for t := range rows {
			column[t] = x[t*width+c]
		}
		before := norm(column)
		for range 2 {
			for b := range c {
				dot := 0.0
				for t := range rows {
					dot += column[t] * x[t*width+b]
				}
				for t := range rows {
					column[t] -= dot * x[t*width+b]
				}
			}
		}
		// The remainder of a dependent column is rounding of its length.
		const rounding = 1e-12
		length := norm(column)
		for t := range rows {
			x[t*width+c] = 0
			if length > rounding*before {
				x[t*width+c] = column[t] / length
			}
		}
	}
}

func norm(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}

func (m table) addProduct(a, b table) {
	for t := range a.rows {
		row := m.x[t*m.cols : (t+1)*m.cols]
		for j := range a.cols {
			v := a.x[t*a.cols+j]
			for c, u := range b.x[j*b.cols : (j+1)*b.cols] {
				row[c] += v * u
			}
		}
	}
}

// innerProduct returns the sum of products of two maps of low rank over all
// cells and frames, given the product of their amplitudes, new by old.
func innerProduct(cross, oldBasis, newBasis table) float64 {
	sum := 0.0
	for t := range oldBasis.rows {
		for a := range cross.rows {
			for b := range cross.cols {
				sum += cross.x[a*cross.cols+b] * newBasis.x[t*newBasis.cols+a] * oldBasis.x[t*oldBasis.cols+b]
			}
		}
	}
	return sum
}

// withZeroColumns returns m with columns of zeros added.
func (m table) withZeroColumns(cols int) []float64 {
	out := make([]float64, m.rows*cols)
	for i := range m.rows {
		copy(out[i*cols:], m.x[i*m.cols:(i+1)*m.cols])
	}
	return out
}
