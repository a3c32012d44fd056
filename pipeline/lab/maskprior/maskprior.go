// Package maskprior trains a mask prior on a packed series, draws from it,
// compares its draws with held-out masks and prints one JSON object. It needs
// nothing but the engine's library:
//
//	lacuna lab prior -data pacific.pack -other region.pack -engine xla:cuda -size small -batch 64 -steps 4000 -o prior.onnx
//
// The measures are a list: -parts rho,until,pool studies guidance and its cost
// to a training, with a prior that was trained before.
package maskprior

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"lacuna/internal/durable"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
	"lacuna/pipeline/train"
)

// options are the settings of one measurement.
type options struct {
	engine  string
	cfg     engine.Config
	data    string
	other   string
	output  string
	prior   string // file of a trained prior; empty: train one
	train   learn.PriorConfig
	guide   prior.GuideConfig
	masks   int     // number of masks to draw of each kind
	least   float64 // smallest P(query) that must be detected
	parts   string  // names of the measurements
	patches int     // patches of a study of guidance
	draws   int     // draws of each patch
	partial string  // file that gets the report after each part

	pool      partition.PoolConfig
	poolSteps int // steps of the training that is timed beside a pool
}

// Run measures a prior.
func Run(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(errs, nil))
	b := &bench{options: o, log: log}
	if b.train, b.held, err = load(o.data); err != nil {
		return err
	}
	e, err := engine.Open(o.engine, o.cfg, log)
	if err != nil {
		return err
	}
	defer e.Finalize()
	b.engine = e
	r, err := b.measure(ctx)
	if err != nil {
		return err
	}
	text, err := r.text()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func parse(args []string, errs io.Writer) (options, error) {
	o := options{train: learn.DefaultPrior(), guide: prior.DefaultGuidance(), pool: partition.DefaultPool()}
	f := flag.NewFlagSet("prior", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.engine, "engine", engine.Auto, "auto, ort, ort:cuda or xla:cuda")
	o.cfg.AddFlags(f)
	f.StringVar(&o.data, "data", "", "packed series to learn from (required)")
	f.StringVar(&o.other, "other", "", "packed series of another region, whose masks must cost more")
	f.StringVar(&o.output, "o", "", "ONNX file to write")
	f.StringVar(&o.prior, "prior", "", "ONNX file of a prior trained before; nothing is trained then")
	f.StringVar(&o.partial, "partial", "", "file that gets the report as far as it is known, after each part")
	f.IntVar(&o.masks, "masks", 1000, "masks to draw, unconditional and guided each")
	f.Float64Var(&o.least, "least-query", 0.04, "P(query) that must show in every cell with 95 % confidence: how often each of eight patches is drawn, 256 times or more")
	f.StringVar(&o.parts, "parts", "unconditional,likelihood,guided,query,sweep",
		"measurements to make: those, and rho, until (guidance up to a step) and pool (its cost to a training)")
	f.IntVar(&o.patches, "patches", 32, "patches of the parts rho and until")
	f.IntVar(&o.draws, "draws", 32, "draws of each of them")
	f.IntVar(&o.poolSteps, "pool-steps", 1500, "steps of the training that a pool is timed beside")
	f.IntVar(&o.pool.Batch, "pool-batch", o.pool.Batch, "partitions that the pool draws at a time")
	f.IntVar(&o.pool.Prime, "pool-prime", o.pool.Prime, "partitions that it draws before the first is used")
	f.Float64Var(&o.pool.Share, "pool-share", o.pool.Share, "of the time that the pool may draw")
	trainFlags(f, &o)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.data == "" {
		return o, errors.New("-data is required: a file of package samples/pack")
	}
	if o.poolSteps < 2*reportEvery {
		return o, fmt.Errorf("-pool-steps is %d, must be %d or more: steps are timed from the first report, after %d, to the last", o.poolSteps, 2*reportEvery, reportEvery)
	}
	o.train.Sampling = o.guide.SampleConfig
	o.train.CheckpointEvery = 0
	return o, errors.Join(o.train.Validate(), o.guide.Validate(), o.pool.Validate())
}

