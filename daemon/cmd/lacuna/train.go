package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon"
	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/finetune"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"

	"github.com/spf13/cobra"
)

// trainFlags are the command line of lacuna train.
type trainFlags struct {
	data        dataFlags
	beside      []string
	spreadOnly  bool
	store       string
	dataset     string
	size        string
	membersSize string
	priorSize   string
	backbone    string
	from        string
	only        string
	refitPrior  bool
	preset      string
	strategy    string
	engine      string
	policy      string
	checkpoints string
	log         string
	jsonLines   bool
	steps       int
	prior       int // steps
	members     int // steps
	reliability int // steps
	batch       int
	side        int // cells
	stride      int // cells
	gapDays     int
	seed        uint64
	budget      time.Duration
}

// Policies: who decides whether a challenger that won is promoted.
const (
	policyAuto  = "auto"  // the gate
	policyAsk   = "ask"   // a person, with lacuna models promote
	policyNever = "never" // nobody: the version is only written
)

func trainCommand() *cobra.Command {
	var flags trainFlags
	c := &cobra.Command{
		Use:   "train --data FILE... --store DIR",
		Short: "train a model, or fine-tune one, and promote it if it wins",
		Long: `Train makes a version of a model from gappy granules and writes it into a model
store: a prior of the gaps, the imputer, residual members for ensembles, a
calibration and an evaluation. Days are split by time; the held-out ones only
choose and judge. The new version and what fills now (the champion of the
dataset, else a starter model that fits, else optimal interpolation) are asked
about the same held-out days, and it is promoted only if it is better beyond
chance, no worse than optimal interpolation, without worse seams, calibrated,
finite, inside the physical range and no slower than the champion. Else it is
kept with the reasons; lacuna models promote makes it champion all the same.

With --from the version begins with the weights of another one, new days count
most, and older seasons are replayed; the prior is refitted only if gaps have
drifted, or with --refit-prior. --from champion begins with the champion, --from
starter with the model that comes with the program.

On a processor the default is a small network and few steps, enough to see that
all is well and not the best that the data give: --steps 8000 over night does
more. On a GPU (--engine xla:cuda, taken by itself where it is usable) the
default is a base network and more steps. The progress line tells the time left.

Files of several grids are several series: one network learns from patches of
all of them, each with a mean map and a spread of its own, and is judged on
held-out days of each. Such a version serves wherever a dataset has days enough
to learn its own mean map and spread.

A dataset of few days may borrow: with --beside half of the patches are of other
granules, of any quantity, each in units of its own spread and with either sign.
The version is judged on held-out days of --data alone. With --spread-only the
mean stays that of optimal interpolation, and the network learns how far off it
is, by itself and in members.

The run can be stopped at any moment, by kill -9 too. The same command goes on
from its checkpoints and ends with the same weights. On SIGTERM it writes a
checkpoint within seconds.

Exit status: 0 a version was written (promoted or not), 1 stopped or failed, 2 usage.`,
		Example: `  lacuna train --data archive --var CHL --store var/store
  lacuna train --data archive --var CHL --store var/store --from champion --steps 400`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := flags.validate(); err != nil {
				return usageError{err}
			}
			return flags.run(c)
		},
	}
	flags.add(c)
	return c
}

