package learn

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// seaAnalyser analyses a sea and counts how often it is asked.
type seaAnalyser struct {
	impute.OI
	asked *atomic.Int64
}

func (a seaAnalyser) Analyse(r samples.Ref, visible []bool, mode impute.Mode) (value, sigma []float32, err error) {
	a.asked.Add(1)
	return a.OI.Analyse(r, visible, mode)
}

func analysisConfig(side int) Config {
	cfg := tinyConfig(side)
	cfg.Design.Extras, cfg.Design.Departure, cfg.Clean = impute.Extras{Last: true, Analysis: true}, true, 1
	return cfg
}

// analysedSea returns material with an analyser, and the analyser.
func analysedSea(t *testing.T) (Material, seaAnalyser) {
	t.Helper()
	sea := newGaussianSea(t, imputetest.SeaConfig{Side: 16, Days: 6, Length: 3, Memory: 0.9, Seed: 3})
	m, _ := sea.examplesOf(t, 1)
	a := seaAnalyser{impute.OI{Days: m.Train, Settings: impute.QuickOI(classical.DefaultOI(m.Train.Grid()))}, new(atomic.Int64)}
	m.Analyser = a
	return m, a
}

func TestAnUntrainedNetworkOnAnAnalysisIsTheAnalysis(t *testing.T) {
	m, _ := analysedSea(t)
	model, err := impute.NewModel(imputetest.NewRunner(t, 1), analysisConfig(16).Design, analysisConfig(16), freshWeights(t, analysisConfig(16).Design))
	if err != nil {
		t.Fatal(err)
	}
	r := samples.Ref{Day: 3, Window: samples.Square(0, 0, 16)}
	in, err := m.surroundings().Analysed(r, m.Train.Cut(r).Observed(), impute.Past)
	if err != nil {
		t.Fatal(err)
	}
	got := imputetest.PredictOne(t, model, in)
	for i, want := range in.Analysis {
		if in.Sea[i] && math.Abs(float64(got.Mean[i]-want)) > 1e-5 {
			t.Fatalf("cell %d is %g, the analysis says %g", i, got.Mean[i], want)
		}
	}
}

