package models

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/daemon/fill"
	"lacuna/daemon/onboard"
	"lacuna/daemon/retrain"
	"lacuna/daemon/version"
	"lacuna/internal/faults"
	"lacuna/modelstore"
	"lacuna/modelstore/starters"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/nn"
	modelversion "lacuna/pipeline/version"

	"github.com/spf13/cobra"
)

// trainFlags are the command line of lacuna train.
type trainFlags struct {
	data        input.Data
	beside      []string
	covariates  input.Covariates
	spreadOnly  bool
	store       string
	dataset     string
	size        string
	membersSize string
	priorSize   string
	backbone    string
	from        string
	elsewhere   string
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
	teachers    int // negative: by default
	batch       int
	side        int // cells
	stride      int // cells
	gapDays     int
	seed        uint64
	budget      time.Duration
}

func trainCommand() *cobra.Command {
	var flags trainFlags
	c := &cobra.Command{
		Use:   "train --data FILE... --store DIR",
		Short: "train a model, or fine-tune one, and promote it if it wins",
		Long: `Train makes a version of a model from gappy granules and writes it into a model
store: a prior of the gaps, the imputer, residual members for ensembles, a
calibration and an evaluation. A day has one use: to learn from, to choose by
(when to stop, how wide intervals are) or to judge on. The first training of a
dataset gives each date its use for ever, in the calendar of the dataset in the
store; later days get theirs behind it. What a version to begin with has learned
from does not judge its descendants. The new version and what fills now (the
champion of the dataset, else a starter model that fits, else optimal
interpolation) are asked about the same days that judge, and it is promoted only
if it is better beyond chance, no worse than optimal interpolation, without worse seams, calibrated,
finite, inside the physical range and no slower than the champion. Else it is
kept with the reasons; lacuna models promote makes it champion all the same.

With --from the version begins with the weights of another one, new days count
most, and older seasons are replayed; the prior is refitted only if gaps have
drifted, or with --refit-prior. --from champion begins with the champion, --from
starter with the model that comes with the program.

With --only calibration nothing is trained: the networks of --from are kept, and
what is fitted to days is made anew, which takes minutes on two cores: the mean
map and the spread, the constants of optimal interpolation and how wide
intervals are. It replaces the champion, whose networks it has, where its CRPS
is lower beyond chance and its error no worse.

On a processor the default is a small network and few steps, enough to see that
all is well and not the best that the data give: --steps 8000 over night does
more. On a GPU (--engine xla:cuda, taken by itself where it is usable) the
default is a base network and more steps, three times: the network that serves
is taught by three that differ in their seeds, and errs 3 % less than one of them. The progress line tells the time left.

Files of several grids are several series: one network learns from patches of
all of them, each with a mean map and a spread of its own, and is judged on days
of each. Such a version serves wherever a dataset has days enough
to learn its own mean map and spread.

A dataset of few days may borrow: with --beside half of the patches are of other
granules, of any quantity, each in units of its own spread and with either sign.
The version is judged on days of --data alone. With --spread-only the
mean stays that of optimal interpolation, and the network learns how far off it
is, by itself and in members.

With --covariate the network sees other variables too, as further channels: their
maps of the day or of the nearest before it. It learns to do without each, and one
that does not lower the error on the days that choose, beyond chance, is not used.
The card has the verdict on each.

The run can be stopped at any moment, by kill -9 too. The same command goes on
from its checkpoints and ends with the same weights. On SIGTERM it writes a
checkpoint within seconds.

Exit status: 0 a version was written (promoted or not), 1 stopped or failed, 2 usage.`,
		Example: `  lacuna train --data archive --var CHL --store var/store
  lacuna train --data archive --var CHL --store var/store --from champion --steps 400`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := flags.validate(); err != nil {
				return cli.Usage(err)
			}
			err := flags.run(c)
			if err != nil && flags.jsonLines && !errors.Is(err, errStopped) {
				failed := retrain.Event{Event: retrain.EventFailed, Reasons: []string{err.Error()}}
				if errors.Is(err, errNoEngine) {
					failed.Engine = flags.engine
				}
				if retrain.TooFewDays(err) {
					failed.State = retrain.StateUnjudged
				}
				_ = retrain.WriteEvent(c.OutOrStdout(), failed)
			}
			return err
		},
	}
	flags.add(c)
	return c
}

