package noise

import (
	"math"
	"testing"
)

// The correlation of many fields, at distances along rows, along columns and
// across both, is the exponential of the distance.
func TestExponentialFieldsHaveTheirCovariance(t *testing.T) {
	const height, width, fields = 24, 31, 600
	e := NewExponential(height, width, 4, 8, false)
	pairs := []struct{ rows, cols int }{{0, 0}, {0, 1}, {1, 0}, {4, 0}, {0, 8}, {3, 5}, {0, 30}, {23, 0}}
	sums := make([]float64, len(pairs))
	a, b := make([]float32, height*width), make([]float32, height*width)
	count := 0.0
	for k := range fields / 2 {
		e.Draw(a, b, New(3, "test").Sub(uint64(k)))
		for _, x := range [][]float32{a, b} {
			count++
			for p, d := range pairs {
				sum, n := 0.0, 0.0
				for i := range height - d.rows {
					for j := range width - d.cols {
						sum += float64(x[i*width+j]) * float64(x[(i+d.rows)*width+j+d.cols])
						n++
					}
				}
				sums[p] += sum / n
			}
		}
	}
	for p, d := range pairs {
		want := math.Exp(-math.Hypot(float64(d.rows)/4, float64(d.cols)/8))
		// One field of this size has about 15 independent values.
		tolerance := 4 / math.Sqrt(15*count)
		if got := sums[p] / count; math.Abs(got-want) > tolerance {
			t.Errorf("%d rows and %d columns apart: covariance %.3f, want %.3f ± %.3f", d.rows, d.cols, got, want, tolerance)
		}
	}
}

func TestTheTwoFieldsOfADrawAreIndependent(t *testing.T) {
	e := NewExponential(20, 20, 2, 2, false)
	a, b := make([]float32, 400), make([]float32, 400)
	sum, n := 0.0, 0.0
	for k := range 200 {
		e.Draw(a, b, New(1).Sub(uint64(k)))
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
			n++
		}
	}
	if got := sum / n; math.Abs(got) > 0.05 {
		t.Errorf("their covariance is %.3f, want 0", got)
	}
}

func TestAClosedGridHasNoSeam(t *testing.T) {
	const width = 60
	e := NewExponential(8, width, 3, 3, true)
	a, b := make([]float32, 8*width), make([]float32, 8*width)
	sum, n := 0.0, 0.0
	for k := range 300 {
		e.Draw(a, b, New(5).Sub(uint64(k)))
		for i := range 8 {
			sum += float64(a[i*width]) * float64(a[(i+1)*width-1])
			n++
		}
	}
	if got, want := sum/n, math.Exp(-1.0/3); math.Abs(got-want) > 0.1 {
		t.Errorf("first and last column have the covariance %.3f, want %.3f", got, want)
	}
}
