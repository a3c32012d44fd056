// Package imputetest holds fixtures for tests of imputers: Gaussian seas with a
// known covariance, networks without zero layers, and Toy, a field for which
// the exact denoiser is a formula.
package imputetest

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// NewRunner returns a runner on ONNX Runtime. One thread is quickest where
// tests of other packages run at the same time.
func NewRunner(t testing.TB, batch int) *impute.Runner {
	t.Helper()
	e := enginetest.Open(t)
	runner, err := impute.NewRunner(e, impute.RunnerConfig{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runner.Close)
	return runner
}

// A Sea is days of Gaussian random fields with a known covariance,
// seen through gaps.
type Sea struct {
	Side       int
	Covariance *mat.SymDense
	Truth      [][]float32 // the complete field of each day
	Series     samples.Series
}

// SeaConfig sets fields with the covariance exp(-(h/Length)²/2), or exp(-h/Length)
// where they are Rough, and from day to day the correlation Memory.
type SeaConfig struct {
	Side, Days     int
	Length, Memory float64
	Rough          bool
	Seed           uint64
}

// NewSea draws the fields and the gaps of a sea.
func NewSea(t testing.TB, cfg SeaConfig) Sea {
	t.Helper()
	n := cfg.Side * cfg.Side
	s := Sea{Side: cfg.Side, Covariance: mat.NewSymDense(n, nil)}
	for i := range n {
		for j := i; j < n; j++ {
			dy, dx := float64(i/cfg.Side-j/cfg.Side), float64(i%cfg.Side-j%cfg.Side)
			c := math.Exp(-(dx*dx + dy*dy) / (2 * cfg.Length * cfg.Length))
			if cfg.Rough {
				c = math.Exp(-math.Hypot(dx, dy) / cfg.Length)
			}
			if i == j {
				c += 1e-3
			}
			s.Covariance.SetSym(i, j, c)
		}
	}
	var root mat.Cholesky
	if !root.Factorize(s.Covariance) {
		t.Fatal("the covariance is not positive definite")
	}
	var lower mat.TriDense
	root.LTo(&lower)
	s.Series = samples.Series{Grid: testGrid(cfg.Side), Sea: make(field.Mask, n)}
	for i := range s.Series.Sea {
		s.Series.Sea[i] = true
	}
	stream := noise.New(cfg.Seed, "gaussian sea")
	white, before := make([]float32, n), make([]float64, n)
	for day := range cfg.Days {
		stream.Normals(white, uint64(day))
		fresh := mat.NewVecDense(n, nil)
		for i, w := range white {
			fresh.SetVec(i, float64(w))
		}
		fresh.MulVec(&lower, fresh)
		truth, seen := make([]float32, n), make([]float32, n)
		visible := clouds(cfg.Side, stream.Sub(uint64(day)))
		for i := range truth {
			before[i] = cfg.Memory*before[i] + math.Sqrt(1-cfg.Memory*cfg.Memory)*fresh.AtVec(i)
			truth[i], seen[i] = float32(before[i]), float32(before[i])
			if !visible[i] {
				seen[i] = field.NaN()
			}
		}
		s.Truth = append(s.Truth, truth)
		s.Series.Days = append(s.Series.Days, samples.Day{Time: dayZero.AddDate(0, 0, day), Values: seen})
	}
	return s
}

var dayZero = time.Date(2021, 1, 1, 12, 0, 0, 0, time.UTC)

func testGrid(side int) field.Grid {
	g := field.Grid{Lat: make([]float64, side), Lon: make([]float64, side)}
	for i := range side {
		g.Lat[i], g.Lon[i] = 40+0.04*float64(i), 10+0.05*float64(i)
	}
	return g
}

// clouds returns a mask whose gaps are discs that cover about half.
func clouds(side int, s noise.Stream) []bool {
	r := s.Rand(0)
	visible := make([]bool, side*side)
	for i := range visible {
		visible[i] = true
	}
	for hidden := 0; hidden < side*side*(3+r.IntN(4))/10; {
		y, x, radius := r.Float64()*float64(side), r.Float64()*float64(side), 1+r.Float64()*float64(side)/5
		for i := range visible {
			dy, dx := float64(i/side)-y, float64(i%side)-x
			if visible[i] && dx*dx+dy*dy < radius*radius {
				visible[i] = false
				hidden++
			}
		}
	}
	return visible
}

// Background is a background of one value and sigma everywhere.
type Background struct{ Value, Sigma float32 }

// Cut implements impute.Backgrounds.
func (b Background) Cut(r samples.Ref) (value, sigma []float32, ok bool) {
	value, sigma = make([]float32, r.Window.Len()), make([]float32, r.Window.Len())
	for i := range value {
		value[i], sigma[i] = b.Value, b.Sigma
	}
	return value, sigma, true
}