func (f *trainFlags) add(c *cobra.Command) {
	s := c.Flags()
	f.data.Add(s)
	s.StringArrayVar(&f.beside, "beside", nil, "`FILE|DIR` with granules of another dataset to learn from as well; may be repeated")
	f.covariates.Add(s)
	f.covariates.AddFiles(s)
	s.BoolVar(&f.spreadOnly, "spread-only", false, "leave the mean to optimal interpolation and learn how far off it is")
	s.StringVar(&f.store, "store", "", "model store `DIR` (required)")
	s.StringVar(&f.dataset, "dataset", "", "`NAME` of the dataset the model serves (default: that of the granules)")
	s.StringVar(&f.size, "size", "", "of the network: tiny, small, base or large (default: small, base on a GPU, or that of --from)")
	s.StringVar(&f.membersSize, "members-size", "", "of the network of the members (default: as the imputer, or that of --from)")
	s.StringVar(&f.priorSize, "prior-size", "", "of the network of the prior (default: a size below the imputer, or that of --from)")
	s.StringVar(&f.backbone, "backbone", "", "of the network: unet or vit (default: unet, or that of --from)")
	s.StringVar(&f.from, "from", "", "`VERSION` to begin with, or champion, or starter")
	s.StringVar(&f.only, "only", "", "train the prior or the imputer only, or fit the calibration of --from anew and train nothing")
	s.BoolVar(&f.refitPrior, "refit-prior", false, "refit the prior of --from even though gaps have not drifted")
	s.IntVar(&f.steps, "steps", 0, "training steps of the imputer (default: by engine)")
	s.IntVar(&f.prior, "prior-steps", 0, "training steps of the prior (default: by engine)")
	s.IntVar(&f.members, "members-steps", -1, "training steps of the members, 0 for none (default: as the imputer)")
	s.IntVar(&f.teachers, "teachers", -1, "networks that are trained first and teach the one that serves, 0 for none; not with --from (default: 3 on a GPU)")
	s.IntVar(&f.reliability, "reliability-steps", -1, "training steps of the network of P(query), 0 for none (default: a third of the imputer's)")
	for _, name := range []string{"members-steps", "reliability-steps", "teachers"} {
		s.Lookup(name).DefValue = "" // the usage says the default
	}
	s.IntVar(&f.batch, "batch", 0, "patches a step (default: by engine)")
	s.IntVar(&f.side, "side", 0, "of the patches in cells (default: 64, or 32 on a smaller grid)")
	s.IntVar(&f.stride, "stride", 0, "between training patches in cells (default: half of a side)")
	s.IntVar(&f.gapDays, "gap-days", 0, "days between learning and judging; read at the first training of a dataset only, which makes its calendar (default: 12)")
	s.StringVar(&f.engine, "engine", engine.Auto, "`ENGINE`: auto, ort, ort:cuda or xla:cuda; see lacuna engines")
	s.StringVar(&f.preset, "preset", "lacuna", "lacuna, or paper for the published method")
	s.StringVar(&f.strategy, "strategy", "", fmt.Sprintf("how observations are split for training, one of %v (default: guided on a GPU, empirical on a processor)", modelversion.Strategies()))
	s.StringVar(&f.elsewhere, "elsewhere", "", "`FILE.json` of 'lacuna lab seas' for the card: how such networks did on seas that they never saw")
	s.Uint64Var(&f.seed, "seed", 1, "of weights and noise")
	s.StringVar(&f.policy, "policy", retrain.PolicyAuto, "who promotes a version that wins: auto, ask (you, later) or never")
	s.StringVar(&f.checkpoints, "checkpoints", "", "`DIR` for checkpoints, a folder a job (default: training in the store)")
	s.BoolVar(&f.jsonLines, "json-lines", false, "tell progress as JSON, a line each, on standard output")
	s.StringVar(&f.log, "log", "", "append loss and scores to `FILE.csv`")
	s.DurationVar(&f.budget, "time-budget", 0, "stop with a checkpoint after so long, such as 2h30m (default: none)")
}

