package jobs

import (
	"context"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// speedLine is the line of a timed training in the results.
type speedLine struct {
	Job             string  `json:"job"`
	Size            string  `json:"size"`
	Batch           int     `json:"batch"`
	Workers         int     `json:"workers"`
	PrepareSeconds  float64 `json:"prepare_seconds"`  // time to make all analyses beforehand
	BarePerSecond   float64 `json:"bare_per_second"`  // steps whose batch is on the device
	TrainPerSecond  float64 `json:"train_per_second"` // steps with partitions, loader and transfer
	CompiledSeconds float64 `json:"compiled_seconds"` // time until the first steps were done
}

// examples returns the training material of a job's network.
func (b *bench) examples(j job, s *series) (learn.Material, samples.HeldOut, learn.Repetition, error) {
	data, held, err := s.Split(j.settings.Split)
	if err != nil {
		return learn.Material{}, held, learn.Repetition{}, err
	}
	quick := impute.QuickOI(classical.DefaultOI(data.Grid()))
	m := learn.Material{Train: data, Analyser: impute.OI{Days: data, Settings: quick}, Analyses: s.keeper(j.settings.Split, b.cacheMB)}
	c := j.settings.Train
	refs := data.Refs(c.Side, max(c.Side/2, 1), partition.MinObservedCells)
	r, err := learn.Repeated(data, refs, partition.Empirical(data), max(j.settings.PerPatch, 1), c.Seed)
	return m, held, r, err
}

// speed times training against its bare step.
func (b *bench) speed(ctx context.Context, j job, s *series) error {
	m, _, source, err := b.examples(j, s)
	if err != nil {
		return err
	}
	cfg := j.settings.Train
	cfg.Workers, cfg.CacheMB, cfg.Steps = b.workers, b.cacheMB, j.SpeedSteps
	line := speedLine{Job: j.Name, Size: cfg.Design.Size, Batch: cfg.Batch, Workers: cfg.Workers}
	began := time.Now()
	if cfg.Design.Extras.Analysis {
		if err := m.Prepare(ctx, source, []impute.Mode{impute.Single, impute.Past, impute.Delayed}, b.workers); err != nil {
			return err
		}
	}
	line.PrepareSeconds = time.Since(began).Seconds()
	began = time.Now()
	bare, err := b.runners.Trainer().TimeStep(ctx, m, source, cfg, j.SpeedSteps)
	if err != nil {
		return err
	}
	line.BarePerSecond, line.CompiledSeconds = 1/bare.Seconds(), time.Since(began).Seconds()-bare.Seconds()*float64(j.SpeedSteps)
	warm := cfg.Steps / 5 // until the scenes of most patches are cut out
	_, _, err = b.runners.Trainer().Train(ctx, m, source, cfg, train.Hooks{Progress: func(p train.Progress) {
		if p.Step == warm {
			began = time.Now()
		}
	}})
	if err != nil {
		return err
	}
	line.TrainPerSecond = float64(cfg.Steps-warm) / time.Since(began).Seconds()
	b.log.Info("speed", "line", line)
	return b.append(line)
}
