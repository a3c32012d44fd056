package learn

import (
	"math"
	"os"
	"testing"

	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
)

// errorsOf sums squared errors over hidden cells.
type errorsOf struct{ ours, analysis, exact, variance, inside, cells float64 }

// TestAGaussianFieldIsFilledWithinATenthOfExactKriging trains on gappy days of
// a Gaussian random field as for the product, from an analysis whose scale and
// nugget are far from the field's, and holds the answer against the exact
// conditional mean at half of the cells hidden.
func TestAGaussianFieldIsFilledWithinATenthOfExactKriging(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a network for seconds; leave -short out to run it")
	}
	sea := imputetest.SeaConfig{Side: 16, Days: 600, Length: 3, Rough: true, Seed: 1} // 3 cells are 13 km
	s := newGaussianSea(t, sea)
	m, _ := s.examplesOf(t, 1)
	oi := impute.QuickOI(classical.DefaultOI(m.Train.Grid()))
	oi.LengthKM, oi.Nugget, oi.Spacing = 5, 0.3, 1
	m.Analyser = impute.OI{Days: m.Train, Settings: oi}
	cfg := tinyConfig(16)
	cfg.Design.Extras, cfg.Clean, cfg.Flip, cfg.DropTemporal = impute.Extras{Analysis: true}, 1, true, 1
	cfg.Steps, cfg.Batch, cfg.EMADecay = 500, 8, 0.98
	source, err := Repeated(m.Train, m.Train.Refs(16, 16, 20), partition.Empirical(m.Train), 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := trained(t, newTrainer(t, 8), m, source, cfg)
	sea.Days, sea.Seed = 60, 2
	e := s.examine(t, model, oi, newGaussianSea(t, sea))
	t.Logf("mean squared error %.4f, analysis %.4f, kriging %.4f, variance %.4f", e.ours/e.cells, e.analysis/e.cells, e.exact/e.cells, e.variance/e.cells)
	if e.analysis < 1.11*e.exact {
		t.Fatalf("the analysis is at %.3f of exact kriging already: the test has no meaning", e.analysis/e.exact)
	}
	if e.ours > 1.10*e.exact {
		t.Errorf("mean squared error is %.3f of exact kriging, want 1.10 at most (the analysis is at %.3f)", e.ours/e.exact, e.analysis/e.exact)
	}
	if share := e.inside / e.cells; share < 0.85 || share > 0.95 {
		t.Errorf("90 %% intervals cover %.3f", share)
	}
}

// examine fills the days of another sea of the same kind.
func (s gaussianSea) examine(t *testing.T, model *impute.Model, oi classical.OI, test gaussianSea) errorsOf {
	t.Helper()
	days, err := test.Series.Whole()
	if err != nil {
		t.Fatal(err)
	}
	around := impute.Surroundings{Days: days, Analyser: impute.OI{Days: days, Settings: oi}}
	var e errorsOf
	for day, ref := range days.Refs(test.Side, test.Side, 1) {
		truth := test.Truth[day]
		in, err := around.Analysed(ref, days.Cut(ref).Observed(), impute.Single)
		if err != nil {
			t.Fatal(err)
		}
		said, best := imputetest.PredictOne(t, model, in), test.kriging(truth, in.Visible)
		for i, visible := range in.Visible {
			if visible {
				continue
			}
			off := func(v float32) float64 {
				d := float64(days.Scaling().Inverse(v, i) - truth[i])
				return d * d
			}
			e.ours += off(said.Mean[i])
			e.analysis += off(in.Analysis[i])
			e.exact += (best[i] - float64(truth[i])) * (best[i] - float64(truth[i]))
			e.variance += float64(truth[i]) * float64(truth[i])
			if math.Sqrt(off(said.Mean[i])) < 1.645*float64(said.Sigma[i])*days.Scaling().Std {
				e.inside++
			}
			e.cells++
		}
	}
	return e
}

