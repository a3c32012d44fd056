package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// A gaussianSea is days of independent Gaussian random fields under discs of
// cloud. Its covariance is known, so kriging is the best there is.
type gaussianSea struct {
	side       int
	covariance *mat.SymDense
}

// lengthCells is the scale of the covariance exp(-(h/length)²/2): gaps of the
// size of the clouds below can be filled in part.
const lengthCells = 4

// nuggetVariance keeps the covariance well conditioned.
const nuggetVariance = 1e-3

func newGaussianSea(side int) gaussianSea {
	n := side * side
	g := gaussianSea{side: side, covariance: mat.NewSymDense(n, nil)}
	for i := range n {
		for j := i; j < n; j++ {
			h := math.Hypot(float64(i/side-j/side), float64(i%side-j%side)) / lengthCells
			c := math.Exp(-h * h / 2)
			if i == j {
				c += nuggetVariance
			}
			g.covariance.SetSym(i, j, c)
		}
	}
	return g
}

// series returns so many days of it.
func (g gaussianSea) series(days int) (samples.Series, error) {
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
func (g gaussianSea) clouds(day uint64) []bool {
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

// runKriging scores the exact conditional mean of the Gaussian sea.
func (b *bench) runKriging(ctx context.Context, e experiment) error {
	if b.gaussianDays == 0 {
		return errors.New("method kriging needs -gaussian: of other data no covariance is known")
	}
	g := newGaussianSea(b.side)
	began := time.Now()
	answers := make([]answer, len(b.overlays))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(b.workers)
	for i, o := range b.overlays {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			var err error
			answers[i].mean, err = g.krige(o, b.held.Scaling())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r := result{Name: e.Name, Method: e.Method, Mode: e.Modes[0], Variant: "kriging", Seconds: time.Since(began).Seconds(), Overlays: len(answers)}
	var err error
	if r.Summary, err = b.score(answers); err != nil {
		return err
	}
	return b.append(r)
}

// krige returns the conditional mean of an overlay given its visible cells.
func (g gaussianSea) krige(o samples.Overlay, s samples.Scaling) ([]float32, error) {
	var seen []int
	for i, v := range o.Visible {
		if v {
			seen = append(seen, i)
		}
	}
	c, y := mat.NewSymDense(len(seen), nil), mat.NewVecDense(len(seen), nil)
	for a, i := range seen {
		y.SetVec(a, float64(s.Inverse(o.Values[i], i)))
		for k := a; k < len(seen); k++ {
			c.SetSym(a, k, g.covariance.At(i, seen[k]))
		}
	}
	var root mat.Cholesky
	if !root.Factorize(c) {
		return nil, errors.New("the covariance of the visible cells is not positive definite")
	}
	var w mat.VecDense
	if err := root.SolveVecTo(&w, y); err != nil {
		return nil, fmt.Errorf("solve for the weights: %w", err)
	}
	out := make([]float32, len(o.Values))
	for i := range out {
		sum := 0.0
		for a, j := range seen {
			sum += g.covariance.At(i, j) * w.AtVec(a)
		}
		out[i] = s.Forward(float32(sum), i)
	}
	return out, nil
}