func (f *trainFlags) add(c *cobra.Command) {
	s := c.Flags()
	f.data.add(s)
	s.StringArrayVar(&f.beside, "beside", nil, "`FILE|DIR` with granules of another dataset to learn from as well; may be repeated")
	s.BoolVar(&f.spreadOnly, "spread-only", false, "leave the mean to optimal interpolation and learn how far off it is")
	s.StringVar(&f.store, "store", "", "model store `DIR` (required)")
	s.StringVar(&f.dataset, "dataset", "", "`NAME` of the dataset the model serves (default: that of the granules)")
	s.StringVar(&f.size, "size", "", "of the network: tiny, small, base or large (default: small, base on a GPU, or that of --from)")
	s.StringVar(&f.membersSize, "members-size", "", "of the network of the members (default: as the imputer, or that of --from)")
	s.StringVar(&f.priorSize, "prior-size", "", "of the network of the prior (default: a size below the imputer, or that of --from)")
	s.StringVar(&f.backbone, "backbone", "", "of the network: unet or vit (default: unet, or that of --from)")
	s.StringVar(&f.from, "from", "", "`VERSION` to begin with, or champion, or starter")
	s.StringVar(&f.only, "only", "", "train the prior or the imputer only")
	s.BoolVar(&f.refitPrior, "refit-prior", false, "refit the prior of --from even though gaps have not drifted")
	s.IntVar(&f.steps, "steps", 0, "training steps of the imputer (default: by engine)")
	s.IntVar(&f.prior, "prior-steps", 0, "training steps of the prior (default: by engine)")
	s.IntVar(&f.members, "members-steps", -1, "training steps of the members, 0 for none (default: as the imputer)")
	s.IntVar(&f.reliability, "reliability-steps", -1, "training steps of the network of P(query), 0 for none (default: a third of the imputer's)")
	for _, name := range []string{"members-steps", "reliability-steps"} {
		s.Lookup(name).DefValue = "" // the sentence says it
	}
	s.IntVar(&f.batch, "batch", 0, "patches a step (default: by engine)")
	s.IntVar(&f.side, "side", 0, "of the patches in cells (default: 64, or 32 on a smaller grid)")
	s.IntVar(&f.stride, "stride", 0, "between training patches in cells (default: half of a side)")
	s.IntVar(&f.gapDays, "gap-days", 0, "days between training and held-out days; fewer where the series is short (default: 12)")
	s.StringVar(&f.engine, "engine", engine.Auto, "`ENGINE`: auto, ort, ort:cuda or xla:cuda; see lacuna engines")
	s.StringVar(&f.preset, "preset", "lacuna", "lacuna, or paper for the published method")
	s.StringVar(&f.strategy, "strategy", "", fmt.Sprintf("how observations are split for training, one of %v (default: guided on a GPU, empirical on a processor)", finetune.Strategies()))
	s.Uint64Var(&f.seed, "seed", 1, "of weights and noise")
	s.StringVar(&f.policy, "policy", policyAuto, "who promotes a version that wins: auto, ask (you, later) or never")
	s.StringVar(&f.checkpoints, "checkpoints", "", "`DIR` for checkpoints, a folder a job (default: training in the store)")
	s.BoolVar(&f.jsonLines, "json-lines", false, "tell progress as JSON, a line each, on standard output")
	s.StringVar(&f.log, "log", "", "append loss and scores to `FILE.csv`")
	s.DurationVar(&f.budget, "time-budget", 0, "stop with a checkpoint after so long, such as 2h30m (default: none)")
}

func (f *trainFlags) validate() error {
	errs := []error{f.data.validate()}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	oneOf := func(flag, value string, allowed ...string) {
		check(value == "" || slices.Contains(allowed, value), "%s is %q, must be one of %v", flag, value, allowed)
	}
	check(f.store != "", "--store DIR is required")
	for flag, size := range map[string]string{"--size": f.size, "--members-size": f.membersSize, "--prior-size": f.priorSize} {
		oneOf(flag, size, nn.Tiny, nn.Small, nn.Base, nn.Large)
	}
	oneOf("--backbone", f.backbone, nn.BackboneUNet, nn.BackboneViT)
	oneOf("--only", f.only, finetune.OnlyPrior, finetune.OnlyImputer)
	oneOf("--preset", f.preset, "lacuna", "paper")
	oneOf("--policy", f.policy, policyAuto, policyAsk, policyNever)
	oneOf("--strategy", f.strategy, finetune.Strategies()...)
	check(f.steps >= 0 && f.prior >= 0 && f.batch >= 0 && f.side >= 0, "--steps, --prior-steps, --batch and --side must not be negative")
	check(f.stride >= 0 && f.gapDays >= 0, "--stride and --gap-days must not be negative")
	check(f.budget >= 0, "--time-budget is %v, must not be negative", f.budget)
	return errors.Join(errs...)
}

// errBudget ends a run whose time is spent.
var errBudget = errors.New("the time budget is spent")

func (f *trainFlags) run(c *cobra.Command) error {
	ctx := c.Context()
	if f.budget > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, f.budget, errBudget)
		defer stop()
	}
	log := slog.New(newConsole(c.ErrOrStderr(), slog.LevelInfo))
	sets, err := f.data.loadAll(ctx, c.ErrOrStderr())
	if ctx.Err() != nil {
		return fmt.Errorf("%w before the training began", stopReason(ctx))
	}
	if err != nil {
		return err
	}
	beside, err := f.loadBeside(ctx, c.ErrOrStderr())
	if err != nil {
		return err
	}
	f.dataset = orElse(f.dataset, daemon.PlainName(sets[0].name))
	e, err := engine.Open(f.engine, engine.Config{}, log)
	if err != nil {
		return err
	}
	defer e.Finalize()
	job, err := f.prepare(ctx, sets, beside, e)
	if err != nil {
		return err
	}
	teller, err := newTeller(c.OutOrStdout(), c.ErrOrStderr(), f.jsonLines, f.log)
	if err != nil {
		return err
	}
	teller.job(job)
	job.memory = &deviceMemory{}
	if e.Kind != engine.ORT {
		job.memory = watchDevice(ctx)
		defer job.memory.stop()
	}
	out, err := finetune.Make(ctx, job.request, finetune.Hooks{Progress: teller.tell})
	teller.finish()
	if err == nil {
		job.phases = teller.phases()
		err = job.conclude(ctx, out, teller)
	}
	if ctx.Err() != nil {
		teller.stopped(stopReason(ctx))
		return fmt.Errorf("%w; the same command goes on from the checkpoints in %s", stopReason(ctx), job.request.Folder)
	}
	return errors.Join(err, teller.close())
}

