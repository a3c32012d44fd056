package prior

import (
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
)

// roughModel is a tiny prior whose weights are all drawn at random: its answers
// mean nothing, but every part of it takes part.
func roughModel(t testing.TB, e *engine.Engine, edit func(*Config)) *Model {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Size = nn.Tiny
	if edit != nil {
		edit(&cfg)
	}
	n, err := nn.New(cfg.Network())
	if err != nil {
		t.Fatal(err)
	}
	weights := n.Layout().Init(1)
	extra := make([]float32, len(weights))
	noise.New(1, "weights").Normals(extra, 0)
	for i := range weights {
		weights[i] += 0.05 * extra[i] // the last layer starts as zero
	}
	m, err := NewModel(e, cfg, weights)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func testSampling() SampleConfig {
	return SampleConfig{Steps: 4, Spacing: LogSNR, Order: SecondOrder, Batch: 4}
}

func placesOf(patches []samples.Patch) []Place {
	out := make([]Place, len(patches))
	for i, p := range patches {
		out[i] = PlaceOf(p)
	}
	return out
}

// asked returns the prediction of a model for latents at a level, one patch.
func asked(t testing.TB, m *Model, p samples.Patch, x []float32, l Level) []float32 {
	t.Helper()
	s := m.open([]Place{PlaceOf(p)}, 1)
	defer s.close()
	observed, err := s.predict(t.Context(), Latents{X: x, Items: 1, Cells: len(p.Sea), Level: l})
	if err != nil {
		t.Fatal(err)
	}
	return observed
}

// moved returns where a move of a model takes latents, one patch.
func moved(t testing.TB, m *Model, p samples.Patch, x, anchors []float32, by move) []float32 {
	t.Helper()
	s := m.open([]Place{PlaceOf(p)}, 1)
	defer s.close()
	s.start(x)
	if anchors != nil {
		s.pullTo(anchors)
	}
	if err := s.advance(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	next, err := s.latents(1)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// A move of second order goes on with the change of the prediction: by hand,
// from the predictions of the model at both places. The first of a walk changes from
// nothing, whatever an earlier walk has left.
func TestMoveOfSecondOrderGoesOnWithTheChange(t *testing.T) {
	const side, ahead = 16, 0.5
	m := roughModel(t, enginetest.Open(t), nil)
	p := samplestest.Cloudy(1, side)[0]
	moves := []move{
		{level: Cosine{}.At(0.7), look: 1, data: 0.4, keep: 0.6, ahead: ahead},
		{level: Cosine{}.At(0.4), look: 1, data: 0.3, keep: 0.5, ahead: ahead},
	}
	s := m.open([]Place{PlaceOf(p)}, 1)
	defer s.close()
	s.start(normals(Classes*side*side, "an earlier walk"))
	if err := s.advance(t.Context(), moves[0]); err != nil {
		t.Fatal(err)
	}
	x := normals(Classes*side*side, "x")
	s.start(x)
	before := make([]float32, side*side) // nothing was predicted
	for i, by := range moves {
		if err := s.advance(t.Context(), by); err != nil {
			t.Fatal(err)
		}
		got, err := s.latents(1)
		if err != nil {
			t.Fatal(err)
		}
		said := asked(t, m, p, x, by.level)
		for c, e := range said {
			on := float64(e) + by.ahead*float64(e-before[c])
			for class, q := range []float64{1 - on, on} {
				k := class*side*side + c
				if want := Classes*by.data*q + by.keep*float64(x[k]); math.Abs(float64(got[k])-want) > 1e-4 {
					t.Fatalf("move %d, class %d of cell %d: %g, want %g", i, class, c, got[k], want)
				}
			}
		}
		x, before = got, said
	}
}

func normals(n int, name string) []float32 {
	out := make([]float32, n)
	noise.New(9, name).Normals(out, 0)
	return out
}

// Theorem 3: only the softmax is looked at.
func TestShiftOfBothChannelsChangesNothing(t *testing.T) {
	const side = 16
	m := roughModel(t, enginetest.Open(t), nil)
	p := samplestest.Cloudy(1, side)[0]
	l := Cosine{}.At(0.5)
	x := normals(Classes*side*side, "x")
	before := asked(t, m, p, x, l)
	for i := range x {
		x[i] += 0.75
	}
	after := asked(t, m, p, x, l)
	for i := range before {
		if d := math.Abs(float64(before[i] - after[i])); d > 1e-5 {
			t.Fatalf("cell %d: %g before and %g after a shift of both channels", i, before[i], after[i])
		}
	}
}

func TestLandIsNeverObserved(t *testing.T) {
	patches := samplestest.Cloudy(3, 16)
	masks, err := roughModel(t, enginetest.Open(t), nil).Draw(t.Context(), placesOf(patches), testSampling(), noise.New(1, "land"))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range masks {
		for c, b := range m {
			if b && !patches[i].Sea[c] {
				t.Fatalf("mask %d observes cell %d, which is land", i, c)
			}
		}
	}
}

// guidanceLoss is the loss of Algorithm 1, from the probabilities.
func guidanceLoss(observed, anchors []float32) float64 {
	sum := 0.0
	for i, e := range observed {
		y, p := float64(anchors[i]), float64(e)
		if p == 0 && y == 0 { // land
			continue
		}
		sum -= y*math.Log(p) + (1-y)*math.Log(1-p)
	}
	return sum / float64(len(observed))
}

// The engine takes the step that the formula says, also where the sides need
// padding.
func TestEngineTakesTheStepOfTheFormula(t *testing.T) {
	const side = 13
	m := roughModel(t, enginetest.Open(t), nil)
	p := samplestest.Cloudy(1, side)[0]
	x := normals(Classes*side*side, "step")
	anchors := make([]float32, side*side)
	cfg := DefaultGuidance()
	cfg.anchors(anchors, p, noise.New(1, "anchors"))
	by := move{level: Cosine{}.At(0.5), look: 1, data: 0.7, keep: 0.4, pull: 30}
	observed := asked(t, m, p, x, by.level)
	gradient := moved(t, m, p, x, anchors, move{level: by.level, look: 1, pull: -1})
	got := moved(t, m, p, x, anchors, by)
	for k, v := range x {
		e := float64(observed[k%(side*side)])
		if k < side*side {
			e = 1 - e
		}
		want := Classes*by.data*e + by.keep*float64(v) - by.pull*float64(gradient[k])
		if math.Abs(float64(got[k])-want) > 1e-5 {
			t.Fatalf("latent %d becomes %g, want %g", k, got[k], want)
		}
	}
	// Where a level has no noise, the network must not see the latents.
	by.look, by.pull = 0, 0
	blind := moved(t, m, p, x, nil, by)
	zero := asked(t, m, p, make([]float32, len(x)), by.level)
	for c, e := range zero {
		want := Classes*by.data*float64(e) + by.keep*float64(x[side*side+c])
		if math.Abs(float64(blind[side*side+c])-want) > 1e-5 {
			t.Fatalf("cell %d becomes %g without a look, want %g", c, blind[side*side+c], want)
		}
	}
}

func TestGuidanceLossByHand(t *testing.T) {
	// One cell is right at 0.8, one wrong at 0.8, two undecided.
	got := guidanceLoss([]float32{0.8, 0.8, 0.5, 0.5}, []float32{1, 0, 1, 0})
	want := (-math.Log(0.8) - math.Log(0.2) + 2*math.Ln2) / 4
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("loss is %g, want %g", got, want)
	}
}

// The gradient goes through the network: moving one latent must change the
// loss by what the gradient says.
func TestGuidanceGradientAgreesWithFiniteDifferences(t *testing.T) {
	const side = 16
	for _, evidence := range []bool{true, false} {
		m := roughModel(t, enginetest.Open(t), func(c *Config) { c.Evidence = evidence })
		p := samplestest.Cloudy(1, side)[0]
		l := Cosine{}.At(0.55)
		x := normals(Classes*side*side, "latents")
		anchors := make([]float32, side*side)
		cfg := DefaultGuidance()
		cfg.anchors(anchors, p, noise.New(1, "anchors"))
		gradient := moved(t, m, p, x, anchors, move{level: l, look: 1, pull: -1})
		largest := 0.0
		for _, g := range gradient {
			largest = max(largest, math.Abs(float64(g)))
		}
		const h = 2e-2 // smaller steps drown in the rounding of float32
		for _, k := range []int{5*side + 7, 9*side + 3, side*side + 5*side + 7, side*side + 12*side + 12} {
			loss := func(by float32) float64 {
				y := append([]float32(nil), x...)
				y[k] += by
				return guidanceLoss(asked(t, m, p, y, l), anchors)
			}
			want := (loss(h) - loss(-h)) / (2 * h)
			if d := math.Abs(float64(gradient[k]) - want); d > 0.03*largest {
				t.Errorf("evidence %v, latent %d: gradient %g, finite difference %g", evidence, k, gradient[k], want)
			}
		}
		for c := range side * side {
			if sum := math.Abs(float64(gradient[c] + gradient[side*side+c])); sum > 1e-6*largest {
				t.Fatalf("gradients of the channels of cell %d sum to %g, want 0", c, sum)
			}
		}
	}
}

func TestNoGuidanceIsBitForBitUnconditional(t *testing.T) {
	patches := samplestest.Cloudy(3, 16)
	m := roughModel(t, enginetest.Open(t), nil)
	cfg := DefaultGuidance()
	cfg.SampleConfig, cfg.Weight = testSampling(), 0
	stream := noise.New(4, "same")
	free, err := m.Draw(t.Context(), placesOf(patches), cfg.SampleConfig, stream)
	if err != nil {
		t.Fatal(err)
	}
	guided, _, err := m.DrawGuided(t.Context(), patches, cfg, stream)
	if err != nil {
		t.Fatal(err)
	}
	for i := range free {
		if !equalMasks(free[i], guided[i]) {
			t.Errorf("mask %d differs with weight 0", i)
		}
	}
}

func TestAgreementWithTheAnchorRisesWithTheWeight(t *testing.T) {
	const cells, items = 256, 40
	p := make([]float64, cells)
	for c := range p {
		p[c] = 0.3
	}
	anchors := make([]float32, items*cells)
	for k := range anchors {
		anchors[k] = float32(indicator(k%3 == 0))
	}
	before := -1.0
	for _, weight := range []float64{0, 10, 40, 160} {
		x := normals(items*Classes*cells, "guided")
		guide := pull{weight: GuideConfig{Weight: weight}.weightFor(cells), steps: 14}
		walkExact(t, exact{predict: independent(p), at: Latents{X: x, Items: items, Cells: cells}, anchors: anchors}, LogSNR.Levels(Cosine{}, 20, cells), SecondOrder, guide)
		agree := 0.0
		for i, mask := range decode(x, items) {
			for c, b := range mask {
				agree += indicator(b == (anchors[i*cells+c] == 1)) / (items * cells)
			}
		}
		t.Logf("weight %g: agreement %.3f", weight, agree)
		if agree <= before {
			t.Errorf("agreement is %.3f at weight %g and was %.3f before", agree, weight, before)
		}
		before = agree
	}
}

func TestBatchOfOneEqualsTheItemInABatch(t *testing.T) {
	patches := samplestest.Cloudy(6, 16)
	m := roughModel(t, enginetest.Open(t), nil)
	cfg := DefaultGuidance()
	cfg.SampleConfig = testSampling()
	g, err := NewGuided(m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	stream := noise.New(4, "batch")
	all, err := g.Partition(t.Context(), patches, stream)
	if err != nil {
		t.Fatal(err)
	}
	one, err := g.Partition(t.Context(), patches[:1], stream)
	if err != nil {
		t.Fatal(err)
	}
	if !equalMasks(one[0].Context, all[0].Context) {
		t.Error("the first item differs when it comes alone")
	}
}

// Sides that the network cannot take are padded with land, which must not
// show: a window of odd size gives what it gives as part of a larger sea of
// land.
func TestPaddingIsLand(t *testing.T) {
	m := roughModel(t, enginetest.Open(t), nil)
	small := samplestest.Cloudy(1, 13)[0]
	l := Cosine{}.At(0.4)
	x := normals(Classes*13*13, "odd")
	got := asked(t, m, small, x, l)
	if len(got) != 13*13 {
		t.Fatalf("%d cells, want %d", len(got), 13*13)
	}
	whole := samples.Patch{Ref: samples.Ref{Window: samples.Square(0, 0, 16)}, Time: small.Time, Sea: make([]bool, 16*16)}
	padded := make([]float32, Classes*16*16)
	for c := range 13 * 13 {
		at := c/13*16 + c%13
		whole.Sea[at] = small.Sea[c]
		padded[at], padded[16*16+at] = x[c], x[13*13+c]
	}
	want := asked(t, m, whole, padded, l)
	for c := range got {
		if w := want[c/13*16+c%13]; math.Abs(float64(got[c]-w)) > 1e-5 {
			t.Fatalf("cell %d is %g, and %g with land around it", c, got[c], w)
		}
	}
}

func TestFileGivesTheSameModelBack(t *testing.T) {
	e := enginetest.Open(t)
	m := roughModel(t, e, func(c *Config) { c.Yesterday, c.Frequency = true, true })
	_, train, _ := samplestest.Archive(t, 30, 16)
	m.places = FrequencyOf(train)
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Load(e, data)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if back.Fingerprint() != m.Fingerprint() || back.Config() != m.Config() {
		t.Errorf("the file gave %+v back, want %+v", back.Config(), m.Config())
	}
	if !slices.Equal(back.places.Steps, m.places.Steps) {
		t.Error("the file gave another map of frequencies back")
	}
	if !back.FitsGrid(16, 16) || back.FitsGrid(16, 17) {
		t.Error("a map of 16x16 cells is for other grids, or not for its own")
	}
	if _, err := Load(e, data[:len(data)/2]); err == nil {
		t.Error("half a file was taken for a prior")
	}
}

func TestPriorStaysFrozenWhilePartitionsAreDrawn(t *testing.T) {
	m := roughModel(t, enginetest.Open(t), nil)
	before := m.Fingerprint()
	g, err := NewUnconditional(m, testSampling())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Partition(t.Context(), samplestest.Cloudy(3, 16), noise.New(1, "frozen")); err != nil {
		t.Fatal(err)
	}
	if m.Fingerprint() != before {
		t.Error("drawing changed the weights")
	}
}

func TestPlacesOfDifferentSizesAreRefused(t *testing.T) {
	m := roughModel(t, enginetest.Open(t), nil)
	places := []Place{PlaceOf(samplestest.Cloudy(1, 16)[0]), PlaceOf(samplestest.Cloudy(1, 8)[0])}
	if _, err := m.Draw(t.Context(), places, testSampling(), noise.New(1, "sizes")); err == nil {
		t.Error("places of 16 and 8 cells were drawn in one batch")
	}
}
