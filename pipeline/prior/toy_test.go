package prior

import (
	"context"
	"fmt"
	"math"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// independent returns the exact predictor of cells that are observed with
// probability p[cell], whatever the others are.
func independent(p []float64) Predictor {
	return func(_ context.Context, at Latents) ([]float32, error) {
		observed := make([]float32, at.Items*at.Cells)
		gain := at.Level.Gain()
		for k := range observed {
			gap, seen := at.channels(k)
			q := p[k%at.Cells]
			observed[k] = float32(sigmoid(math.Log(q/(1-q)) + gain*float64(seen-gap)))
		}
		return observed, nil
	}
}

// exact walks with a predictor in closed form. Anchors, items × cells, pull on
// it as if cells were independent: the gradient of the guidance loss is then
// the gain times (ê-y)/d.
type exact struct {
	predict Predictor
	at      Latents
	anchors []float32
	before  []float32 // prediction of the last move
}

// advance implements walker.
func (e *exact) advance(ctx context.Context, m move) error {
	seen := e.at
	seen.Level, seen.X = m.level, make([]float32, len(e.at.X))
	for i, v := range e.at.X {
		seen.X[i] = float32(m.look) * v
	}
	observed, err := e.predict(ctx, seen)
	if err != nil {
		return err
	}
	if e.before == nil {
		e.before = make([]float32, len(observed))
	}
	for k, p := range observed {
		item, cell := k/seen.Cells, k%seen.Cells
		on := p + float32(m.ahead)*(p-e.before[k])
		for class, q := range []float32{1 - on, on} {
			x := &e.at.X[(Classes*item+class)*seen.Cells+cell]
			*x = float32(Classes*m.data)*q + float32(m.keep)**x
			if m.pull != 0 {
				g := float32(m.level.Gain()) * (p - e.anchors[k]) / float32(seen.Cells)
				*x -= float32(m.pull) * float32(2*class-1) * g
			}
		}
	}
	e.before = observed
	return nil
}

// walkExact takes noise, items × 2 × cells, to the end of a walk, in place.
func walkExact(t testing.TB, e exact, levels []Level, o Order, p pull) {
	t.Helper()
	for i := range e.at.X {
		e.at.X[i] *= startDeviation(levels)
	}
	if err := walk(t.Context(), &e, levels, o, p); err != nil {
		t.Fatal(err)
	}
}

// channels returns both channels of cell k of all items.
func (l Latents) channels(k int) (gap, seen float32) {
	item, cell := k/l.Cells, k%l.Cells
	return l.X[item*Classes*l.Cells+cell], l.X[item*Classes*l.Cells+l.Cells+cell]
}

// mixture returns the exact predictor of masks that are one of templates with
// the given weights.
func mixture(templates [][]bool, weights []float64) Predictor {
	return func(_ context.Context, at Latents) ([]float32, error) {
		observed := make([]float32, at.Items*at.Cells)
		gain := at.Level.Gain()
		score := make([]float64, len(templates))
		for item := range at.Items {
			best := math.Inf(-1)
			for t, template := range templates {
				score[t] = math.Log(weights[t])
				for c, o := range template {
					gap, seen := at.channels(item*at.Cells + c)
					if o {
						score[t] += gain * float64(seen-gap)
					}
				}
				best = max(best, score[t])
			}
			total := 0.0
			for t := range score {
				score[t] = math.Exp(score[t] - best)
				total += score[t]
			}
			for t, template := range templates {
				for c, o := range template {
					if o {
						observed[item*at.Cells+c] += float32(score[t] / total)
					}
				}
			}
		}
		return observed, nil
	}
}

// drawExact walks items masks of cells cells with a predictor.
func drawExact(t testing.TB, predict Predictor, levels []Level, o Order, items, cells int) [][]bool {
	t.Helper()
	x := make([]float32, items*Classes*cells)
	noise.New(7, "exact").Normals(x, 0)
	walkExact(t, exact{predict: predict, at: Latents{X: x, Items: items, Cells: cells}}, levels, o, pull{})
	return decode(x, items)
}

func frequency(masks [][]bool, cell int) float64 {
	n := 0.0
	for _, m := range masks {
		n += indicator(m[cell])
	}
	return n / float64(len(masks))
}

// Toy A: one cell and the exact predictor. 10,000 draws leave a standard error
// of 0.005.
const (
	toyDraws     = 10000
	toySteps     = 200
	toyTolerance = 0.015
)

func TestToyAReturnsItsProbability(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic of one goroutine: nothing that the race detector could see")
	}
	for _, schedule := range []Schedule{Cosine{}, Accuracy{Final: DefaultFinalAccuracy}} {
		for _, spacing := range []Spacing{Even, LogSNR} {
			for _, order := range []Order{FirstOrder, SecondOrder} {
				for _, p := range []float64{0.1, 0.3, 0.7} {
					t.Run(fmt.Sprintf("%s %s order %d %g", schedule.Name(), spacing, order, p), func(t *testing.T) {
						masks := drawExact(t, independent([]float64{p}), spacing.Levels(schedule, toySteps, 1), order, toyDraws, 1)
						if got := frequency(masks, 0); math.Abs(got-p) > toyTolerance {
							t.Errorf("observed in %.3f of the draws, want %.3f", got, p)
						}
					})
				}
			}
		}
	}
}

