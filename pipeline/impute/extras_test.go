package impute

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// blocky splits every patch alike: the left half is context, the right half
// query with probability 0.8.
type blocky struct{}

func (blocky) Name() string { return "blocky" }

func (blocky) Partition(_ context.Context, patches []samples.Patch, s noise.Stream) ([]prior.Partition, error) {
	out := make([]prior.Partition, len(patches))
	for i, p := range patches {
		r := s.Sub(uint64(i)).Rand(0)
		left := r.IntN(2) == 0 // which half is the left one
		out[i] = prior.Partition{Context: make([]bool, len(p.Values)), Query: make([]bool, len(p.Values))}
		for k, v := range p.Values {
			if v == v { // not NaN
				here := (k%p.Window.Width < p.Window.Width/2) == left
				out[i].Context[k], out[i].Query[k] = here, !here && r.Float64() < 0.8
			}
		}
	}
	return out, nil
}

func TestReliabilityKnowsMoreThanAMap(t *testing.T) {
	shop := newShop(t, 1)
	s := newGaussianSea(t, seaConfig{side: 16, days: 40, length: 3, memory: 0.8, seed: 1})
	m, _ := s.lessonsOf(t, 1)
	refs := m.Train.Refs(16, 16, 20)
	src, err := Fresh(m.Train, refs, blocky{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := ReliabilityConfig(tinyConfig(16))
	cfg.Steps, cfg.Batch = 60, 8
	r, _, err := TrainReliability(context.Background(), shop, m, src, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	const tests, from = 24, 1 << 30 // lessons that were not learned from
	brier, frequency, n := 0.0, make([]float64, 16*16), 0.0
	queries := make([][]bool, tests)
	for i := range queries {
		l, err := src.Lesson(context.Background(), from+uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		in := Inputs{Height: 16, Width: 16, Sea: s.series.Sea, Visible: l.Context}
		p, err := r.Probability(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		for k, q := range l.Query {
			d := float64(p[k] - number(q))
			brier += d * d
			frequency[k] += float64(number(q)) / tests
			n++
		}
		queries[i] = l.Query
	}
	static := 0.0 // of the best map there is, that of the tests themselves
	for _, query := range queries {
		for k, q := range query {
			d := frequency[k] - float64(number(q))
			static += d * d
		}
	}
	t.Logf("brier score %.3f, of the best map %.3f", brier/n, static/n)
	if brier >= static {
		t.Errorf("brier score is %.3f, a map alone has %.3f", brier/n, static/n)
	}

	data, err := r.Save(16)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadReliability(data, shop)
	if err != nil || again.Fingerprint() != r.Fingerprint() {
		t.Errorf("reading it back gives %v", err)
	}
	if _, err := Load(data, shop); err == nil {
		t.Error("a classifier was accepted as an imputer")
	}
}

func TestCalibratedIntervalsCoverWhatTheyClaim(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	// Errors are as claimed near observations, twice that far away, and half as
	// large again in winter.
	draw := func() Case {
		c := Case{Sigma: 0.2 + r.Float32(), DistanceCells: 20 * r.Float32(), DayOfYear: 1 + r.IntN(365)}
		scale := 1.0
		if c.DistanceCells > 6 {
			scale = 2
		}
		if c.DayOfYear < 91 {
			scale *= 1.5
		}
		c.Error = float32(scale * float64(c.Sigma) * r.NormFloat64())
		return c
	}
	cases := make([]Case, 60_000)
	for i := range cases {
		cases[i] = draw()
	}
	cfg := DefaultCalibration()
	cfg.Seasons, cfg.MinCases = true, 500
	c, err := Calibrate(cases, cfg)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var read Calibration
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if err := read.Validate(); err != nil {
		t.Fatal(err)
	}
	inside, all := map[bool]float64{}, map[bool]float64{}
	for range 60_000 {
		k := draw()
		far := k.DistanceCells > 6
		all[far]++
		if math.Abs(float64(k.Error)) < 1.645*float64(read.Apply(k.Sigma, k.DistanceCells, k.DayOfYear)) {
			inside[far]++
		}
	}
	for far := range all {
		if share := inside[far] / all[far]; math.Abs(share-0.9) > 0.01 {
			t.Errorf("far %v: intervals cover %.3f, want 0.90", far, share)
		}
	}
}

func TestFewCasesDoNotMakeAFactorOfTheirOwn(t *testing.T) {
	var cases []Case
	for i := range 5000 {
		cases = append(cases, Case{Error: float32(i%100) / 50, Sigma: 1, DistanceCells: 1})
	}
	cases = append(cases, Case{Error: 1000, Sigma: 1, DistanceCells: 100})
	c, err := Calibrate(cases, DefaultCalibration())
	if err != nil {
		t.Fatal(err)
	}
	if near, far := c.Apply(1, 1, 0), c.Apply(1, 100, 0); far > 2*near {
		t.Errorf("one cell far away makes the factor there %v, near it is %v", far, near)
	}
	if got := (Calibration{}).Apply(0.7, 3, 5); got != 0.7 {
		t.Errorf("no calibration turns 0.7 into %v", got)
	}
	if _, err := Calibrate(nil, DefaultCalibration()); err == nil {
		t.Error("a calibration was made of nothing")
	}
}

func TestDINDiffFillsAndKeeps(t *testing.T) {
	shop := newShop(t, 2)
	s := newGaussianSea(t, seaConfig{side: 16, days: 12, length: 3, memory: 0.8, seed: 1})
	m, src := s.lessonsOf(t, 1)
	cfg := DINDiffConfig(tinyConfig(16))
	d, _, err := TrainDINDiff(context.Background(), shop, m, src, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	in := someInputs(t, 16, 3)
	draw := func(in Inputs) [][]float32 {
		out, err := d.Draw(context.Background(), []Inputs{in}, []noise.Stream{noise.New(1)}, 3, 3)
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	want := draw(in)
	dirty := in
	dirty.Values = slices.Clone(in.Values)
	for i, visible := range in.Visible {
		if !visible {
			dirty.Values[i] = 1e6
		}
		for k := range want {
			if visible && want[k][i] != in.Values[i] || !finite(want[k][i]) {
				t.Fatalf("cell %d, visible %v, went in as %v and came out as %v", i, visible, in.Values[i], want[k][i])
			}
		}
	}
	for k, got := range draw(dirty) {
		if !slices.Equal(got, want[k]) {
			t.Error("what is hidden changes a member")
		}
	}
	if slices.Equal(want[0], want[1]) {
		t.Error("two members are alike")
	}
}

func TestThePapersSamplersRunOnAModel(t *testing.T) {
	m := busyModel(t, newShop(t, 2), tinyDesign())
	in := someInputs(t, 16, 3)
	masks := Masks{Visible: in.Visible, Observed: [][]bool{someInputs(t, 16, 1).Visible, someInputs(t, 16, 2).Visible}}
	cfg := DefaultSampler()
	cfg.Members, cfg.Steps, cfg.Jumps, cfg.Length, cfg.Every = 2, 4, 2, 1, 2
	for _, name := range []string{"direct", "proximal", "iterative", "resampling", "recursive"} {
		s, err := SamplerOf(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := m.Sample(context.Background(), in, Sampling{s, masks, cfg}, noise.New(1))
		if err != nil {
			t.Fatal(err)
		}
		for i, visible := range in.Visible {
			if v := d.Members[0][i]; visible && v != in.Values[i] || !finite(v) {
				t.Fatalf("%s: cell %d, visible %v, went in as %v and came out as %v", name, i, visible, in.Values[i], v)
			}
		}
		if name == "direct" {
			p := predictOne(t, m, in)
			for i, v := range d.Members[0] {
				if math.Abs(float64(v-p.Mean[i])) > 1e-5 {
					t.Fatalf("direct projection of all that is visible gives %v at cell %d, a prediction %v", v, i, p.Mean[i])
				}
			}
		}
	}
}

func TestAQueueGivesEachLessonItsItem(t *testing.T) {
	day := 10
	q := Queue(func(context.Context) (prior.Item, error) {
		day++
		return prior.Item{Ref: samples.Ref{Day: day}}, nil
	}, 10)
	var wait sync.WaitGroup
	for n := uint64(40); n >= 10; n-- {
		wait.Go(func() {
			l, err := q.Lesson(context.Background(), n)
			if err != nil || l.Ref.Day != int(n)+1 {
				t.Errorf("lesson %d is item %d, %v", n, l.Ref.Day, err)
			}
		})
	}
	wait.Wait()
	if _, err := q.Lesson(context.Background(), 10); err == nil {
		t.Error("a lesson was handed out twice")
	}
}

func TestBothPresetsAreValidAndMistakesAreNot(t *testing.T) {
	for _, c := range []TrainConfig{DefaultTrainConfig(), PaperConfig(), MembersConfig(DefaultTrainConfig()), DINDiffConfig(PaperConfig()), ReliabilityConfig(DefaultTrainConfig())} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for name, edit := range map[string]func(*TrainConfig){
		"side":     func(c *TrainConfig) { c.Side = 63 },
		"steps":    func(c *TrainConfig) { c.Steps = 0 },
		"share":    func(c *TrainConfig) { c.DropFuture = 1.5 },
		"loss":     func(c *TrainConfig) { c.LossOn = "everything" },
		"size":     func(c *TrainConfig) { c.Design.Size = "huge" },
		"learning": func(c *TrainConfig) { c.LearningRate = 0 },
	} {
		c := DefaultTrainConfig()
		edit(&c)
		if c.Validate() == nil {
			t.Errorf("%s: a mistake was accepted", name)
		}
	}
}