// loadBeside reads what is learned from beside the data.
func (f *trainFlags) loadBeside(ctx context.Context, stderr io.Writer) ([]dataset, error) {
	if len(f.beside) == 0 {
		return nil, nil
	}
	data := dataFlags{files: f.beside, mask: f.data.mask}
	return data.loadAll(ctx, stderr)
}

// stopReason says why a run was cut short.
func stopReason(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errBudget) {
		return errBudget
	}
	return errors.New("stopped")
}

// prepare finds the version to begin with and the one to beat, and makes the
// settings.
func (f *trainFlags) prepare(ctx context.Context, sets, beside []dataset, e *engine.Engine) (*trainJob, error) {
	job := &trainJob{
		flags: f, sets: sets, beside: beside, engine: e, started: time.Now(),
		store: modelstore.New(f.store, time.Now),
	}
	if err := job.findVersions(ctx); err != nil {
		return nil, err
	}
	settings, err := f.settings(job)
	if err != nil {
		return nil, err
	}
	job.request = finetune.Request{
		Series: seriesOf(sets), Beside: seriesOf(beside),
		Settings: settings, Backend: e, Parent: job.parentFiles, Champion: job.championFiles, Starter: job.starterFiles,
	}
	name, err := job.request.Fingerprint()
	if err != nil {
		return nil, err
	}
	// A folder of its own for each job: it is removed when the job is done.
	base := orElse(f.checkpoints, filepath.Join(f.store, "training"))
	job.request.Folder = filepath.Join(base, fmt.Sprintf("%s-%.12s", f.dataset, name))
	_, err = os.Stat(filepath.Join(job.request.Folder, "job.json"))
	job.resumed = err == nil
	return job, nil
}

func seriesOf(sets []dataset) []samples.Series {
	var all []samples.Series
	for _, set := range sets {
		all = append(all, set.series)
	}
	return all
}

// settings returns those of the engine, with what the flags and the version to
// begin with say otherwise.
func (f *trainFlags) settings(job *trainJob) (finetune.Settings, error) {
	gpu := job.engine.Kind != engine.ORT
	size := nn.Small
	if gpu {
		size = nn.Base
	}
	s := finetune.DefaultSettings(orElse(f.size, size), gpu)
	if f.backbone != "" {
		s.Imputer.Design.Backbone, s.Prior.Model.Backbone = f.backbone, f.backbone
	}
	if job.parentFiles[finetune.ImputerFile] != nil {
		if err := s.From(job.parentFiles); err != nil {
			return s, err
		}
		if f.size != "" && f.size != s.Imputer.Design.Size || f.backbone != "" && f.backbone != s.Imputer.Design.Backbone {
			return s, usageError{fmt.Errorf("--from %s is a %s %s; leave --size and --backbone out, or train without --from",
				job.parentID, s.Imputer.Design.Size, s.Imputer.Design.Backbone)}
		}
	}
	if f.preset == "paper" {
		s = s.WithPaper()
	}
	s.Imputer.Negate = len(job.beside) > 0 // what is skewed in one quantity is not in another
	s.Imputer.SpreadOnly = f.spreadOnly
	side := f.side
	if side == 0 {
		side = patchSide(job.sets...)
	}
	s = s.With(finetune.Budget{
		Steps: f.steps, PriorSteps: f.prior, MembersSteps: f.members, ReliabilitySteps: f.reliability, MembersSize: f.membersSize, PriorSize: f.priorSize,
		Batch: f.batch, Side: side, Stride: f.stride, GapDays: f.gapDays, Seed: f.seed,
	})
	s.Only, s.Strategy, s.RefitPrior = f.only, orElse(f.strategy, s.Strategy), f.refitPrior
	if err := s.Validate(); err != nil {
		return s, usageError{err}
	}
	return s, nil
}
