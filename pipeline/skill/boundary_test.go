package skill

import (
	"math"
	"testing"

	"lacuna/pipeline/field"
)

// halved is a smooth sample whose right half is scored, filled with the
// truth.
func halved(side int) Sample {
	x := Sample{Height: side, Width: side}
	x.Visible, x.Scored = make(field.Mask, side*side), make(field.Mask, side*side)
	for c := range side * side {
		i, j := float64(c/side), float64(c%side)
		x.Truth = append(x.Truth, float32(math.Sin(i/3)+math.Cos(j/2)+0.3*math.Sin(1.7*i+2.1*j)))
		x.Visible[c], x.Scored[c] = c%side < side/2, c%side >= side/2
	}
	x.Mean = append([]float32(nil), x.Truth...)
	return x
}

func TestTruthAgainstItselfHasNoSeam(t *testing.T) {
	x := halved(24)
	b := x.MeasureBoundary(x.Truth)
	if got, known := b.CBGD(); !known || got != 1 {
		t.Errorf("CBGD of the truth is %v", got)
	}
	if want := 2 * (24 - 2); b.Pixels != want { // two columns of stencils cross, the rim has none
		t.Errorf("%d stencils cross the boundary, want %d", b.Pixels, want)
	}
}

func TestStepIsASeamAndABlurIsLessThanOne(t *testing.T) {
	x := halved(24)
	stepped, blurred := make([]float32, len(x.Truth)), make([]float32, len(x.Truth))
	for c, v := range x.Truth {
		stepped[c] = v + 1
		sum, n := float32(0), float32(0)
		for i := max(c/24-2, 0); i <= min(c/24+2, 23); i++ {
			for j := max(c%24-2, 0); j <= min(c%24+2, 23); j++ {
				sum += x.Truth[i*24+j]
				n++
			}
		}
		blurred[c] = sum / n
	}
	if got, _ := x.MeasureBoundary(stepped).CBGD(); got <= 1.2 {
		t.Errorf("a constant added to the fill gives %v", got)
	}
	if got, _ := x.MeasureBoundary(blurred).CBGD(); got >= 0.95 {
		t.Errorf("a blurred fill gives %v", got)
	}
}

func TestCBGDOfARampAgreesWithTheStencil(t *testing.T) {
	// The truth rises by 1 per column; the fill is 4 higher. A stencil whose
	// right column is filled, or whose right two are, sees 8 + 4·4 instead of 8.
	x := halved(8)
	for c := range x.Truth {
		x.Truth[c] = float32(c % 8)
		x.Mean[c] = x.Truth[c] + 4
	}
	b := x.MeasureBoundary(x.Mean)
	near(t, "truth", b.Truth, 8*float64(b.Pixels), exact)
	near(t, "composed", b.Composed, 24*float64(b.Pixels), exact)
}

func TestStencilsThatTouchTheUnknownDoNotCount(t *testing.T) {
	x := halved(10)
	c := 5*10 + 5
	x.Scored[c], x.Truth[c], x.Mean[c] = false, field.NaN(), field.NaN()
	b := x.MeasureBoundary(x.Mean)
	if want := 2*8 - 6; b.Pixels != want { // three stencils in each of the two columns hold the cell
		t.Errorf("%d stencils, want %d", b.Pixels, want)
	}
	if math.IsNaN(b.Composed) || math.IsNaN(b.Truth) {
		t.Error("an unknown cell leaked into the sums")
	}
}

func TestBoundaryOfNothingIsNotKnown(t *testing.T) {
	x := halved(10)
	for c := range x.Scored {
		x.Visible[c], x.Scored[c] = true, false
	}
	if _, known := x.MeasureBoundary(x.Mean).CBGD(); known {
		t.Error("a map without a fill has a seam")
	}
}
