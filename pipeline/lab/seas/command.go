package seas

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"lacuna/internal/faults"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
)

// options are the settings of a run.
type options struct {
	engine   string
	engines  engine.Config
	packs    string
	settings string
	output   string
	work     string
	leave    string
	balance  string
	deadline time.Duration
	seeds    int
	steps    int
	batch    int
	perPatch int
	side     int // side of the windows that are judged
	overlays int
	choosing int
	workers  int
	cacheMB  int
	turns    bool
	runner   impute.RunnerConfig
}

// leaveNone trains on all seas: the network of a starter.
const leaveNone = "none"

// The ways to balance seas.
const (
	balanceEqual = "equal"
	balanceRoot  = "root"
)

// Run trains networks without a sea each and judges them there.
func Run(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	cfg, err := o.config()
	if err != nil {
		return err
	}
	if o.deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.deadline)
		defer stop()
	}
	log := slog.New(slog.NewTextHandler(errs, nil))
	o.engines.KeepSessions = true // every sea and seed trains the same network
	e, err := engine.Open(o.engine, o.engines, log)
	if err != nil {
		return err
	}
	defer e.Finalize()
	o.runner.Shared = e.Kind != engine.ORT
	runner, err := impute.NewRunner(e, o.runner)
	if err != nil {
		return err
	}
	defer runner.Close()
	trainer := learn.NewTrainer(runner)
	defer trainer.Close()
	l, err := open(o, cfg, runner, trainer, log)
	if err != nil {
		return err
	}
	err = errors.Join(l.run(ctx), l.kept.close())
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("deadline met; the same command goes on")
		_, err = fmt.Fprintln(out, "unfinished")
		return err
	}
	if err == nil {
		_, err = fmt.Fprintln(out, "finished")
	}
	return err
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("seas", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.engine, "engine", engine.Auto, "auto, ort, ort:cuda or xla:cuda")
	o.engines.AddFlags(f)
	f.StringVar(&o.packs, "packs", "", "folder of files of lacuna pack, NAME.pack each (required)")
	f.StringVar(&o.settings, "settings", "", "JSON file with settings of the training in which it differs from the default")
	f.StringVar(&o.output, "o", ".", "folder for results")
	f.StringVar(&o.work, "work", "", "folder for analyses, networks, checkpoints and records that are done (default: that of -o)")
	f.StringVar(&o.leave, "leave", "", "NAME,... of seas to leave out, one at a time, or none: train on all (default: each)")
	f.StringVar(&o.balance, "balance", balanceRoot, "how often a sea is learned from: equal, or root: by the root of its number of patches")
	f.DurationVar(&o.deadline, "deadline", 0, "stop after so long (default: never)")
	f.IntVar(&o.seeds, "seeds", 1, "networks for each sea that is left out; several are also judged as one")
	f.IntVar(&o.steps, "steps", 0, "steps of a training (default: by the settings)")
	f.IntVar(&o.batch, "batch", 0, "patches of a step (default: by the settings)")
	f.IntVar(&o.perPatch, "per-patch", 2, "partitions of a patch")
	f.IntVar(&o.side, "side", 0, "side of the windows that are judged, in cells (default: that of the training)")
	f.IntVar(&o.overlays, "overlays", 0, "most overlays that judge a sea (default: all)")
	f.IntVar(&o.choosing, "choosing", 128, "most overlays of a sea that calibrate")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "goroutines that make batches and analyses")
	f.IntVar(&o.cacheMB, "cache-mb", 16<<10, "memory for what surrounds training patches")
	f.IntVar(&o.runner.Batch, "predict-batch", 32, "windows predicted at a time")
	f.BoolVar(&o.runner.BFloat16, "predict-bf16", false, "predict in bfloat16")
	f.BoolVar(&o.turns, "turns", false, "ask each network about the eight mirror images of a window")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.work == "" {
		o.work = o.output
	}
	if err := o.validate(); err != nil {
		return o, err
	}
	return o, errors.Join(os.MkdirAll(o.output, 0o755), os.MkdirAll(o.work, 0o755))
}

func (o options) validate() error {
	var errs faults.List
	errs.Check(o.packs != "", "-packs is required: a folder of files of lacuna pack")
	errs.Check(o.balance == balanceEqual || o.balance == balanceRoot, "-balance is %q, must be %s or %s", o.balance, balanceEqual, balanceRoot)
	for _, positive := range []struct {
		name  string
		value int
	}{{"seeds", o.seeds}, {"per-patch", o.perPatch}, {"choosing", o.choosing}, {"workers", o.workers}} {
		errs.Check(positive.value > 0, "-%s is %d, must be positive", positive.name, positive.value)
	}
	for _, natural := range []struct {
		name  string
		value int
	}{{"steps", o.steps}, {"batch", o.batch}, {"side", o.side}, {"overlays", o.overlays}} {
		errs.Check(natural.value >= 0, "-%s is %d, must not be negative", natural.name, natural.value)
	}
	return errs.Err()
}

// config returns the settings of the training: those of the file over the
// defaults, and those of the command line over them.
func (o options) config() (learn.Config, error) {
	c := learn.DefaultConfig()
	if o.settings != "" {
		f, err := os.Open(o.settings)
		if err != nil {
			return c, err
		}
		defer func() { _ = f.Close() }() // read-only: a failed close loses nothing
		d := json.NewDecoder(f)
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return c, fmt.Errorf("read %s: %w", o.settings, err)
		}
	}
	if o.steps > 0 {
		c.Steps = o.steps
	}
	if o.batch > 0 {
		c.Batch = o.batch
	}
	c.WarmupSteps = min(c.WarmupSteps, c.Steps/10)
	c.Workers, c.CacheMB = o.workers, o.cacheMB
	if !c.Design.Extras.Analysis || !c.Design.Variance {
		return c, errors.New("settings: the network must see an analysis and give a variance, to be compared with optimal interpolation")
	}
	return c, c.Validate()
}

// leaves returns the names of the seas to leave out.
func (o options) leaves(all []*sea) ([]string, error) {
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	if o.leave == "" {
		return names, nil
	}
	asked := strings.Split(o.leave, ",")
	for _, name := range asked {
		if name != leaveNone && !slices.Contains(names, name) {
			return nil, fmt.Errorf("-leave names %q, and the packs are %s", name, strings.Join(names, ", "))
		}
	}
	return asked, nil
}
