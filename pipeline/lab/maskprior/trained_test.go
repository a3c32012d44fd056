package maskprior

import (
	"math"
	"testing"
	"time"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
	"lacuna/pipeline/train"
)

// newBench returns a measurement at 64 held-out masks of a small cloudy sea.
func newBench(t *testing.T) *bench {
	t.Helper()
	const side = 16
	_, data, held := samplestest.Archive(t, 300, side)
	cfg := learn.DefaultPrior()
	cfg.Model.Size, cfg.Model.Season, cfg.Model.Frequency = nn.Tiny, false, false
	cfg.Side, cfg.Stride, cfg.Batch, cfg.EvaluateEvery, cfg.CheckpointEvery, cfg.CalibrateMasks = side, side, 16, 0, 0, 0
	cfg.Step.Steps, cfg.Step.WarmupSteps, cfg.Step.EMADecay, cfg.Step.LearningRate = 200, 10, 0.95, 3e-3
	b := &bench{
		options: options{train: cfg, guide: prior.DefaultGuidance(), masks: 64, patches: 12, draws: 16},
		train:   data, held: held,
		report: &report{ByDraw: map[string]drawReport{}, Seconds: map[string]float64{}, Strength: map[string]masks.Strength{}},
	}
	b.guide.Steps, b.guide.Batch = 10, 32
	if err := b.choosePlaces(); err != nil {
		t.Fatal(err)
	}
	return b
}