// kriging returns the conditional mean of a Gaussian sea given its visible
// cells: no method can be better.
func (s gaussianSea) kriging(truth []float32, visible []bool) []float64 {
	var seen []int
	for i, v := range visible {
		if v {
			seen = append(seen, i)
		}
	}
	c, y := mat.NewSymDense(len(seen), nil), mat.NewVecDense(len(seen), nil)
	for a, i := range seen {
		y.SetVec(a, float64(truth[i]))
		for b := a; b < len(seen); b++ {
			c.SetSym(a, b, s.Covariance.At(i, seen[b]))
		}
	}
	var root mat.Cholesky
	root.Factorize(c)
	var w mat.VecDense
	if err := root.SolveVecTo(&w, y); err != nil {
		panic(err)
	}
	out := make([]float64, len(truth))
	for i := range out {
		for a, j := range seen {
			out[i] += s.Covariance.At(i, j) * w.AtVec(a)
		}
	}
	return out
}

// noisyKriging is kriging of visible cells at time t of the schedule.
func (s gaussianSea) noisyKriging(x []float64, visible []bool, t float32) []float64 {
	alpha, sigma := impute.AlphaSigma(t)
	noisy := s
	noisy.Covariance = mat.NewSymDense(len(x), nil)
	noisy.Covariance.CopySym(s.Covariance)
	extra := float64(sigma) / float64(alpha)
	values := make([]float32, len(x))
	for i := range x {
		noisy.Covariance.SetSym(i, i, s.Covariance.At(i, i)+extra*extra)
		values[i] = float32(x[i] / float64(alpha))
	}
	return noisy.kriging(values, visible)
}

// TestOneNetworkServesCleanAndNoisedContexts holds a network that was trained
// at all noise levels against the exact expectation at several, and at none
// against one that never saw noise.
func TestOneNetworkServesCleanAndNoisedContexts(t *testing.T) {
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("trains two networks for half a minute; set LACUNA_LONG=1 to run it")
	}
	tr := newTrainer(t, 8)
	s := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 400, Length: 3, Rough: true, Seed: 1})
	test := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 30, Length: 3, Rough: true, Seed: 2})
	at := func(clean float64, steps int) *impute.Model {
		m, source := s.examplesOf(t, 1)
		cfg := tinyConfig(16)
		cfg.Design.Extras, cfg.Clean, cfg.Flip = impute.Extras{}, clean, true
		cfg.Steps, cfg.Batch, cfg.EMADecay = steps, 8, 0.98
		return trained(t, tr, m, source, cfg)
	}
	// Half of the examples of the first have no noise: as many as the second has.
	both, alone := at(0.5, 500), at(1, 250)
	for _, level := range []float32{0, 0.1, 0.5, 0.9} {
		ours, exact, variance := test.denoised(t, both, level)
		t.Logf("t %.1f: mean squared error %.3f, exact %.3f, variance %.3f", level, ours, exact, variance)
		if ours > exact+0.06*variance {
			t.Errorf("t %.1f: mean squared error is %.3f, of which %.3f cannot be helped and %.3f is to do nothing", level, ours, exact, variance)
		}
	}
	withNoise, _, _ := test.denoised(t, both, 0)
	without, _, _ := test.denoised(t, alone, 0)
	if withNoise > 1.05*without {
		t.Errorf("without noise on the context the error is %.4f, %.3f of that of a network which never saw any", withNoise, withNoise/without)
	}
}

// denoised returns the mean squared errors of a network and of the exact
// expectation over hidden cells, with the context at time t.
func (s gaussianSea) denoised(t *testing.T, model *impute.Model, at float32) (ours, exact, variance float64) {
	t.Helper()
	cells, n := 0.0, s.Side*s.Side
	alpha, sigma := impute.AlphaSigma(at)
	for day, truth := range s.Truth {
		visible, eps, x := make([]bool, n), make([]float32, n), make([]float64, n)
		for i, v := range s.Series.Days[day].Values {
			visible[i] = finite(v)
		}
		noise.New(5, "noise over the context").Normals(eps, uint64(day))
		for i := range x {
			x[i] = float64(alpha)*float64(truth[i]) + float64(sigma)*float64(eps[i])
		}
		in := impute.Inputs{Height: s.Side, Width: s.Side, Values: truth, Sea: s.Series.Sea, Visible: visible}
		said, err := model.Denoise(t.Context(), []impute.Inputs{in}, []impute.Level{{T: at, Eps: eps}})
		if err != nil {
			t.Fatal(err)
		}
		best := s.noisyKriging(x, visible, at)
		for i, v := range visible {
			if v {
				continue
			}
			y := float64(truth[i])
			ours += (float64(said[0].Mean[i]) - y) * (float64(said[0].Mean[i]) - y)
			exact += (best[i] - y) * (best[i] - y)
			variance += y * y
			cells++
		}
	}
	return ours / cells, exact / cells, variance / cells
}

