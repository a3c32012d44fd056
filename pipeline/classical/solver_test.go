package classical

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// plainCholesky is the factor as textbooks have it, one number after the other, with
// inverse pivots.
func plainCholesky(m []float64, n int) {
	for i := range n {
		ri := m[i*n : i*n+n]
		for j := range i {
			rj := m[j*n : j*n+n]
			ri[j] = (ri[j] - dot(ri[:j], rj[:j])) * rj[j]
		}
		ri[i] = 1 / math.Sqrt(max(ri[i]-dot(ri[:i], ri[:i]), jitter))
	}
}

// Products in the store were made one row at a time; another order of a sum would
// change their last bits.
func TestTwoRowsAtATimeGiveTheBitsOfOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		m := make([]float64, n*n)
		for i := range n {
			for j := range i + 1 {
				m[i*n+j] = 0.3 + 0.7*math.Exp(-math.Abs(float64(i-j))/9) + 0.01*rng.Float64()
			}
			m[i*n+i] = 1.3
		}
		want := slices.Clone(m)
		plainCholesky(want, n)
		cholesky(m, n)
		if !slices.Equal(m, want) {
			t.Fatalf("the factor of %d rows differs", n)
		}
	}
}
