package evaluate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// A GaussianSea is days of independent Gaussian random fields of one square
// window under discs of cloud that hide half of it. Its covariance
// exp(-(h/length)²/2) is known, so kriging is the best possible method.
type GaussianSea struct {
	side       int // cells
	covariance *mat.SymDense
}

// gaussianLengthCells is the scale of the covariance: gaps of the size of the
// clouds can be filled in part.
const gaussianLengthCells = 4

// nuggetVariance keeps the covariance well conditioned.
const nuggetVariance = 1e-3

// NewGaussianSea returns a sea of side × side cells.
func NewGaussianSea(side int) *GaussianSea {
	n := side * side
	g := &GaussianSea{side: side, covariance: mat.NewSymDense(n, nil)}
	for i := range n {
		for j := i; j < n; j++ {
			h := math.Hypot(float64(i/side-j/side), float64(i%side-j%side)) / gaussianLengthCells
			c := math.Exp(-h * h / 2)
			if i == j {
				c += nuggetVariance
			}
			g.covariance.SetSym(i, j, c)
		}
	}
	return g
}

// Series returns the first days of the sea.
func (g *GaussianSea) Series(days int) (samples.Series, error) {
	n := g.side * g.side
	var root mat.Cholesky
	if !root.Factorize(g.covariance) {
		return samples.Series{}, errors.New("the covariance of the Gaussian sea is not positive definite")
	}
	var lower mat.TriDense
	root.LTo(&lower)
	s := samples.Series{Grid: field.Grid{Lat: make([]float64, g.side), Lon: make([]float64, g.side)}, Sea: make(field.Mask, n)}
	for i := range g.side {
		s.Grid.Lat[i], s.Grid.Lon[i] = 40+0.04*float64(i), 10+0.05*float64(i)
	}
	for i := range s.Sea {
		s.Sea[i] = true
	}
	white := make([]float32, n)
	for day := range days {
		noise.New(1, "gaussian sea").Normals(white, uint64(day))
		x := mat.NewVecDense(n, nil)
		for i, w := range white {
			x.SetVec(i, float64(w))
		}
		x.MulVec(&lower, x)
		values, hidden := make([]float32, n), g.clouds(uint64(day))
		for i := range values {
			values[i] = float32(x.AtVec(i))
			if hidden[i] {
				values[i] = field.NaN()
			}
		}
		s.Days = append(s.Days, samples.Day{Time: time.Date(2000, 1, 1+day, 12, 0, 0, 0, time.UTC), Values: values})
	}
	return s, nil
}

// clouds hides about half of the cells under discs.
func (g *GaussianSea) clouds(day uint64) []bool {
	r := noise.New(1, "clouds").Rand(day)
	side := float64(g.side)
	hidden := make([]bool, g.side*g.side)
	for n := 0; 2*n < len(hidden); {
		y, x, radius := r.Float64()*side, r.Float64()*side, 1+r.Float64()*side/6
		for i := range hidden {
			if !hidden[i] && math.Hypot(float64(i/g.side)-y, float64(i%g.side)-x) < radius {
				hidden[i] = true
				n++
			}
		}
	}
	return hidden
}

// Kriging returns a method that gives the exact conditional mean and spread of
// the sea. Windows must be whole days of it, scaled by s.
func (g *GaussianSea) Kriging(s samples.Scaling) Method {
	return eachCase("kriging", func(c Case) (classical.Estimate, error) { return g.krige(c, s) })
}

func (g *GaussianSea) krige(c Case, s samples.Scaling) (classical.Estimate, error) {
	var seen []int
	for i, v := range c.Inputs.Visible {
		if v {
			seen = append(seen, i)
		}
	}
	cov, y := mat.NewSymDense(len(seen), nil), mat.NewVecDense(len(seen), nil)
	for a, i := range seen {
		y.SetVec(a, float64(s.Inverse(c.Inputs.Values[i], i)))
		for k := a; k < len(seen); k++ {
			cov.SetSym(a, k, g.covariance.At(i, seen[k]))
		}
	}
	var root mat.Cholesky
	if !root.Factorize(cov) {
		return classical.Estimate{}, errors.New("the covariance of the visible cells is not positive definite")
	}
	// One solve for all cells: weights [visible, cells].
	n := g.side * g.side
	toAll := mat.NewDense(len(seen), n, nil)
	for a, i := range seen {
		for k := range n {
			toAll.Set(a, k, g.covariance.At(i, k))
		}
	}
	var w mat.Dense
	if err := root.SolveTo(&w, toAll); err != nil {
		return classical.Estimate{}, fmt.Errorf("solve for the weights: %w", err)
	}
	e := classical.Estimate{Mean: make([]float32, n), Sigma: make([]float32, n)}
	for k := range n {
		mean, left := 0.0, g.covariance.At(k, k)
		for a := range seen {
			mean += w.At(a, k) * y.AtVec(a)
			left -= w.At(a, k) * toAll.At(a, k)
		}
		e.Mean[k], e.Sigma[k] = s.Forward(float32(mean), k), float32(math.Sqrt(max(left, 0))/s.Std)
	}
	return e, nil
}