// The claims about guidance, on a prior that has learned what these gaps look
// like: its draws are better than chance and far from perfect.
func TestGuidanceOfATrainedPrior(t *testing.T) {
	if testing.Short() {
		t.Skip("training and drawing take seconds")
	}
	b := newBench(t)
	b.engine = enginetest.Open(t)
	m, _, err := learn.TrainPrior(t.Context(), b.engine, b.train, b.held, b.options.train, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	t.Run("guided masks follow their anchors, and only regions leave them plausible", func(t *testing.T) { checkPlausible(t, b, m) })
	t.Run("a mask is more certain, and shares more, the more of the observation is kept", func(t *testing.T) { checkRho(t, b, m) })
	t.Run("no cell is left out, by guidance or at random", func(t *testing.T) { checkNoDeadCell(t, b, m) })
}

// pulled is so strong on 16×16 cells that a mask follows its anchor.
const pulled = 1000

// checkPlausible draws with either anchor and without any. Both anchors are
// followed; only the edges and the sizes of gaps tell the one that tears masks.
func checkPlausible(t *testing.T, b *bench, m *prior.Model) {
	draw := func(anchor prior.Anchor, weight float64) (r drawReport, agreement float64) {
		cfg := b.anchored(anchor)
		cfg.Weight = weight
		drawn, anchors, err := m.DrawGuided(t.Context(), b.places, cfg, noise.New(1, "plausible"))
		if err != nil {
			t.Fatal(err)
		}
		r = b.compare(drawn)
		t.Logf("%s, weight %g: agreement %.3f, edges %.2f of the real ones, gap sizes %.3f apart, context shares %.2f, degenerate %.2f",
			anchor, weight, agree(b.places, drawn, anchors), r.EdgeDensity/b.report.HeldOut.EdgeDensity, r.GapSizeKS, r.ContextShares, r.Degenerate)
		return r, agree(b.places, drawn, anchors)
	}
	free, chance := draw(prior.AnchorPixel, 0)
	coherent, byRegion := draw(prior.AnchorCoherent, pulled)
	pixel, byPixel := draw(prior.AnchorPixel, pulled)
	if chance > 0.7 || byRegion < 0.95 || byPixel < 0.95 {
		t.Errorf("masks agree with their anchors in %.3f of the sea without a pull, in %.3f and %.3f with one", chance, byRegion, byPixel)
	}
	rough := func(r drawReport) float64 { return r.EdgeDensity / b.report.HeldOut.EdgeDensity }
	if most := masks.DefaultTarget().MaxRoughness; rough(coherent) > most || rough(pixel) <= most {
		t.Errorf("masks have %.2f of the real edges with coherent anchors and %.2f with pixels, want %.2f to lie between", rough(coherent), rough(pixel), most)
	}
	if coherent.GapSizeKS > pixel.GapSizeKS/2 {
		t.Errorf("gap sizes are %.3f from the real ones with coherent anchors, %.3f with pixels", coherent.GapSizeKS, pixel.GapSizeKS)
	}
	// What is left to chance shares little with some observations; guidance
	// with none.
	low := func(r drawReport) float64 { return r.ContextShares[0] + r.ContextShares[1] + r.ContextShares[2] }
	if low(free) == 0 || low(pixel) > 0 || math.Abs(pixel.ContextShare-0.8) > 0.03 {
		t.Errorf("%.3f of the free masks and %.3f of the guided ones share less than 0.3; the guided share %.3f, want 0.8", low(free), low(pixel), pixel.ContextShare)
	}
}

// agree returns the share of the sea in which masks are as their anchors.
func agree(places []samples.Patch, drawn, anchors [][]bool) float64 {
	same, sea := 0.0, 0.0
	for i, p := range places {
		for c, is := range p.Sea {
			if is {
				sea++
				if drawn[i][c] == anchors[i][c] {
					same++
				}
			}
		}
	}
	return same / sea
}

// checkRho draws every patch often. Differences are taken patch by patch.
func checkRho(t *testing.T, b *bench, m *prior.Model) {
	var before guidedStudy
	for _, rho := range []float64{0.6, 0.8, 1} {
		cfg := b.anchored(prior.AnchorPixel)
		cfg.Rho = rho
		s, err := b.study(t.Context(), m, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("rho %g: context share %.3f ± %.3f, sd %.3f ± %.3f", rho, s.ContextShare.Mean, s.ContextShare.Within, s.MaskSD.Mean, s.MaskSD.Within)
		if before.perPatch.share != nil {
			share, sd := estimateOf(minus(s.perPatch.share, before.perPatch.share)), estimateOf(minus(s.perPatch.sd, before.perPatch.sd))
			if share.Mean-share.Within <= 0 {
				t.Errorf("rho %g shares %+.3f ± %.3f more than %g", rho, share.Mean, share.Within, before.Rho)
			}
			if rho == 1 && sd.Mean+sd.Within >= 0 {
				t.Errorf("the sd at rho 1 is %+.3f ± %.3f more than at %g, want less", sd.Mean, sd.Within, before.Rho)
			}
		}
		before = s
	}
}

// checkNoDeadCell compares the lowest P(query) under guidance with that of a
// random selection, whose own is known: each cell is query with probability 0.3.
func checkNoDeadCell(t *testing.T, b *bench, m *prior.Model) {
	guided, err := prior.NewGuided(m, b.guide)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []partition.Strategy{guided, partition.Pixel(0.3, 0.3)} {
		got, err := partition.DrawLowest(t.Context(), by, b.places[:1], partition.ClaimDraws, noise.New(1, "dead"))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v", by.Name(), got)
		if !(got.Bound > 0.05) || got.Never != 0 || got.Cells != field.Mask(b.places[0].Observed()).Count() {
			t.Errorf("%s: %+v, want every observed cell to be query at times", by.Name(), got)
		}
		if by != guided && (got.Estimate < 0.15 || got.Bound > 0.3) {
			t.Errorf("random selection at 0.3: %+v", got)
		}
	}
}

func TestContextSharesByHand(t *testing.T) {
	sea := make([]bool, 8)
	for c := range sea {
		sea[c] = true
	}
	nan := field.NaN()
	p := samples.Patch{
		Ref: samples.Ref{Window: samples.Window{Height: 2, Width: 4}}, Time: time.Date(2021, 1, 1, 12, 0, 0, 0, time.UTC),
		Values: []float32{1, 1, 1, 1, nan, nan, nan, nan}, Sea: sea,
	}
	b := newBench(t)
	b.places = []samples.Patch{p, p, p, p}
	got := b.compare([][]bool{
		{true, true, true, true, false, false, false, false},  // all of it: no query is left
		{false, false, false, false, true, true, true, true},  // nothing of it: no context
		{true, false, false, false, true, true, true, true},   // a quarter
		{true, true, true, false, false, false, false, false}, // three quarters
	})
	want := [10]float64{0: 0.25, 2: 0.25, 7: 0.25, 9: 0.25}
	if got.ContextShares != want || got.ContextShare != 0.5 || got.Degenerate != 0.5 {
		t.Errorf("shares %v with mean %g, %g degenerate; want %v, 0.5 and 0.5", got.ContextShares, got.ContextShare, got.Degenerate, want)
	}
}
