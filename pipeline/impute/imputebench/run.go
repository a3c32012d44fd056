package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// runAll runs the experiments in order. The deadline is no error; the networks
// that were ready by then are.
func (b *bench) runAll(ctx context.Context, list []experiment) error {
	for _, e := range list {
		for _, seed := range e.Seeds {
			e.Train.Seed, e.Train.Workers, e.Train.CacheMB = seed, b.workers, b.cacheMB
			b.perPatch = e.PerPatch
			err := b.runOne(ctx, e, seed)
			if errors.Is(err, context.DeadlineExceeded) {
				b.log.Warn("deadline met; the same command goes on", "experiment", e.Name, "seed", seed)
				return nil
			}
			if err != nil {
				return fmt.Errorf("experiment %s: %w", e.Name, err)
			}
		}
	}
	return nil
}

func (b *bench) runOne(ctx context.Context, e experiment, seed uint64) error {
	switch e.Method {
	case "imputer":
		return b.runImputer(ctx, e, seed)
	case "missdiff":
		e.Partition, e.Train.LossOn, e.Train.Clean = "everything", impute.OnObserved, 0
		return b.runImputer(ctx, e, seed)
	case "dindiff":
		return b.runDINDiff(ctx, e, seed)
	case "oi":
		return b.runOI(ctx, e)
	case "kriging":
		return b.runKriging(ctx, e)
	}
	return fmt.Errorf("method is %q, must be imputer, missdiff, dindiff, oi or kriging", e.Method)
}

// path returns where a file of a run goes.
func (b *bench) path(dir string, e experiment, seed uint64, suffix string) string {
	return filepath.Join(dir, fmt.Sprintf("%s-s%d%s", e.Name, seed, suffix))
}

// A clock times the steps of a run, without the first ones, which compile.
type clock struct {
	began, from time.Time
	first, last int
}

// warmSteps is how many steps pass before the clock runs.
const warmSteps = 20

func hooksOf[N any](b *bench, name, checkpoint string, c *clock) impute.Hooks[N] {
	const told = 500 // steps between lines
	sum, n := 0.0, 0
	c.began = time.Now()
	return impute.Hooks[N]{Checkpoint: checkpoint, Progress: func(p impute.Progress) {
		switch {
		case c.first == 0:
			c.first = p.Step + warmSteps
		case p.Step == c.first:
			c.from = time.Now()
		}
		c.last = p.Step
		sum, n = sum+p.Loss, n+1
		if p.Step%told == 0 {
			b.log.Info("training", "name", name, "step", p.Step, "loss", sum/float64(n), "seconds", time.Since(c.began).Seconds())
			sum, n = 0, 0
		}
	}}
}

func (c *clock) training(weights int, r impute.Report, file string) *training {
	t := &training{Weights: weights, Report: r, Seconds: time.Since(c.began).Seconds(), File: filepath.Base(file)}
	if c.last > c.first && !c.from.IsZero() {
		t.StepsPerSecond = float64(c.last-c.first) / time.Since(c.from).Seconds()
	}
	return t
}

// runImputer trains an imputer and scores whatever is asked of it.
func (b *bench) runImputer(ctx context.Context, e experiment, seed uint64) error {
	checkpoint := b.path(b.work, e, seed, ".ckpt")
	first, err := impute.CheckpointStep(checkpoint)
	if err != nil {
		return err
	}
	src, done, err := b.source(ctx, e.Partition, e.Train, uint64(first)*uint64(e.Train.Batch))
	if err != nil {
		return err
	}
	var c clock
	model, report, err := impute.Train(ctx, b.shop, b.material, src, e.Train, hooksOf[*impute.Model](b, e.Name, checkpoint, &c))
	done()
	if err != nil {
		return err
	}
	defer model.Close()
	file := b.path(b.output, e, seed, ".onnx")
	t := c.training(model.Weights(), report, file)
	data, err := model.Save(e.Train.Side)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return err
	}
	base := result{Name: e.Name, Seed: seed, Method: e.Method, Partition: e.Partition, Training: t}
	if e.Method == "missdiff" {
		return b.scoreMissDiff(ctx, model, e, base)
	}
	for _, mode := range e.Modes {
		base.Mode = mode
		if err := b.scoreOneStep(ctx, model, base); err != nil {
			return err
		}
	}
	if err := b.runSamplers(ctx, model, e, base); err != nil {
		return err
	}
	if e.Classify {
		if err := b.runClassifier(ctx, e, seed); err != nil {
			return err
		}
	}
	if e.Members == nil {
		return nil
	}
	return b.runMembers(ctx, model, e, seed)
}

// inputs returns what is known of the first n overlays in a mode.
func (b *bench) inputs(mode impute.Mode, n int) ([]impute.Inputs, error) {
	if n == 0 || n > len(b.overlays) {
		n = len(b.overlays)
	}
	in := make([]impute.Inputs, n)
	var group errgroup.Group
	group.SetLimit(b.workers)
	for i := range in {
		group.Go(func() error {
			var err error
			in[i], err = b.around.Analysed(b.overlays[i].Ref, b.overlays[i].Visible, mode)
			return err
		})
	}
	return in, group.Wait()
}

func (b *bench) scoreOneStep(ctx context.Context, model *impute.Model, r result) error {
	in, err := b.inputs(r.Mode, 0)
	if err != nil {
		return err
	}
	began := time.Now()
	said, err := model.Predict(ctx, in)
	if err != nil {
		return err
	}
	r.Variant, r.Calls, r.Seconds, r.Overlays = "one-step", 1, time.Since(began).Seconds(), len(in)
	answers := make([]answer, len(said))
	for i, p := range said {
		answers[i] = answer{mean: p.Mean}
		if model.Design().Variance {
			answers[i].sigma = p.Sigma
		}
	}
	if r.Summary, err = b.score(answers); err != nil {
		return err
	}
	if err := b.append(r); err != nil {
		return err
	}
	if !b.fit || !model.Design().Variance {
		return nil
	}
	if answers, err = b.calibrated(answers); err != nil {
		return err
	}
	r.Variant = "one-step calibrated"
	if r.Summary, err = b.score(answers); err != nil {
		return err
	}
	return b.append(r)
}

// runOI scores optimal interpolation with the information of each mode.
func (b *bench) runOI(ctx context.Context, e experiment) error {
	oi := b.oi
	oi.Workers = 1
	for _, mode := range e.Modes {
		past, future := 0, 0
		switch mode {
		case impute.Past:
			past = pastDays
		case impute.Delayed:
			past, future = pastDays, futureDays
		}
		began := time.Now()
		answers := make([]answer, len(b.overlays))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(b.workers)
		for i, o := range b.overlays {
			group.Go(func() (err error) {
				answers[i], err = b.interpolate(ctx, oi, o, past, future)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		r := result{Name: e.Name, Method: e.Method, Mode: mode, Variant: "oi", Seconds: time.Since(began).Seconds(), Overlays: len(answers)}
		var err error
		if r.Summary, err = b.score(answers); err != nil {
			return err
		}
		if err := b.append(r); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) interpolate(ctx context.Context, oi classical.OI, o samples.Overlay, past, future int) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	series, target := b.held.Around(o.Ref, o.Visible, past, future)
	est, err := oi.Fill(series, target, nil)
	return answer{mean: est.Mean, sigma: est.Sigma}, err
}