// Algorithm 1 of Ma, Zhou and Yu prints the bracket of the step with its sign
// turned and divided by σ². The same test must see that.
func TestPrintedStepOfAlgorithmOneFailsToyA(t *testing.T) {
	want := map[float64]float64{0.1: 0.20, 0.3: 0.07, 0.7: 0.93} // measured before, in another program
	levels := Even.Levels(Cosine{}, toySteps, 1)
	for p, known := range want {
		z := make([]float32, toyDraws*Classes)
		noise.New(7, "exact").Normals(z, 0)
		seen := 0.0
		for d := range toyDraws {
			x := [Classes]float64{float64(z[Classes*d]), float64(z[Classes*d+1])}
			for i, to := range levels[1:] {
				from := levels[i]
				e := sigmoid(math.Log(p/(1-p)) + from.Gain()*(x[1]-x[0]))
				for k, data := range []float64{Classes * (1 - e), Classes * e} {
					x[k] = to.Alpha*data + to.Sigma*(from.Alpha*data-x[k])/(from.Sigma*from.Sigma)
				}
			}
			seen += indicator(x[1] > x[0]) / toyDraws
		}
		if math.Abs(seen-p) <= toyTolerance {
			t.Errorf("p = %g: the printed step gives %.3f and passes", p, seen)
		}
		if math.Abs(seen-known) > toyTolerance {
			t.Errorf("p = %g: the printed step gives %.3f, another program %.2f", p, seen, known)
		}
	}
}

func TestIndependentCellsKeepTheirProbabilities(t *testing.T) {
	p := []float64{0.05, 0.2, 0.5, 0.8, 0.95, 0.35}
	masks := drawExact(t, independent(p), LogSNR.Levels(Cosine{}, toySteps, len(p)), SecondOrder, toyDraws, len(p))
	both := 0.0
	for _, m := range masks {
		both += indicator(m[2] && m[3])
	}
	for c, want := range p {
		if got := frequency(masks, c); math.Abs(got-want) > toyTolerance {
			t.Errorf("cell %d observed in %.3f of the draws, want %.3f", c, got, want)
		}
	}
	if got, want := both/toyDraws, p[2]*p[3]; math.Abs(got-want) > toyTolerance {
		t.Errorf("two cells observed together in %.3f of the draws, want %.3f: they are independent", got, want)
	}
}

func TestTwoTemplatesComeInTheirShares(t *testing.T) {
	const cells = 64
	left, right := make([]bool, cells), make([]bool, cells)
	for c := range left {
		left[c], right[c] = c%8 < 4, c%8 >= 2
	}
	predict := mixture([][]bool{left, right}, []float64{0.3, 0.7})
	masks := drawExact(t, predict, LogSNR.Levels(Cosine{}, 60, cells), SecondOrder, 4000, cells)
	lefts := 0.0
	for _, m := range masks {
		switch {
		case equalMasks(m, left):
			lefts++
		case !equalMasks(m, right):
			t.Fatal("a draw is neither template")
		}
	}
	if got := lefts / float64(len(masks)); math.Abs(got-0.3) > 0.03 {
		t.Errorf("the first template came in %.3f of the draws, want 0.3", got)
	}
}