func (f *trainFlags) validate() error {
	errs := faults.Of(f.data.Validate(), f.covariates.Validate())
	oneOf := func(flag, value string, allowed ...string) {
		errs.Check(value == "" || slices.Contains(allowed, value), "%s is %q, must be one of %v", flag, value, allowed)
	}
	errs.Check(f.store != "", "--store DIR is required")
	for flag, size := range map[string]string{"--size": f.size, "--members-size": f.membersSize, "--prior-size": f.priorSize} {
		oneOf(flag, size, nn.Tiny, nn.Small, nn.Base, nn.Large)
	}
	oneOf("--backbone", f.backbone, nn.BackboneUNet, nn.BackboneViT)
	oneOf("--only", f.only, modelversion.OnlyPrior, modelversion.OnlyImputer, modelversion.OnlyCalibration)
	oneOf("--preset", f.preset, "lacuna", retrain.PresetPaper)
	oneOf("--policy", f.policy, retrain.PolicyAuto, retrain.PolicyAsk, retrain.PolicyNever)
	oneOf("--strategy", f.strategy, modelversion.Strategies()...)
	errs.Check(f.steps >= 0 && f.prior >= 0 && f.batch >= 0 && f.side >= 0, "--steps, --prior-steps, --batch and --side must not be negative")
	errs.Check(f.teachers <= 0 || f.from == "", "--teachers %d is for a training without --from: a version that was taught is fine-tuned alone", f.teachers)
	errs.Check(f.stride >= 0 && f.gapDays >= 0, "--stride and --gap-days must not be negative")
	errs.Check(!f.covariates.Any() || f.preset != retrain.PresetPaper, "--covariate is not for --preset %s, which sees a single frame", retrain.PresetPaper)
	errs.Check(f.budget >= 0, "--time-budget is %v, must not be negative", f.budget)
	return errs.Err()
}

// errNoEngine marks a run whose engine cannot be opened.
var errNoEngine = errors.New("no engine")

// errStopped marks a run that was stopped and may go on.
var errStopped = errors.New("not finished")

func (f *trainFlags) run(c *cobra.Command) error {
	ctx, stop := cli.WithBudget(c.Context(), f.budget)
	defer stop()
	log := slog.New(cli.NewConsole(c.ErrOrStderr(), slog.LevelInfo))
	sets, err := f.data.LoadAll(ctx, c.ErrOrStderr())
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w before the training began", errStopped, cli.StopReason(ctx))
	}
	if err != nil {
		return err
	}
	beside, err := f.loadBeside(ctx, c.ErrOrStderr())
	if err != nil {
		return err
	}
	if sets[0].Covariates, err = f.join(ctx, sets, c.ErrOrStderr()); err != nil {
		return err
	}
	f.dataset = cmp.Or(f.dataset, onboard.PlainName(sets[0].Name))
	e, err := engine.Open(f.engine, engine.Config{}, log)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoEngine, err)
	}
	defer e.Finalize()
	req := f.request(sets, beside, e)
	if req.Elsewhere, err = readElsewhere(f.elsewhere); err != nil {
		return err
	}
	training, err := retrain.Prepare(ctx, req)
	var options retrain.OptionError
	if errors.As(err, &options) {
		return cli.Usage(err)
	}
	if err != nil {
		return err
	}
	report, err := newTrainReport(c.OutOrStdout(), c.ErrOrStderr(), f.jsonLines, f.log)
	if err != nil {
		return err
	}
	report.start(f.dataset, training, e.Kind, sets, beside)
	if why, err := training.Unjudged(); err == nil && why != "" && f.policy != retrain.PolicyNever {
		log.Warn("the version cannot be judged", "why", why)
	}
	err = training.Run(ctx, retrain.Hooks{Progress: report.progress, Done: report.done})
	report.finish()
	if ctx.Err() != nil {
		report.stopped(cli.StopReason(ctx))
		return fmt.Errorf("%w: %w; the same command goes on from the checkpoints in %s", errStopped, cli.StopReason(ctx), training.Folder())
	}
	return errors.Join(err, report.close())
}

