// Package jobs makes the tables of a plan from packed series, on a machine that
// has nothing but the engine's library: no files of granules, no model store.
//
//	lacuna lab jobs -plan plan.json -engine xla:cuda -o results -deadline 9m
//	lacuna lab jobs -plan plan.json -engine xla:cuda -o results -only past,delayed
//	lacuna lab jobs -pool -reference oi results/results.jsonl
//	lacuna lab jobs -pictures sheets results/results.jsonl
//
// A plan is a list of jobs, each a series, rows and settings. Jobs run in order
// and share compiled programs, the networks of equal rows and the analyses of
// equal days. Every row and seed appends a line to results.jsonl in the folder
// of -o with its losses case by case, so that lines of several processes and
// seeds can be pooled and paired afterwards, with -pool. A job that ends leaves
// its tables in a folder of its name. A run that meets its deadline leaves
// checkpoints in the folder of -work, from which the same command goes on.
// Processes that run at the same time need a folder each. With -try a plan is
// tried on a processor before it costs time on a GPU.
package jobs

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/tables"
)

// options are the settings of all jobs.
type options struct {
	engine    string
	cfg       engine.Config
	plan      string
	only      string
	output    string
	work      string
	deadline  time.Duration
	workers   int
	cacheMB   int
	runners   impute.RunnerConfig
	pool      bool
	reference string
	try       bool
	pictures  string   // folder of sheets that are drawn instead; empty: none
	methods   string   // of those sheets, separated by commas
	files     []string // files that -pool and -pictures read
}

// Run runs a plan, or pools the results of plans.
func Run(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	switch {
	case o.pool:
		return poolFiles(o, out)
	case o.pictures != "":
		return drawFiles(o, out)
	}
	if o.deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.deadline)
		defer stop()
	}
	log := slog.New(slog.NewTextHandler(errs, nil))
	e, err := engine.Open(o.engine, o.cfg, log)
	if err != nil {
		return err
	}
	defer e.Finalize()
	o.runners.Shared = e.Kind != engine.ORT
	runners, err := tables.NewRunners(e, o.runners)
	if err != nil {
		return err
	}
	defer runners.Close()
	plan, err := readPlan(o.plan, e.Kind != engine.ORT)
	if err != nil {
		return err
	}
	if plan, err = only(plan, o.only); err != nil {
		return err
	}
	if o.try {
		for i := range plan {
			plan[i].shrink()
		}
	}
	b := &bench{options: o, log: log, engine: e, runners: runners, series: map[string]*series{}}
	err = b.runAll(ctx, plan)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("deadline met; the same command goes on")
		return nil
	}
	return err
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("jobs", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.engine, "engine", engine.Auto, "auto, ort, ort:cuda or xla:cuda")
	o.cfg.AddFlags(f)
	f.StringVar(&o.plan, "plan", "", "JSON list of jobs (required)")
	f.StringVar(&o.only, "only", "", "NAME,... of jobs of the plan to make (default: all)")
	f.StringVar(&o.output, "o", ".", "folder for results")
	f.StringVar(&o.work, "work", "", "folder for networks, checkpoints and rows that are done (default: that of -o)")
	f.DurationVar(&o.deadline, "deadline", 0, "stop after so long (default: never)")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "goroutines that make batches and analyses")
	f.IntVar(&o.cacheMB, "cache-mb", 16<<10, "memory for what surrounds training patches")
	f.IntVar(&o.runners.Batch, "predict-batch", 64, "windows predicted at a time")
	f.BoolVar(&o.runners.BFloat16, "predict-bf16", false, "predict in bfloat16")
	f.BoolVar(&o.pool, "pool", false, "print tables of the results in the files that follow instead")
	f.StringVar(&o.reference, "reference", "oi", "row that others are compared with, for -pool")
	f.StringVar(&o.pictures, "pictures", "", "draw how methods filled the same samples, from the results in the files that follow, into this folder instead")
	f.StringVar(&o.methods, "methods", "ambientdiff-30,dindiff,missdiff,paper,guided", "rows that -pictures shows")
	f.BoolVar(&o.try, "try", false, "run every row of the plan for a few steps of a tiny network in small windows: a test of the plan, whose figures mean nothing")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.files = f.Args(); o.pool || o.pictures != "" {
		return o, nil
	}
	if o.work == "" {
		o.work = o.output
	}
	if o.plan == "" {
		return o, errors.New("-plan is required: a JSON list of jobs")
	}
	return o, errors.Join(os.MkdirAll(o.output, 0o755), os.MkdirAll(o.work, 0o755))
}