func equalMasks(a, b []bool) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// The ODE step does not know that data are masks: for Gaussian data with mean
// mu and variance s², x̂₀ = mu + s²α(x-α·mu)/(α²s²+σ²), and the walk must end
// with that mean and variance.
func TestWalkReturnsAGaussian(t *testing.T) {
	const mu, s, items = 0.6, 0.3, toyDraws
	// The walk takes ê of the second channel, with x̂₀ = K·ê.
	predict := func(_ context.Context, at Latents) ([]float32, error) {
		observed := make([]float32, items)
		l := at.Level
		for k := range observed {
			_, v := at.channels(k)
			hat := mu + s*s*l.Alpha*(float64(v)-l.Alpha*mu)/(l.Alpha*l.Alpha*s*s+l.Sigma*l.Sigma)
			observed[k] = float32(hat / Classes)
		}
		return observed, nil
	}
	x := make([]float32, items*Classes)
	noise.New(3, "gauss").Normals(x, 0)
	walkExact(t, exact{predict: predict, at: Latents{X: x, Items: items, Cells: 1}}, LogSNR.Levels(Cosine{}, toySteps, 1), SecondOrder, pull{})
	var sum, squares float64
	for k := range items {
		v := float64(x[Classes*k+1])
		sum += v
		squares += v * v
	}
	mean := sum / items
	sd := math.Sqrt(squares/items - mean*mean)
	if math.Abs(mean-mu) > 0.01 || math.Abs(sd-s) > 0.01 {
		t.Errorf("mean %.3f and sd %.3f, want %.3f and %.3f", mean, sd, mu, s)
	}
}

// A textbook Bayesian Flow Network draws a class from its output, sends it
// with a little noise and adds it up; with the accuracy schedule ours
// must see the same beliefs on the way and give the same answer.
func TestAccuracyScheduleIsTheTextbookNetworkOnToyA(t *testing.T) {
	const p, steps, draws = 0.3, 200, 5000
	schedule := Accuracy{Final: DefaultFinalAccuracy}
	levels := Even.Levels(schedule, steps, 1)
	belief := func(x0, x1 float64) float64 { return sigmoid(math.Log(p/(1-p)) + x1 - x0) }

	ours := make([]float64, steps)
	x := make([]float32, draws*Classes)
	noise.New(5, "ours").Normals(x, 0)
	step := 0
	predict := independent([]float64{p})
	watched := func(ctx context.Context, at Latents) ([]float32, error) {
		observed, err := predict(ctx, at)
		for _, e := range observed {
			ours[step] += math.Abs(float64(e)-0.5) / draws
		}
		step++
		return observed, err
	}
	walkExact(t, exact{predict: watched, at: Latents{X: x, Items: draws, Cells: 1}}, levels, FirstOrder, pull{})

	textbook, seen := make([]float64, steps), 0.0
	for d := range draws {
		r := noise.New(5, "textbook").Rand(uint64(d))
		x0, x1 := 0.0, 0.0
		for i, to := range levels[1:] {
			e := belief(x0, x1)
			textbook[i] += math.Abs(e-0.5) / draws
			accuracy := to.Alpha - levels[i].Alpha
			// y ~ N(accuracy·(K·e_k - 1), accuracy·K)
			y0, y1 := accuracy, -accuracy
			if r.Float64() < e {
				y0, y1 = y1, y0
			}
			spread := math.Sqrt(accuracy * Classes)
			x0 += y0 + spread*r.NormFloat64()
			x1 += y1 + spread*r.NormFloat64()
		}
		seen += indicator(x1 > x0) / draws
	}
	if got := frequency(decode(x, draws), 0); math.Abs(got-seen) > 0.03 {
		t.Errorf("our walk gives %.3f, the textbook %.3f", got, seen)
	}
	for i := 0; i < steps; i += 10 {
		if math.Abs(ours[i]-textbook[i]) > 0.02 {
			t.Errorf("certainty before step %d is %.3f, in the textbook %.3f", i, ours[i], textbook[i])
		}
	}
}

