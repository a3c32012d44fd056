package imputetest

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
)

// A Toy is a Gaussian field of 24 cells on a line with ten of them observed, for
// which the exact denoiser is a formula.
type Toy struct {
	Covariance *mat.SymDense
	Truth      []float32
	Visible    []bool
}

// ToyCells is how many cells a Toy has.
const ToyCells = 24

// NewToy returns a field.
func NewToy(seed uint64) Toy {
	b := Toy{Covariance: mat.NewSymDense(ToyCells, nil), Truth: make([]float32, ToyCells), Visible: make([]bool, ToyCells)}
	for i := range ToyCells {
		for j := i; j < ToyCells; j++ {
			h := float64(i-j) / 4
			c := math.Exp(-h * h / 2)
			if i == j {
				c += 1e-4
			}
			b.Covariance.SetSym(i, j, c)
		}
	}
	for _, i := range []int{0, 1, 2, 3, 4, 15, 16, 17, 18, 23} {
		b.Visible[i] = true
	}
	var root mat.Cholesky
	root.Factorize(b.Covariance)
	var lower mat.TriDense
	root.LTo(&lower)
	white := make([]float32, ToyCells)
	noise.New(seed, "toy").Normals(white, 0)
	for i := range b.Truth {
		for j := range i + 1 {
			b.Truth[i] += float32(lower.At(i, j)) * white[j]
		}
	}
	return b
}

// Given returns the mean and the covariance of the field given the cells of
// mask at noise level t.
func (b Toy) Given(t float32, x []float32, mask []bool) ([]float32, *mat.Dense) {
	alpha32, sigma32 := impute.AlphaSigma(t)
	alpha, sigma := float64(alpha32), float64(sigma32)
	var at []int
	for i, m := range mask {
		if m {
			at = append(at, i)
		}
	}
	mean, left := make([]float32, ToyCells), mat.DenseCopyOf(b.Covariance)
	if len(at) == 0 {
		return mean, left
	}
	c, k, y := mat.NewSymDense(len(at), nil), mat.NewDense(len(at), ToyCells, nil), mat.NewVecDense(len(at), nil)
	for p, i := range at {
		y.SetVec(p, float64(x[i]))
		for q := p; q < len(at); q++ {
			c.SetSym(p, q, alpha*alpha*b.Covariance.At(i, at[q]))
		}
		c.SetSym(p, p, c.At(p, p)+sigma*sigma)
		for j := range ToyCells {
			k.Set(p, j, alpha*b.Covariance.At(i, j))
		}
	}
	var root mat.Cholesky
	if !root.Factorize(c) {
		panic("toy covariance is singular")
	}
	var w mat.VecDense
	if err := root.SolveVecTo(&w, y); err != nil {
		panic(err)
	}
	var gain, explained mat.Dense
	if err := root.SolveTo(&gain, k); err != nil {
		panic(err)
	}
	explained.Mul(k.T(), &gain)
	left.Sub(left, &explained)
	for j := range mean {
		for p := range at {
			mean[j] += float32(k.At(p, j) * w.AtVec(p))
		}
	}
	return mean, left
}