// join gives the covariates to the days, and returns their files.
func (f *trainFlags) join(ctx context.Context, sets []input.Dataset, stderr io.Writer) (map[string]string, error) {
	if f.covariates.Any() && len(sets) > 1 {
		return nil, cli.Usage(fmt.Errorf("--covariate is for data of one grid, and these are of %d, such as %v and %v", len(sets), sets[0].Series.Grid, sets[1].Series.Grid))
	}
	return f.covariates.Join(ctx, &sets[0].Series, stderr)
}

// loadBeside reads the other datasets that the training learns from.
func (f *trainFlags) loadBeside(ctx context.Context, stderr io.Writer) ([]input.Dataset, error) {
	if len(f.beside) == 0 {
		return nil, nil
	}
	data := input.Data{Files: f.beside, Mask: f.data.Mask}
	return data.LoadAll(ctx, stderr)
}

// readElsewhere reads a file of 'lacuna lab seas'; without one it returns nil.
func readElsewhere(path string) (*modelstore.Elsewhere, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read --elsewhere: %w", err)
	}
	e := &modelstore.Elsewhere{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return nil, fmt.Errorf("read %s, which 'lacuna lab seas' writes as elsewhere.json: %w", path, err)
	}
	return e, nil
}

// teachersWish returns the number of teachers as a budget has it, in which 0 is no wish.
func (f *trainFlags) teachersWish() int {
	switch {
	case f.teachers < 0:
		return 0
	case f.teachers == 0:
		return -1
	}
	return f.teachers
}

// request returns the flags and data as a request to the training service.
func (f *trainFlags) request(sets, beside []input.Dataset, e *engine.Engine) retrain.Request {
	return retrain.Request{
		Store: f.store, Dataset: f.dataset, From: f.from, Policy: f.policy, Checkpoints: f.checkpoints,
		Data: trainingData(sets), Beside: trainingData(beside), Engine: e, Lacuna: version.String(),
		Options: retrain.Options{
			Size: f.size, Backbone: f.backbone, Preset: f.preset, Strategy: f.strategy, Only: f.only,
			RefitPrior: f.refitPrior, SpreadOnly: f.spreadOnly,
			Budget: modelversion.Budget{
				Steps: f.steps, PriorSteps: f.prior, MembersSteps: f.members, ReliabilitySteps: f.reliability,
				MembersSize: f.membersSize, PriorSize: f.priorSize, Teachers: f.teachersWish(),
				Batch: f.batch, Side: f.side, Stride: f.stride, GapDays: f.gapDays, Seed: f.seed,
			},
		},
		Starter: func(ctx context.Context) (*modelstore.Version, string, error) {
			all, err := starters.List(ctx)
			if err != nil {
				return nil, "", err
			}
			starter, none := fill.StarterFor(all, sets[0].Sample)
			return starter, none, nil
		},
	}
}

// trainingData returns sets as the training service takes them.
func trainingData(sets []input.Dataset) []retrain.Data {
	var all []retrain.Data
	for _, set := range sets {
		all = append(all, trainingOf(set))
	}
	return all
}

func trainingOf(d input.Dataset) retrain.Data {
	return retrain.Data{Series: d.Series, Granules: d.Granules, Covariates: d.Covariates, Variable: d.Variable}
}