// How much is observed differs from mask to mask. Few even steps in time jump
// over where that is decided, and all samples get nearly the same coverage;
// steps that are even in log-SNR do not. The predictor is exact, so it is the
// spacing alone.
func TestEvenStepsLoseTheSpreadOfCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic of one goroutine: nothing that the race detector could see")
	}
	const cells, steps, draws = 64 * 64, 20, 300
	want := 0.9 / math.Sqrt(12) // coverage is uniform in 0.05..0.95
	got := map[Spacing]float64{}
	for _, spacing := range []Spacing{Even, LogSNR} {
		got[spacing] = coverageSD(drawExact(t, prefixes, spacing.Levels(Cosine{}, steps, cells), SecondOrder, draws, cells))
	}
	t.Logf("sd of coverage: true %.3f, log-SNR %.3f, even %.3f", want, got[LogSNR], got[Even])
	const tolerance = 0.15 // relative to the sd, the bar for real masks
	if ratio := got[LogSNR] / want; math.Abs(ratio-1) > tolerance {
		t.Errorf("log-SNR steps give %.2f of the spread of coverage, want 1 within %.2f", ratio, tolerance)
	}
	if ratio := got[Even] / want; math.Abs(ratio-1) <= tolerance {
		t.Errorf("even steps give %.2f of the spread of coverage and pass: the test does not tell", ratio)
	}
}

// A step of second order costs as much as one of first order, and ends closer to
// where the ODE does: each walk is compared with the same noise taken along in
// many small steps.
func TestSecondOrderEndsCloserToTheODE(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic of one goroutine: nothing that the race detector could see")
	}
	const cells, draws = 32 * 32, 200
	end := func(order Order, steps int) [][]bool {
		return drawExact(t, prefixes, LogSNR.Levels(Cosine{}, steps, cells), order, draws, cells)
	}
	truth := end(FirstOrder, 400)
	miss := func(masks [][]bool) float64 {
		sum := 0.0
		for i, m := range masks {
			sum += math.Abs(float64(field.Mask(m).Count()-field.Mask(truth[i]).Count())) / (cells * draws)
		}
		return sum
	}
	first, second := miss(end(FirstOrder, 20)), miss(end(SecondOrder, 20))
	t.Logf("coverage off by %.4f after 20 steps of first order, %.4f of second", first, second)
	if second > 0.7*first {
		t.Errorf("20 steps of second order end %.4f away, of first order %.4f", second, first)
	}
}

// prefixes is the exact predictor of masks that are observed up to some cell,
// any between 5 and 95 % of all with equal probability: cell c is observed
// where the mask reaches beyond it.
func prefixes(_ context.Context, at Latents) ([]float32, error) {
	observed := make([]float32, at.Items*at.Cells)
	gain := at.Level.Gain()
	reach := make([]float64, at.Cells+1) // score of the mask that ends before a cell
	least, most := at.Cells/20, at.Cells-at.Cells/20
	for item := range at.Items {
		best := math.Inf(-1)
		for c := range at.Cells {
			gap, seen := at.channels(item*at.Cells + c)
			reach[c+1] = reach[c] + gain*float64(seen-gap)
			if c+1 >= least && c+1 <= most {
				best = max(best, reach[c+1])
			}
		}
		total := 0.0
		for k := least; k <= most; k++ {
			reach[k] = math.Exp(reach[k] - best)
			total += reach[k]
		}
		beyond := total // of the masks that reach beyond cell c
		for c := range at.Cells {
			if c >= least && c <= most {
				beyond -= reach[c]
			}
			observed[item*at.Cells+c] = float32(min(max(beyond/total, 0), 1))
		}
		clear(reach)
	}
	return observed, nil
}

func coverageSD(masks [][]bool) float64 {
	var sum, squares float64
	for _, m := range masks {
		c := float64(field.Mask(m).Count()) / float64(len(m))
		sum += c
		squares += c * c
	}
	n := float64(len(masks))
	return math.Sqrt(squares/n - sum/n*sum/n)
}
