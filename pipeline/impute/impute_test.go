package impute

import (
	"context"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// newShop returns a workshop on ONNX Runtime. One thread is quickest where
// tests of other packages run at the same time.
func newShop(t testing.TB, batch int) *Workshop {
	t.Helper()
	e := enginetest.Open(t)
	shop, err := NewWorkshop(e, WorkshopConfig{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shop.Close)
	return shop
}

// A gaussianSea is days of Gaussian random fields with a known covariance,
// seen through gaps.
type gaussianSea struct {
	side       int
	covariance *mat.SymDense
	truth      [][]float32 // a day each, complete
	series     samples.Series
}

// seaConfig: fields with the covariance exp(-(h/length)²/2), or exp(-h/length)
// where they are rough, and from day to day the correlation memory.
type seaConfig struct {
	side, days     int
	length, memory float64
	rough          bool
	seed           uint64
}

func newGaussianSea(t testing.TB, cfg seaConfig) gaussianSea {
	t.Helper()
	n := cfg.side * cfg.side
	s := gaussianSea{side: cfg.side, covariance: mat.NewSymDense(n, nil)}
	for i := range n {
		for j := i; j < n; j++ {
			dy, dx := float64(i/cfg.side-j/cfg.side), float64(i%cfg.side-j%cfg.side)
			c := math.Exp(-(dx*dx + dy*dy) / (2 * cfg.length * cfg.length))
			if cfg.rough {
				c = math.Exp(-math.Hypot(dx, dy) / cfg.length)
			}
			if i == j {
				c += 1e-3
			}
			s.covariance.SetSym(i, j, c)
		}
	}
	var root mat.Cholesky
	if !root.Factorize(s.covariance) {
		t.Fatal("the covariance is not positive definite")
	}
	var lower mat.TriDense
	root.LTo(&lower)
	s.series = samples.Series{Grid: testGrid(cfg.side), Sea: make(field.Mask, n)}
	for i := range s.series.Sea {
		s.series.Sea[i] = true
	}
	stream := noise.New(cfg.seed, "gaussian sea")
	white, before := make([]float32, n), make([]float64, n)
	for day := range cfg.days {
		stream.Normals(white, uint64(day))
		fresh := mat.NewVecDense(n, nil)
		for i, w := range white {
			fresh.SetVec(i, float64(w))
		}
		fresh.MulVec(&lower, fresh)
		truth, seen := make([]float32, n), make([]float32, n)
		visible := clouds(cfg.side, stream.Sub(uint64(day)))
		for i := range truth {
			before[i] = cfg.memory*before[i] + math.Sqrt(1-cfg.memory*cfg.memory)*fresh.AtVec(i)
			truth[i], seen[i] = float32(before[i]), float32(before[i])
			if !visible[i] {
				seen[i] = field.NaN()
			}
		}
		s.truth = append(s.truth, truth)
		s.series.Days = append(s.series.Days, samples.Day{Time: dayZero.AddDate(0, 0, day), Values: seen})
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

// tinyConfig trains a network in seconds.
func tinyConfig(side int) TrainConfig {
	c := DefaultTrainConfig()
	c.Design.Size = nn.Tiny
	c.Side, c.Batch, c.Steps, c.WarmupSteps, c.EMADecay, c.LearningRate = side, 4, 8, 2, 0.95, 3e-3
	c.Workers = 2
	// A background is at hand in tests, an analyser is not; noise is on its way.
	c.Design.Extras = Extras{Last: true, Next: true, Background: true}
	c.Clean, c.Flip = 0.5, false
	return c
}

// lessonsOf returns what to train on: all days of the sea, split by the gaps of
// other days.
func (s gaussianSea) lessonsOf(t testing.TB, seed uint64) (Material, Source) {
	t.Helper()
	data, err := s.series.Whole()
	if err != nil {
		t.Fatal(err)
	}
	source, err := Fresh(data, data.Refs(s.side, s.side, 20), prior.Empirical(data), seed)
	if err != nil {
		t.Fatal(err)
	}
	return Material{Train: data}, source
}

// plainBackground is a background of one value and sigma everywhere.
type plainBackground struct{ value, sigma float32 }

func (b plainBackground) Cut(r samples.Ref) (value, sigma []float32, ok bool) {
	value, sigma = make([]float32, r.Window.Len()), make([]float32, r.Window.Len())
	for i := range value {
		value[i], sigma[i] = b.value, b.sigma
	}
	return value, sigma, true
}

func trained(t testing.TB, shop *Workshop, m Material, src Source, cfg TrainConfig) *Model {
	t.Helper()
	model, _, err := Train(context.Background(), shop, m, src, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	return model
}
