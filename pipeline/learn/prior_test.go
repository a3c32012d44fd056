package learn

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
	"lacuna/pipeline/train"
)

// shortPrior is a short training of a tiny network.
func shortPrior(steps int) PriorConfig {
	cfg := DefaultPrior()
	cfg.Model.Size = nn.Tiny
	cfg.Side, cfg.Stride, cfg.Batch, cfg.EvaluateEvery, cfg.CheckpointEvery = 16, 16, 4, 0, 0
	cfg.Step.Steps, cfg.Step.WarmupSteps, cfg.Step.EMADecay, cfg.Step.LearningRate = steps, 10, 0.9, 3e-3
	cfg.Sampling = priorSampling()
	return cfg
}

func priorSampling() prior.SampleConfig {
	return prior.SampleConfig{Steps: 4, Spacing: prior.LogSNR, Order: prior.SecondOrder, Batch: 4}
}

// latentsOf returns α·K·e + σ·ε of a mask at a level.
func latentsOf(observed []bool, l prior.Level, stream noise.Stream, index uint64) []float32 {
	cells := len(observed)
	x := make([]float32, prior.Classes*cells)
	stream.Normals(x, index)
	for i := range x {
		x[i] *= float32(l.Sigma)
	}
	for i, o := range observed {
		class := 0
		if o {
			class = 1
		}
		x[class*cells+i] += float32(prior.Classes * l.Alpha)
	}
	return x
}

func TestInterruptedPriorGoesOnAsIfItHadNotBeen(t *testing.T) {
	e := enginetest.Open(t)
	_, data, held := samplestest.Archive(t, 30, 16)
	cfg := shortPrior(12)
	cfg.EvaluateEvery, cfg.EvaluateMasks, cfg.Patience = 4, 4, 0
	cfg.Model.Yesterday = true
	whole, want, err := TrainPrior(t.Context(), e, data, held, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if want.Drawn.Masks == 0 || want.Distance != want.Drawn.Distance(want.HeldOut) || want.WaitSeconds <= 0 || want.EvaluateSeconds <= 0 {
		t.Errorf("report is %+v", want)
	}
	// Once between two evaluations, and once after the last: the masks of the
	// report are then known to the interrupted process alone.
	for _, at := range []int{7, 12} {
		ctx, cancel := context.WithCancel(t.Context())
		hooks := train.Hooks{Checkpoint: filepath.Join(t.TempDir(), "prior.ckpt"), Progress: func(p train.Progress) {
			if p.Step == at {
				cancel()
			}
		}}
		if m, _, err := TrainPrior(ctx, e, data, held, cfg, hooks); err == nil && at == cfg.Step.Steps {
			m.Close()
		} else if !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled training returns %v", err)
		}
		cancel()
		if step, err := train.CheckpointStep(hooks.Checkpoint); err != nil || step != at {
			t.Fatalf("checkpoint of step %d, want %d; %v", step, at, err)
		}
		hooks.Progress = nil
		again := cfg
		again.Workers, again.CheckpointEvery = 3, 5 // the weights must not depend on them
		rest, report, err := TrainPrior(t.Context(), e, data, held, again, hooks)
		if err != nil {
			t.Fatal(err)
		}
		rest.Close()
		if whole.Fingerprint() != rest.Fingerprint() {
			t.Errorf("a training that was interrupted at step %d differs from one that was not; kept step %d", at, report.KeptStep)
		}
		if report.KeptStep != want.KeptStep || report.Distance != want.Distance || report.Drawn != want.Drawn || report.HeldOut != want.HeldOut {
			t.Errorf("interrupted at step %d it reports %+v, want %+v", at, report, want)
		}
	}
}