func TestANetworkOfTheSpreadLeavesTheMeanToTheAnalysis(t *testing.T) {
	m, _ := analysedSea(t)
	src, err := Fresh(m.Train, m.Train.Refs(16, 16, 20), blocky{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	tr, cfg := newTrainer(t, 1), analysisConfig(16)
	cfg.SpreadOnly = true
	from := freshWeights(t, cfg.Design)
	from[len(from)-2] = 0.1 // the bias of the mean: a version that departs from its analysis
	r := samples.Ref{Day: 3, Window: samples.Square(0, 0, 16)}
	in, err := m.surroundings().Analysed(r, m.Train.Cut(r).Observed(), impute.Past)
	if err != nil {
		t.Fatal(err)
	}
	parent, err := impute.NewModel(tr.runner, cfg.Design, cfg, from)
	if err != nil {
		t.Fatal(err)
	}
	before := imputetest.PredictOne(t, parent, in)
	model, _, err := tr.Train(context.Background(), m, src, cfg, train.Hooks{From: from})
	if err != nil {
		t.Fatal(err)
	}
	after := imputetest.PredictOne(t, model, in)
	departed, learned := false, false
	for i, want := range in.Analysis {
		if !in.Sea[i] || in.Visible[i] {
			continue
		}
		if after.Mean[i] != want {
			t.Fatalf("cell %d is %g, the analysis says %g", i, after.Mean[i], want)
		}
		departed, learned = departed || before.Mean[i] != want, learned || after.Sigma[i] != before.Sigma[i]
	}
	if !departed || !learned {
		t.Errorf("the parent departs: %v, and the spread was learned: %v", departed, learned)
	}
	cfg.Design.Variance = false
	if cfg.Validate() == nil {
		t.Error("a network without a variance may learn nothing but its spread")
	}
}

// freshWeights are those that training begins with.
func freshWeights(t *testing.T, d impute.Design) []float32 {
	t.Helper()
	network, err := nn.New(d.Network())
	if err != nil {
		t.Fatal(err)
	}
	return network.Layout().Init(7)
}

func TestTheAnalysisOfAnExampleSeesItsContextOnly(t *testing.T) {
	m, a := analysedSea(t)
	r := samples.Ref{Day: 3, Window: samples.Square(0, 0, 16)}
	observed := m.Train.Cut(r).Observed()
	context := slices.Clone(observed)
	for i := range context[:len(context)/2] {
		context[i] = false
	}
	value, _, err := a.Analyse(r, context, impute.Single)
	if err != nil {
		t.Fatal(err)
	}
	whole, _, err := a.Analyse(r, observed, impute.Single)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for i, v := range m.Train.Cut(r).Values {
		switch {
		case context[i] && value[i] != v:
			t.Fatalf("cell %d of the context is analysed as %g, it is %g", i, value[i], v)
		case observed[i] && !context[i] && value[i] == v:
			same++
		case observed[i] && whole[i] != v:
			t.Fatalf("visible cell %d is analysed as %g, it is %g", i, whole[i], v)
		}
	}
	if same > 0 {
		t.Errorf("%d hidden cells come out exactly as they are: they leaked into the analysis", same)
	}
}

func TestRepeatedExamplesAreAnalysedOnce(t *testing.T) {
	m, a := analysedSea(t)
	refs := m.Train.Refs(16, 16, 20)
	const perPatch = 2
	src, err := Repeated(m.Train, refs, blocky{}, perPatch, 5)
	if err != nil {
		t.Fatal(err)
	}
	cfg := analysisConfig(16)
	cfg.DropTemporal, cfg.DropFuture, cfg.CacheMB = 0, 1, 64 // one mode
	l := newExamples(m, src, cfg)
	b := train.NewBatch(cfg.batchDims(), scratchWindows*16*16)
	contexts := map[uint64][]bool{}
	for n := range uint64(200) {
		got, err := l.augment(context.Background(), b, n)
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := contexts[got.Key]; ok && !slices.Equal(before, got.Context) {
			t.Fatalf("example %d has the key of another context", n)
		}
		contexts[got.Key] = got.Context
	}
	if got, most := int(a.asked.Load()), len(refs)*perPatch; got != len(contexts) || got > most {
		t.Errorf("%d analyses for %d contexts of %d patches", got, len(contexts), len(refs))
	}
}

func TestAnalysesServeEverySeedAndCanBeMadeBeforehand(t *testing.T) {
	m, a := analysedSea(t)
	m.Analyses = NewAnalyses(64)
	refs := m.Train.Refs(16, 16, 20)
	source := func(seed uint64) Repetition {
		r, err := Repeated(m.Train, refs, blocky{}, 2, seed)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := m.Prepare(t.Context(), source(1), []impute.Mode{impute.Past}, 2); err != nil {
		t.Fatal(err)
	}
	before := a.asked.Load()
	if int(before) != 2*len(refs) {
		t.Errorf("%d analyses were made for %d patches with two partitions each", before, len(refs))
	}
	cfg := analysisConfig(16)
	cfg.DropTemporal, cfg.DropFuture = 0, 1 // one mode
	b := train.NewBatch(cfg.batchDims(), scratchWindows*16*16)
	var first [2]Example
	for seed := range uint64(2) {
		l := newExamples(m, source(seed), cfg)
		for n := range uint64(50) {
			got, err := l.augment(t.Context(), b, n)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				first[seed] = got.Example
			}
		}
	}
	if a.asked.Load() != before {
		t.Errorf("%d analyses were made again", a.asked.Load()-before)
	}
	if first[0].Key == first[1].Key {
		t.Error("two seeds begin with the same example")
	}
}
