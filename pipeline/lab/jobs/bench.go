package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"lacuna/internal/figure"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/lab/tables"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
)

// bench holds the state that jobs share.
type bench struct {
	options
	log     *slog.Logger
	engine  *engine.Engine
	runners *tables.Runners
	series  map[string]*series
}

// series is data with its splits and analyses.
type series struct {
	samples.Series
	sea      *evaluate.GaussianSea // nil: the data are no Gaussian sea
	analyses map[samples.SplitConfig]*learn.Analyses
}

func (b *bench) runAll(ctx context.Context, plan []job) error {
	for i, j := range plan {
		began := time.Now()
		s, err := b.open(j)
		if err == nil {
			err = b.runJob(ctx, j, s)
		}
		if err != nil {
			return fmt.Errorf("job %s: %w", j.Name, err)
		}
		b.log.Info("job done", "name", j.Name, "number", i+1, "of", len(plan), "seconds", time.Since(began).Seconds())
	}
	return nil
}

func (b *bench) runJob(ctx context.Context, j job, s *series) error {
	switch {
	case j.SpeedSteps > 0:
		return b.speed(ctx, j, s)
	case j.Classify:
		return b.classify(ctx, j, s)
	}
	t, err := b.job(j, s)
	if err != nil {
		return err
	}
	var failed error
	t.Done = func(r tables.Record) { failed = errors.Join(failed, b.append(r)) }
	told := &teller{log: b.log, job: j.Name}
	_, err = tables.Run(ctx, t, told.tell)
	return errors.Join(err, failed)
}

// tellEvery is how often a phase says how far it is.
const tellEvery = 30 * time.Second

// A teller logs the phases of a job, and how far one that takes long has come.
type teller struct {
	log         *slog.Logger
	job         string
	last        string // row, seed and phase
	began, told time.Time
	first       int // step with which the phase began here
}

func (t *teller) tell(p tables.Progress) {
	now := time.Now()
	args := []any{"job", t.job, "row", p.Name, "seed", p.Seed, "phase", p.Phase}
	if phase := fmt.Sprint(p.Name, p.Seed, p.Phase); phase != t.last {
		t.last, t.began, t.told, t.first = phase, now, now, p.Step
		t.log.Info("doing", append(args, "rows_done", p.Done, "rows", p.Rows)...)
		return
	}
	if done := p.Step - t.first; done > 0 && now.Sub(t.told) >= tellEvery {
		t.told = now
		left := now.Sub(t.began) / time.Duration(done) * time.Duration(p.Steps-p.Step)
		t.log.Info("under way", append(args, "step", p.Step, "of", p.Steps, "left", figure.Duration(left))...)
	}
}

// job returns the job of package tables.
func (b *bench) job(j job, s *series) (tables.Job, error) {
	j.settings.Train.Workers, j.settings.Members.Workers = b.workers, b.workers
	j.settings.Train.CacheMB, j.settings.Members.CacheMB = b.cacheMB, b.cacheMB
	t := tables.Job{
		Table: j.table, Settings: j.settings, Series: s.Series, Gaussian: s.sea, Dataset: j.dataset(), Label: "value",
		Folder: filepath.Join(b.output, j.Name), Kept: b.work, Plain: !j.Pictures,
		Engine: func() (*engine.Engine, error) { return b.engine, nil }, Runners: b.runners, Analyses: s.keeper(j.settings.Split, b.cacheMB),
	}
	for _, path := range j.Beside {
		one, err := b.open(job{Data: path})
		if err != nil {
			return t, err
		}
		t.Beside = append(t.Beside, one.Series)
		t.Analyses = learn.NewAnalyses(b.cacheMB) // the days beside have other numbers in every job
	}
	if j.Prior == "" {
		return t, nil
	}
	var err error
	t.Prior, err = os.ReadFile(j.Prior)
	return t, err
}

func (j job) dataset() string { return cmp.Or(filepath.Base(j.Data), "gaussian") }

// keeper returns the cache of the analyses of a split.
func (s *series) keeper(split samples.SplitConfig, budgetMB int) *learn.Analyses {
	if s.analyses[split] == nil {
		s.analyses[split] = learn.NewAnalyses(budgetMB)
	}
	return s.analyses[split]
}

// open reads the data of a job, or makes the Gaussian sea.
func (b *bench) open(j job) (*series, error) {
	key := fmt.Sprint(j.Data, j.Gaussian, j.Side)
	if b.series[key] != nil {
		return b.series[key], nil
	}
	s := &series{analyses: map[samples.SplitConfig]*learn.Analyses{}}
	b.series[key] = s
	var err error
	if j.Data == "" {
		s.sea = evaluate.NewGaussianSea(j.settings.Train.Side)
		s.Series, err = s.sea.Series(j.Gaussian)
		return s, err
	}
	f, err := os.Open(j.Data)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read-only: a failed close loses nothing
	if s.Series, err = pack.Read(f); err != nil {
		return nil, fmt.Errorf("read %s: %w", j.Data, err)
	}
	return s, nil
}

// append adds a line to the results.
func (b *bench) append(line any) error {
	f, err := os.OpenFile(filepath.Join(b.output, resultsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := errors.Join(json.NewEncoder(f).Encode(line), f.Close()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if r, ok := line.(tables.Record); ok && r.Verdict.Summary.MSE != nil {
		b.log.Info("result", "table", r.Table, "mode", r.Mode, "row", r.Verdict.Method, "seed", r.Verdict.Seed,
			"mse", *r.Verdict.Summary.MSE, "train_s", r.TrainSeconds, "fill_s", r.Verdict.Seconds)
	}
	return nil
}

const resultsFile = "results.jsonl"