func trainFlags(f *flag.FlagSet, o *options) {
	m, t := &o.train.Model, &o.train
	f.StringVar(&m.Backbone, "backbone", m.Backbone, "unet or vit")
	f.StringVar(&m.Size, "size", m.Size, "tiny, small, base or large")
	f.StringVar(&m.Schedule, "schedule", m.Schedule, prior.CosineSchedule+" or "+prior.AccuracySchedule)
	f.BoolVar(&m.Season, "season", m.Season, "day of year as a condition")
	f.BoolVar(&m.Yesterday, "yesterday", m.Yesterday, "yesterday's mask as a condition")
	f.BoolVar(&m.Frequency, "frequency", m.Frequency, "observation frequency of each cell as a condition")
	f.BoolVar(&m.Coverage, "coverage", m.Coverage, "mean of the latents as an input")
	f.BoolVar(&m.Vicinity, "vicinity", m.Vicinity, "means of the latents around each cell as inputs")
	f.BoolVar(&m.Evidence, "evidence", m.Evidence, "the cell's own evidence added to the output")
	f.IntVar(&t.Step.Steps, "steps", t.Step.Steps, "training steps")
	f.IntVar(&t.Batch, "batch", t.Batch, "masks a step")
	f.Float64Var(&t.Step.LearningRate, "rate", t.Step.LearningRate, "learning rate, the peak")
	f.Float64Var(&t.Step.EMADecay, "ema", t.Step.EMADecay, "decay of the average of the weights")
	f.BoolVar(&t.Step.BFloat16, "bf16", t.Step.BFloat16, "compute in bfloat16")
	f.IntVar(&t.Side, "side", t.Side, "height and width of a window in cells")
	f.IntVar(&t.Stride, "stride", t.Stride, "cells between windows")
	f.IntVar(&t.Workers, "workers", t.Workers, "goroutines that prepare batches")
	f.Uint64Var(&t.Seed, "seed", t.Seed, "seed")
	f.IntVar(&t.EvaluateEvery, "evaluate", t.EvaluateEvery, "steps between comparisons with held-out masks; 0: never")
	f.IntVar(&t.EvaluateMasks, "evaluate-masks", t.EvaluateMasks, "masks of a comparison")
	f.IntVar(&t.Patience, "patience", t.Patience, "comparisons without gain before training ends; 0: never ends early")
	f.IntVar(&o.guide.Steps, "sample-steps", o.guide.Steps, "steps of a walk")
	f.IntVar((*int)(&o.guide.Order), "sample-order", int(o.guide.Order), "order of a step: 1 or 2")
	f.IntVar(&o.guide.Batch, "sample-batch", o.guide.Batch, "masks drawn at a time")
}

// load reads a packed series and splits it.
func load(path string) (samples.Train, samples.HeldOut, error) {
	series, err := read(path)
	if err != nil {
		return samples.Train{}, samples.HeldOut{}, err
	}
	return series.Split(samples.DefaultSplit())
}

func read(path string) (samples.Series, error) {
	f, err := os.Open(path)
	if err != nil {
		return samples.Series{}, err
	}
	defer func() { _ = f.Close() }() // read-only: a failed close loses nothing
	series, err := pack.Read(bufio.NewReader(f))
	if err != nil {
		return samples.Series{}, fmt.Errorf("read %s: %w", path, err)
	}
	return series, nil
}

// reportEvery is how many steps lie between two lines of the log.
const reportEvery = 50

// model trains a prior, or takes one that was trained before.
func (b *bench) model(ctx context.Context, r *report) (*prior.Model, error) {
	if b.prior != "" {
		data, err := os.ReadFile(b.prior)
		if err != nil {
			return nil, err
		}
		return prior.Load(b.engine, data)
	}
	began := time.Now()
	hooks := train.Hooks{Progress: func(p train.Progress) {
		if p.Score == nil && p.Step%reportEvery != 0 {
			return
		}
		args := []any{"step", p.Step, "of", p.Steps, "loss", p.Loss, "seconds", time.Since(began).Seconds()}
		if p.Score != nil {
			args = append(args, "distance", *p.Score)
		}
		b.log.Info("training", args...)
	}}
	m, told, err := learn.TrainPrior(ctx, b.engine, b.train, b.held, b.options.train, hooks)
	if err != nil {
		return nil, err
	}
	r.Training = &told
	if b.output == "" {
		return m, nil
	}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return m, durable.WriteFile(b.output, data, 0o644)
}
