// Command imputebench trains imputers on a packed series and scores them on
// the same held-out overlays. It needs nothing but the engine's library beside
// it:
//
//	imputebench -data pacific.pack -engine xla:cuda -experiments list.json -o results -deadline 9m
//
// Each experiment appends lines to results.jsonl in the folder of -o as soon as
// they are known, and leaves its networks there. A run that meets its deadline
// stops within seconds and leaves checkpoints in the folder of -work, from
// which the same command goes on. Experiments run in the order of the list.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"time"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/impute"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		fmt.Fprintf(os.Stderr, "imputebench: %v\n", err)
		os.Exit(1)
	}
}

// options are what is the same for all experiments.
type options struct {
	engine      string
	cfg         engine.Config
	data        string
	prior       string
	experiments string
	output      string
	work        string
	deadline    time.Duration
	overlays    int
	batch       int
	side        int
	workers     int
	cacheMB     int
	oiBlock     int
	oiKM        float64
	oiDays      float64
	oiNugget    float64
	fit         bool
	// gaussianDays asks for a simulated Gaussian sea of one window in place of
	// data.
	gaussianDays int
	bfloat16     bool
}

func run(ctx context.Context, args []string, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	if o.deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.deadline)
		defer stop()
	}
	list, err := readExperiments(o.experiments)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(errs, nil))
	b := &bench{options: o, log: log, began: time.Now()}
	if err := b.load(ctx, list); err != nil {
		return err
	}
	e, err := engine.Open(o.engine, o.cfg, log)
	if err != nil {
		return err
	}
	defer e.Finalize()
	b.engine = e
	b.shop, err = impute.NewWorkshop(e, impute.WorkshopConfig{Batch: o.batch, BFloat16: o.bfloat16, Shared: e.Kind != engine.ORT})
	if err != nil {
		return err
	}
	defer func() {
		b.shop.Close()
		if b.small != nil {
			b.small.Close()
		}
	}()
	return b.runAll(ctx, list)
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("imputebench", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.engine, "engine", engine.Auto, "auto, ort, ort:cuda or xla:cuda")
	o.cfg.AddFlags(f)
	f.StringVar(&o.data, "data", "", "packed series (required)")
	f.StringVar(&o.prior, "prior", "", "ONNX file of a mask prior, for guided and unconditional partitions")
	f.StringVar(&o.experiments, "experiments", "", "JSON list of experiments (required)")
	f.StringVar(&o.output, "o", ".", "folder for results and networks")
	f.StringVar(&o.work, "work", "", "folder for checkpoints and backgrounds (default: that of -o)")
	f.DurationVar(&o.deadline, "deadline", 0, "stop after so long (default: never)")
	f.IntVar(&o.overlays, "overlays", 0, "overlays to score (default: all)")
	f.IntVar(&o.batch, "predict-batch", 64, "windows predicted at a time")
	f.IntVar(&o.side, "side", 64, "side of the overlays in cells")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "goroutines that make batches and backgrounds")
	f.IntVar(&o.cacheMB, "cache-mb", 16<<10, "memory for what surrounds training patches")
	f.IntVar(&o.oiBlock, "oi-block", 4, "cells along the side of a block of the background's optimal interpolation")
	f.Float64Var(&o.oiKM, "oi-km", 0, "length scale of optimal interpolation in km (default: that of the grid)")
	f.Float64Var(&o.oiDays, "oi-days", 0, "time scale of optimal interpolation in days (default: that of the grid)")
	f.Float64Var(&o.oiNugget, "oi-nugget", 0, "nugget of optimal interpolation (default: that of the grid)")
	f.IntVar(&o.gaussianDays, "gaussian", 0, "in place of -data, so many days of a Gaussian random field with known covariance, of one window")
	f.BoolVar(&o.fit, "fit", true, "also score with sigmas calibrated on the other half of the days")
	f.BoolVar(&o.bfloat16, "predict-bf16", false, "predict in bfloat16")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.work == "" {
		o.work = o.output
	}
	switch {
	case o.data == "" && o.gaussianDays == 0:
		return o, errors.New("-data is required: a file of package samples/pack")
	case o.experiments == "":
		return o, errors.New("-experiments is required: a JSON list")
	}
	return o, errors.Join(os.MkdirAll(o.output, 0o755), os.MkdirAll(o.work, 0o755))
}
