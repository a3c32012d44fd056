package noise

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// An Exponential draws stationary Gaussian random fields of mean 0 and variance
// 1 whose correlation at a distance of h e-folding lengths is exp(-h): the
// covariance of optimal interpolation.
//
// It takes the grid as a piece of a torus, on which the covariance is diagonal
// in Fourier space, so that a field is exact and takes one transform. See
// Dietrich and Newsam, SIAM Journal on Scientific Computing 18 (1997),
// 1088-1107.
type Exponential struct {
	height, width int       // of the fields
	high, wide    int       // of the torus
	root          []float64 // standard deviation of every wave
}

// torusLengths is how much longer than the grid the torus is, in e-folding
// lengths: cells that only meet around it have a correlation below 2 %.
const torusLengths = 4

// NewExponential returns the fields of height × width cells. The e-folding
// length is rows cells from row to row and cols cells from column to column. With
// closed the last column is a neighbour of the first.
func NewExponential(height, width int, rows, cols float64, closed bool) *Exponential {
	e := &Exponential{height: height, width: width, high: roomy(height, rows), wide: roomy(width, cols)}
	if closed {
		e.wide = width
	}
	covariance := make([]complex128, e.high*e.wide)
	for i := range e.high {
		y := float64(min(i, e.high-i)) / rows
		for j := range e.wide {
			x := float64(min(j, e.wide-j)) / cols
			covariance[i*e.wide+j] = complex(math.Exp(-math.Hypot(x, y)), 0)
		}
	}
	e.transform(covariance)
	// On a torus of finite length a few waves come out slightly negative. They
	// are left out, and the others make up for them.
	var sum float64
	for _, c := range covariance {
		sum += max(real(c), 0)
	}
	e.root = make([]float64, len(covariance))
	for i, c := range covariance {
		e.root[i] = math.Sqrt(max(real(c), 0) / sum)
	}
	return e
}

// roomy returns a length that holds a grid and the way around it, and whose
// transform is quick: a product of 2, 3 and 5.
func roomy(cells int, length float64) int {
	for n := cells + int(math.Ceil(torusLengths*length)); ; n++ {
		rest := n
		for _, p := range []int{2, 3, 5} {
			for rest%p == 0 {
				rest /= p
			}
		}
		if rest == 1 {
			return n
		}
	}
}

// Draw stores two independent fields in a and b, from the numbers of a stream.
func (e *Exponential) Draw(a, b []float32, s Stream) {
	n := len(e.root)
	normals := make([]float32, 2*n)
	s.Normals(normals, 0)
	waves := make([]complex128, n)
	for i, root := range e.root {
		waves[i] = complex(root*float64(normals[i]), root*float64(normals[n+i]))
	}
	e.transform(waves)
	for i := range e.height {
		for j, v := range waves[i*e.wide : i*e.wide+e.width] {
			a[i*e.width+j], b[i*e.width+j] = float32(real(v)), float32(imag(v))
		}
	}
}

// transform replaces a map of the torus by its Fourier transform.
func (e *Exponential) transform(x []complex128) {
	along := fourier.NewCmplxFFT(e.wide)
	for i := range e.high {
		row := x[i*e.wide : (i+1)*e.wide]
		along.Coefficients(row, row)
	}
	across, column := fourier.NewCmplxFFT(e.high), make([]complex128, e.high)
	for j := range e.wide {
		for i := range column {
			column[i] = x[i*e.wide+j]
		}
		across.Coefficients(column, column)
		for i, v := range column {
			x[i*e.wide+j] = v
		}
	}
}