// TestACellThatIsNeverAskedIsNeverLearned follows the gradient of the loss with
// a predictor whose cells share nothing, on toy B: all cells that are asked
// reach the posterior's error, the one that never is stays at the prior's. (A
// convolution learns it from its neighbours, which no theorem promises.)
func TestACellThatIsNeverAskedIsNeverLearned(t *testing.T) {
	b := toyB{imputetest.NewToy(1)}
	const never, items, steps, rate = 10, 256, 150, 2
	gradient := newLossGradient(t, newTrainer(t, 1), 0, items, 1, 1, imputetest.ToyCells)
	seen := 0
	for _, visible := range b.Visible {
		if visible {
			seen++
		}
	}
	weights := mat.NewDense(imputetest.ToyCells, seen, nil)
	for step := range steps {
		x, known := b.draw(items, uint64(step))
		answer, target, weight := make([]float32, items*imputetest.ToyCells), make([]float32, items*imputetest.ToyCells), make([]float32, items*imputetest.ToyCells)
		var said, change mat.Dense
		said.Mul(weights, known)
		for i, visible := range b.Visible {
			for k := range items {
				answer[k*imputetest.ToyCells+i], target[k*imputetest.ToyCells+i] = float32(said.At(i, k)), float32(x.At(i, k))
				if !visible && i != never {
					weight[k*imputetest.ToyCells+i] = 1
				}
			}
		}
		pull := mat.NewDense(imputetest.ToyCells, items, nil)
		for i, g := range gradient.at(t, answer, target, weight) {
			pull.Set(i%imputetest.ToyCells, i/imputetest.ToyCells, -rate*float64(g))
		}
		change.Mul(pull, known.T())
		weights.Add(weights, &change)
	}
	const trials = 4096
	x, known := b.draw(trials, steps)
	var said mat.Dense
	said.Mul(weights, known)
	_, posterior := b.Given(0, b.Truth, b.Visible)
	for i, visible := range b.Visible {
		if visible {
			continue
		}
		off := 0.0
		for k := range trials {
			d := said.At(i, k) - x.At(i, k)
			off += d * d / trials
		}
		want := posterior.At(i, i)
		if i == never {
			want = b.Covariance.At(i, i)
		}
		if math.Abs(off-want) > 0.1*want+0.01 {
			t.Errorf("cell %d is off by %.3f in the mean square, want %.3f", i, off, want)
		}
	}
}

type toyB struct{ imputetest.Toy }

// draw returns fields of toy B, one a column, and their visible cells in units
// in which these are independent.
func (b toyB) draw(items int, number uint64) (x, known *mat.Dense) {
	factor := func(c mat.Symmetric) *mat.TriDense {
		var root mat.Cholesky
		root.Factorize(c)
		var lower mat.TriDense
		root.LTo(&lower)
		return &lower
	}
	white := make([]float32, items*imputetest.ToyCells)
	noise.New(9, "toy").Normals(white, number)
	x = mat.NewDense(imputetest.ToyCells, items, nil)
	for i, w := range white {
		x.Set(i%imputetest.ToyCells, i/imputetest.ToyCells, float64(w))
	}
	x.Mul(factor(b.Covariance), x)
	var at []int
	for i, visible := range b.Visible {
		if visible {
			at = append(at, i)
		}
	}
	c, values := mat.NewSymDense(len(at), nil), mat.NewDense(len(at), items, nil)
	for p, i := range at {
		values.SetRow(p, x.RawRowView(i))
		for q := p; q < len(at); q++ {
			c.SetSym(p, q, b.Covariance.At(i, at[q]))
		}
	}
	known = mat.NewDense(len(at), items, nil)
	if err := known.Solve(factor(c), values); err != nil {
		panic(err)
	}
	return x, known
}