func TestPriorBeginsWithTheWeightsItIsGiven(t *testing.T) {
	e := enginetest.Open(t)
	_, data, held := samplestest.Archive(t, 30, 16)
	first, _, err := TrainPrior(t.Context(), e, data, held, shortPrior(12), train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	cfg := shortPrior(1)
	cfg.Step.LearningRate, cfg.Step.WarmupSteps, cfg.Seed = 1e-7, 0, 2
	second, _, err := TrainPrior(t.Context(), e, data, held, cfg, train.Hooks{From: first.Weights()})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	moved, before := 0.0, first.Weights()
	for i, w := range second.Weights() {
		moved = max(moved, math.Abs(float64(w-before[i])))
	}
	if moved == 0 || moved > 1e-5 {
		t.Errorf("one small step moved a weight by %g, want a little from where it was told to begin", moved)
	}
	if _, _, err := TrainPrior(t.Context(), e, data, held, cfg, train.Hooks{From: make([]float32, 3)}); err == nil {
		t.Error("began with three weights")
	}
}

func TestPriorLossThatIsNotFiniteKeepsTheLastGoodState(t *testing.T) {
	e := enginetest.Open(t)
	_, data, held := samplestest.Archive(t, 30, 16)
	cfg := shortPrior(40)
	hooks := train.Hooks{Checkpoint: filepath.Join(t.TempDir(), "prior.ckpt")}
	tr, err := newPriorTraining(e, data, held, cfg, hooks)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.model.Close()
	tr.examples.schedule = &spoiled{good: 5 * tr.cfg.Batch}
	err = tr.run(t.Context())
	if !errors.Is(err, train.ErrNotFinite) {
		t.Fatalf("error is %v, want one that is ErrNotFinite", err)
	}
	kept, err := train.CheckpointStep(hooks.Checkpoint)
	if err != nil || kept < 1 || kept >= 40 {
		t.Fatalf("checkpoint is of step %d, %v, want one before the bad batch", kept, err)
	}
	m, report, err := TrainPrior(t.Context(), e, data, held, cfg, hooks)
	if err != nil {
		t.Fatalf("going on from the state that was kept: %v", err)
	}
	defer m.Close()
	if slices.ContainsFunc(m.Weights(), func(w float32) bool { return math.IsNaN(float64(w)) }) || report.Steps != 40 {
		t.Errorf("going on gives NaN, or ends after %d steps", report.Steps)
	}
}

// spoiled is a schedule whose levels are NaN from the given number on.
type spoiled struct {
	prior.Cosine
	good int
	used atomic.Int64
}

func (s *spoiled) At(t float64) prior.Level {
	if int(s.used.Add(1)) > s.good {
		return prior.Level{Alpha: math.NaN(), Sigma: math.NaN()}
	}
	return s.Cosine.At(t)
}

func TestPriorStopsWhereItDoesNotGetBetter(t *testing.T) {
	e := enginetest.Open(t)
	_, data, held := samplestest.Archive(t, 30, 16)
	cfg := shortPrior(200)
	cfg.Step.LearningRate = 1e-9 // it learns nothing
	cfg.EvaluateEvery, cfg.EvaluateMasks, cfg.Patience = 3, 4, 2
	m, report, err := TrainPrior(t.Context(), e, data, held, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if report.Steps != 9 || report.KeptStep != 3 {
		t.Errorf("%d steps, those of step %d kept, want 9 and 3 (%s)", report.Steps, report.KeptStep, report.Stopped)
	}
}

// bernoulli is an archive of independent cells, all sea.
func bernoulli(t testing.TB, p float64, side int) (samples.Train, samples.HeldOut) {
	t.Helper()
	grid := field.Grid{Lat: make([]float64, side), Lon: make([]float64, side)}
	for i := range side {
		grid.Lat[i], grid.Lon[i] = 40+0.05*float64(i), 10+0.05*float64(i)
	}
	sea := make(field.Mask, side*side)
	for i := range sea {
		sea[i] = true
	}
	fields := make([]field.Field, 600)
	for d := range fields {
		r := noise.New(8, "bernoulli").Rand(uint64(d))
		values := make([]float32, side*side)
		for c := range values {
			values[c] = field.NaN()
			if r.Float64() < p {
				values[c] = float32(r.NormFloat64())
			}
		}
		fields[d] = field.Field{Grid: grid, Time: time.Date(2020, 1, 1+d, 12, 0, 0, 0, time.UTC), Values: values}
	}
	series, err := samples.New(fields, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	data, held, err := series.Split(samples.SplitConfig{HeldOut: 0.1, GapDays: 1, Blocks: 1})
	if err != nil {
		t.Fatal(err)
	}
	return data, held
}

func TestDataThatSayNothingAboutGapsAreRefused(t *testing.T) {
	e := enginetest.Open(t)
	series, _, _ := samplestest.Archive(t, 30, 16)
	value := func(change func(day, cell int) float32) samples.Series {
		s := series
		s.Days = slices.Clone(series.Days)
		for d := range s.Days {
			values := make([]float32, len(s.Days[d].Values))
			for c := range values {
				values[c] = field.NaN()
				if s.Sea[c] {
					values[c] = change(d, c)
				}
			}
			s.Days[d].Values = values
		}
		return s
	}
	full := func(d, c int) float32 { return float32(d + c%3) }
	for _, tt := range []struct {
		name   string
		series samples.Series
		edit   func(*PriorConfig)
		want   string
	}{
		{"all full", value(full), nil, "observed everywhere"},
		{"all empty", value(func(d, c int) float32 {
			if c > 1 { // one cell, or the series could not be scaled
				return field.NaN()
			}
			return full(d, c)
		}), nil, "smaller windows"},
		{"full or empty", value(func(d, c int) float32 {
			if d%2 == 0 {
				return field.NaN()
			}
			return full(d, c)
		}), func(c *PriorConfig) { c.MinObserved = 0 }, "full or empty"},
		{"a single sample", value(func(d, c int) float32 {
			if d != 3 && c > 1 {
				return field.NaN()
			}
			return full(d, c)
		}), nil, "2021-01-04"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, held, err := tt.series.Split(samples.SplitConfig{HeldOut: 0.3, GapDays: 2, Blocks: 1})
			if err != nil {
				t.Fatal(err)
			}
			cfg := shortPrior(5)
			if tt.edit != nil {
				tt.edit(&cfg)
			}
			_, _, err = TrainPrior(t.Context(), e, data, held, cfg, train.Hooks{})
			if !errors.Is(err, ErrNothingToLearn) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestMasksOfSeveralSeriesAreLearnedTogether(t *testing.T) {
	e := enginetest.Open(t)
	series, one, _ := samplestest.Archive(t, 30, 16)
	data, held, err := samples.Split([]samples.Series{series, series}, samples.SplitConfig{HeldOut: 0.3, GapDays: 2, Blocks: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := shortPrior(2)
	cfg.Model.Frequency = false
	m, report, err := TrainPrior(t.Context(), e, data, held, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	if alone := len(one.Refs(16, 16, partition.MinObservedCells)); report.Masks <= alone {
		t.Errorf("learned from %d windows, one series alone has %d", report.Masks, alone)
	}
	cfg.Model.Frequency = true
	if _, _, err := TrainPrior(t.Context(), e, data, held, cfg, train.Hooks{}); err == nil || !strings.Contains(err.Error(), "one grid") {
		t.Errorf("error is %v, want one that says that a map of frequencies is of one grid", err)
	}
}

func TestPriorConfigsSayWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*PriorConfig)
		want string // part of the message; empty: valid
	}{
		{name: "defaults", edit: func(*PriorConfig) {}},
		{"no such size", func(c *PriorConfig) { c.Model.Size = "huge" }, "size is"},
		{"no such schedule", func(c *PriorConfig) { c.Model.Schedule = "linear" }, "schedule is"},
		{"larger than memory", func(c *PriorConfig) { c.Side, c.Batch = 8192, 64 }, "larger than memory allows"},
		{"no steps", func(c *PriorConfig) { c.Step.Steps = 0 }, "steps"},
		{"no spacing", func(c *PriorConfig) { c.Sampling.Spacing = "" }, "spacing is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultPrior()
			tt.edit(&cfg)
			err := cfg.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Validate() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}
