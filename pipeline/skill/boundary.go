package skill

import (
	"math"

	"lacuna/pipeline/field"
)

// A Boundary holds the sums of the gradient magnitudes of a composed map and
// of the truth along the edge between visible and filled cells.
type Boundary struct {
	Composed, Truth float64
	Pixels          int
}

// CBGD is the cross-boundary gradient discrepancy of Ma, Zhou and Yu (section
// 4): the ratio of the two sums. 1 is seamless, more is a visible seam, less a
// blur. It is not known if the truth has no gradient or no stencil fits.
func (b Boundary) CBGD() (ratio float64, known bool) {
	if b.Pixels == 0 || b.Truth == 0 {
		return 0, false
	}
	return b.Composed / b.Truth, true
}

// Plus returns the sums of b and o together.
func (b Boundary) Plus(o Boundary) Boundary {
	return Boundary{Composed: b.Composed + o.Composed, Truth: b.Truth + o.Truth, Pixels: b.Pixels + o.Pixels}
}

// MeasureBoundary sums the Sobel magnitude of the truth and of the truth with
// fill in place of the scored cells, over the cells whose 3×3 stencil lies
// inside the visible and scored cells and holds at least one of each.
func (x Sample) MeasureBoundary(fill []float32) Boundary {
	composed := x.Composed(fill)
	var b Boundary
	for i := 1; i < x.Height-1; i++ {
		for j := 1; j < x.Width-1; j++ {
			c := i*x.Width + j
			if !crosses(x.Visible, x.Scored, c, x.Width) {
				continue
			}
			g := Sobel(composed, c, x.Width)
			if math.IsNaN(g) || math.IsInf(g, 0) {
				continue
			}
			b.Composed += g
			b.Truth += Sobel(x.Truth, c, x.Width)
			b.Pixels++
		}
	}
	return b
}

// crosses reports whether the stencil around cell c is known as a whole and
// has both kinds of cells.
func crosses(visible, scored field.Mask, c, width int) bool {
	seen, hidden := 0, 0
	for row := c - width; row <= c+width; row += width {
		for k := row - 1; k <= row+1; k++ {
			switch {
			case visible[k]:
				seen++
			case scored[k]:
				hidden++
			default:
				return false
			}
		}
	}
	return seen > 0 && hidden > 0
}

// Sobel returns the magnitude of the gradient of values at cell c, which must
// not lie on the rim, by Sobel's 3×3 stencils with weights 1, 2, 1. It is 8
// times the change per cell: only ratios of it are used.
func Sobel(values []float32, c, width int) float64 {
	at := func(row, col int) float64 { return float64(values[c+row*width+col]) }
	dx := at(-1, 1) + 2*at(0, 1) + at(1, 1) - at(-1, -1) - 2*at(0, -1) - at(1, -1)
	dy := at(1, -1) + 2*at(1, 0) + at(1, 1) - at(-1, -1) - 2*at(-1, 0) - at(-1, 1)
	return math.Hypot(dx, dy)
}
