package learn

import (
	"context"
	"sync"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// blocky splits every patch alike: the left half is context, the right half
// query with probability 0.8.
type blocky struct{}

func (blocky) Name() string { return "blocky" }

func (blocky) Partition(_ context.Context, patches []samples.Patch, s noise.Stream) ([]partition.Parts, error) {
	out := make([]partition.Parts, len(patches))
	for i, p := range patches {
		r := s.Sub(uint64(i)).Rand(0)
		left := r.IntN(2) == 0 // which half is the left one
		out[i] = partition.Parts{Context: make([]bool, len(p.Values)), Query: make([]bool, len(p.Values))}
		for k, v := range p.Values {
			if v == v { // not NaN
				here := (k%p.Window.Width < p.Window.Width/2) == left
				out[i].Context[k], out[i].Query[k] = here, !here && r.Float64() < 0.8
			}
		}
	}
	return out, nil
}

func number(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

func TestReliabilityKnowsMoreThanAMap(t *testing.T) {
	tr := newTrainer(t, 1)
	s := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 40, Length: 3, Memory: 0.8, Seed: 1})
	m, _ := s.examplesOf(t, 1)
	refs := m.Train.Refs(16, 16, 20)
	src, err := Fresh(m.Train, refs, blocky{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := ReliabilityConfig(tinyConfig(16))
	cfg.Steps, cfg.Batch = 60, 8
	r, _, err := tr.TrainReliability(context.Background(), m, src, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	const tests, from = 24, 1 << 30 // examples that were not learned from
	brier, frequency, n := 0.0, make([]float64, 16*16), 0.0
	queries := make([][]bool, tests)
	for i := range queries {
		l, err := src.Example(context.Background(), from+uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		in := impute.Inputs{Height: 16, Width: 16, Sea: s.Series.Sea, Visible: l.Context}
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
	static := 0.0 // score of the best possible map, that of the tests themselves
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
	again, err := impute.LoadReliability(data, tr.runner)
	if err != nil || again.Fingerprint() != r.Fingerprint() {
		t.Errorf("reading it back gives %v", err)
	}
	if _, err := impute.Load(data, tr.runner); err == nil {
		t.Error("a classifier was accepted as an imputer")
	}
}

func TestAQueueGivesEachExampleItsItem(t *testing.T) {
	day := 10
	q := Queue(func(context.Context) (partition.Item, error) {
		day++
		return partition.Item{Ref: samples.Ref{Day: day}}, nil
	}, 10)
	var wait sync.WaitGroup
	for n := uint64(40); n >= 10; n-- {
		wait.Go(func() {
			l, err := q.Example(context.Background(), n)
			if err != nil || l.Ref.Day != int(n)+1 {
				t.Errorf("example %d is item %d, %v", n, l.Ref.Day, err)
			}
		})
	}
	wait.Wait()
	if _, err := q.Example(context.Background(), 10); err == nil {
		t.Error("an example was handed out twice")
	}
}

func TestBothPresetsAreValidAndMistakesAreNot(t *testing.T) {
	for _, c := range []Config{DefaultConfig(), DefaultConfig().AsPaper(), MembersConfig(DefaultConfig()), ReliabilityConfig(DefaultConfig())} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for name, edit := range map[string]func(*Config){
		"side":     func(c *Config) { c.Side = 63 },
		"steps":    func(c *Config) { c.Steps = 0 },
		"share":    func(c *Config) { c.DropFuture = 1.5 },
		"loss":     func(c *Config) { c.LossOn = "everything" },
		"size":     func(c *Config) { c.Design.Size = "huge" },
		"learning": func(c *Config) { c.LearningRate = 0 },
	} {
		c := DefaultConfig()
		edit(&c)
		if c.Validate() == nil {
			t.Errorf("%s: a mistake was accepted", name)
		}
	}
}
