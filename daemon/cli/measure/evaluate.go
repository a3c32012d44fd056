package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/daemon/onboard"
	"lacuna/internal/faults"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/tables"
	"lacuna/pipeline/nn"

	"github.com/spf13/cobra"
)

// evaluateFlags are the command line of lacuna evaluate.
type evaluateFlags struct {
	data      input.Data
	truth     []string
	synthetic string
	days      int // of the synthetic sea
	table     string
	methods   []string
	out       string
	store     string
	dataset   string
	set       input.Dataset // what --data holds
	beside    input.Covariates
	prior     string
	engine    string
	size      string
	mode      string
	budget    tables.Budget
	coarse    evaluate.Coarsening
	time      time.Duration
}

func evaluateCommand() *cobra.Command {
	var flags evaluateFlags
	c := &cobra.Command{
		Use:   "evaluate --data FILE... --table NAME -o DIR",
		Short: "train and score methods on the same held-out overlays, as tables and pictures",
		Long:  evaluateHelp(),
		Example: `  lacuna evaluate --data archive --methods oi,starter,dineof,persistence -o report
  lacuna evaluate --data archive --var CHL --table classical -o report
  lacuna evaluate --data archive --var CHL --methods imputer,oi,dineof --mode delayed -o report
  lacuna evaluate --data archive --truth truth --table mnar -o report
  lacuna evaluate --data archive --covariate sst=sst/:analysed_sst,gradient --methods oi,persistence -o report
  lacuna evaluate --data sst.pack --table classical --gap-days 4 --block-days 2 --side 32 -o report
  lacuna evaluate --synthetic gaussian -o report`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			table, err := flags.validate()
			if err != nil {
				return cli.Usage(err)
			}
			return flags.run(c, table)
		},
	}
	flags.add(c)
	return c
}

func evaluateTables() string {
	var b strings.Builder
	for _, t := range tables.All() {
		fmt.Fprintf(&b, "  %-12s %s\n", t.Name, t.About)
	}
	return b.String()
}

func (f *evaluateFlags) add(c *cobra.Command) {
	s := c.Flags()
	f.data.Add(s)
	f.beside.Add(s)
	s.StringArrayVar(&f.truth, "truth", nil, "`FILE|DIR` with the same days without gaps; may be repeated")
	s.StringVar(&f.synthetic, "synthetic", "", "in place of --data: gaussian")
	s.IntVar(&f.days, "days", 600, "of the synthetic sea")
	s.StringVar(&f.table, "table", "", "`NAME` of the table (this or --methods is required)")
	s.StringSliceVar(&f.methods, "methods", nil, "`NAMES` of methods, separated by commas")
	s.StringVarP(&f.out, "output", "o", "", "`DIR` for results, and for what the run needs to go on (required)")
	s.StringVar(&f.store, "store", "", "model store `DIR` whose champion is a row too")
	s.StringVar(&f.dataset, "dataset", "", "`NAME` of the dataset in the store (default: that of the granules)")
	s.StringVar(&f.prior, "prior", "", "mask prior `FILE.onnx` for guided strategies (default: trained)")
	s.StringVar(&f.engine, "engine", engine.Auto, "`ENGINE`: auto, ort, ort:cuda or xla:cuda; see lacuna engines")
	s.StringVar(&f.size, "size", "", "of networks: tiny, small, base or large (default: small, base on a GPU)")
	s.StringVar(&f.mode, "mode", "", "what methods see besides the day: past, delayed (later days too) or single (default: by table)")
	s.IntVar(&f.budget.Seeds, "seeds", 0, "trainings of each network (default: 1, 3 on a GPU)")
	s.IntVar(&f.budget.Steps, "steps", 0, "training steps of each network (default: by engine)")
	s.IntVar(&f.budget.PriorSteps, "prior-steps", 0, "training steps of the mask prior (default: by engine)")
	s.IntVar(&f.budget.Batch, "batch", 0, "patches a step (default: by engine)")
	s.IntVar(&f.budget.Side, "side", 0, "of windows in cells: 64, 128 or 256 (default: 64, or 32 on a smaller grid)")
	s.Float64Var(&f.budget.HeldOut, "held-out", 0, "`SHARE` of the days that methods are judged on (default: 0.25)")
	s.IntVar(&f.budget.GapDays, "gap-days", 0, "days of neither side between training and held-out days, in one cut, for a short series (default: 12, in two cuts)")
	s.IntVar(&f.budget.BlockDays, "block-days", 0, "consecutive days that the bootstrap draws together (default: 8)")
	s.IntVar(&f.coarse.Factor, "coarsen", 1, "make maps coarser: `CELLS` along the side of squares whose observed values are averaged")
	s.BoolVar(&f.coarse.Majority, "majority", false, "with --coarsen, a square needs a value in half of its sea cells (default: one is enough)")
	s.IntVar(&f.budget.Overlays, "overlays", 0, "to score (default: 200, all on a GPU)")
	s.DurationVar(&f.time, "time-budget", 0, "stop after so long, such as 2h30m; the same command goes on (default: none)")
}

// validate returns the table that is asked for.
func (f *evaluateFlags) validate() (tables.Table, error) {
	var errs faults.List
	errs.Check(f.out != "", "-o DIR is required")
	errs.Check(f.coarse.Factor == 1 || len(f.truth) == 0 && f.store == "", "--coarsen changes the grid: leave --truth and --store out")
	errs.Add(f.beside.Validate())
	errs.Check(!f.beside.Any() || f.synthetic == "", "--synthetic has its own data: leave --covariate out")
	switch f.synthetic {
	case "":
		errs.Add(f.data.Validate())
	case "gaussian":
		errs.Check(len(f.data.Files) == 0 && len(f.truth) == 0 && f.store == "", "--synthetic has its own data: leave --data, --truth and --store out")
		errs.Check(f.days > 0, "--days is %d, must be positive", f.days)
		if f.table == "" && len(f.methods) == 0 {
			f.table = "gaussian"
		}
	default:
		errs.Check(false, "--synthetic is %q, must be gaussian", f.synthetic)
	}
	errs.Check(f.size == "" || slices.Contains([]string{nn.Tiny, nn.Small, nn.Base, nn.Large}, f.size), "--size is %q, must be tiny, small, base or large", f.size)
	b := f.budget
	errs.Check(b.Seeds >= 0 && b.Steps >= 0 && b.PriorSteps >= 0 && b.Batch >= 0 && b.Side >= 0 && b.Overlays >= 0 && b.HeldOut >= 0 && b.GapDays >= 0 && b.BlockDays >= 0 && f.time >= 0, "numbers must not be negative")
	if f.mode != "" {
		var err error
		f.budget.Mode, err = impute.ParseMode(f.mode)
		errs.Add(err)
	}
	table, err := f.choose()
	errs.Add(err)
	return table, errs.Err()
}

func (f *evaluateFlags) choose() (tables.Table, error) {
	switch {
	case f.table != "" && len(f.methods) > 0:
		return tables.Table{}, errors.New("give --table or --methods, not both")
	case len(f.methods) > 0:
		return tables.Free(f.methods, impute.Past)
	case f.table == "":
		return tables.Table{}, errors.New("--table NAME or --methods NAMES is required")
	}
	table, err := tables.Of(f.table)
	if err == nil && table.Name == "mnar" && len(f.truth) == 0 {
		err = errors.New("--table mnar needs --truth DIR: the same days without gaps")
	}
	return table, err
}

func (f *evaluateFlags) run(c *cobra.Command, table tables.Table) error {
	ctx, stop := cli.WithBudget(c.Context(), f.time)
	defer stop()
	log := slog.New(cli.NewConsole(c.ErrOrStderr(), slog.LevelInfo))
	e := &lazyEngine{name: f.engine, log: log}
	defer e.close()
	job, err := f.job(ctx, table, e, c.ErrOrStderr())
	if err != nil {
		return err
	}
	beside, err := f.addCovariates(ctx, &job, c.ErrOrStderr())
	if err != nil {
		return err
	}
	report := cli.NewPhases(c.ErrOrStderr())
	results, err := tables.Run(ctx, job, func(p tables.Progress) {
		phase := fmt.Sprintf("[%d/%d] %s, seed %d: %s", min(p.Done+1, p.Rows), p.Rows, p.Name, p.Seed, p.Phase)
		report.Step(cli.PhaseStep{Phase: phase, Step: p.Step, Steps: p.Steps, Loss: p.Loss})
	})
	report.Finish()
	if ctx.Err() != nil {
		return fmt.Errorf("%w; the same command goes on from what is kept in %s", cli.StopReason(ctx), f.out)
	}
	if err != nil {
		return err
	}
	text := results.Markdown()
	if beside != nil {
		if err := beside.keep(f.out); err != nil {
			return err
		}
		text = beside.markdown() + text
	}
	_, err = fmt.Fprint(c.OutOrStdout(), text)
	return err
}

// job puts data, settings, champion and prior of the table together.
func (f *evaluateFlags) job(ctx context.Context, table tables.Table, e *lazyEngine, stderr io.Writer) (tables.Job, error) {
	job := tables.Job{Table: table, Folder: f.out, Engine: e.open}
	if err := f.read(ctx, &job, stderr); err != nil {
		return job, err
	}
	if err := f.addStored(ctx, &job); err != nil {
		return job, err
	}
	if f.prior != "" {
		data, err := os.ReadFile(f.prior)
		if err != nil {
			return job, fmt.Errorf("read the mask prior: %w", err)
		}
		job.Prior = data
	}
	gpu := false
	if slices.ContainsFunc(job.Table.Rows, func(r tables.Row) bool { return r.Network.Preset != "" || r.By == tables.Stored }) {
		opened, err := e.open()
		if err != nil {
			return job, err
		}
		gpu = opened.Kind != engine.ORT
	}
	size := nn.Small
	if gpu {
		size = nn.Base
	}
	budget := f.budget
	if g := job.Series.Grid; budget.Side == 0 && max(g.Height(), g.Width()) < 64 {
		budget.Side = 32
	}
	if budget.Mode == "" {
		budget.Mode = table.Mode
	}
	job.Settings = tables.Default(cmp.Or(f.size, size), gpu).With(budget)
	if err := job.Settings.Validate(); err != nil {
		return job, cli.Usage(err)
	}
	return job, nil
}

// read reads the days, and the truth if there is one.
func (f *evaluateFlags) read(ctx context.Context, job *tables.Job, stderr io.Writer) error {
	if f.synthetic != "" {
		const cells = 32 // exact kriging of larger windows takes minutes each
		if f.budget.Side == 0 {
			f.budget.Side = cells
		}
		job.Gaussian = evaluate.NewGaussianSea(f.budget.Side)
		job.Dataset, job.Label = "Gaussian random field", "value, standard deviations"
		var err error
		job.Series, err = job.Gaussian.Series(f.days)
		return err
	}
	set, err := f.data.Load(ctx, stderr)
	if err != nil {
		return err
	}
	f.dataset, f.set = cmp.Or(f.dataset, set.Name), set
	job.Dataset, job.Label = f.dataset, set.Variable
	if job.Series, err = f.coarse.Of(set.Series); err != nil {
		return cli.Usage(err)
	}
	if f.coarse.Factor > 1 {
		job.Dataset += fmt.Sprintf(", squares of %d cells, majority %v", f.coarse.Factor, f.coarse.Majority)
	}
	if len(f.truth) == 0 {
		return nil
	}
	if job.Truth, err = f.readTruth(ctx, stderr); err != nil {
		return fmt.Errorf("read the truth: %w", err)
	}
	return nil
}

// readTruth reads days without gaps, which are no series to learn from.
func (f *evaluateFlags) readTruth(ctx context.Context, stderr io.Writer) ([]field.Field, error) {
	paths, err := onboard.GranuleFiles(f.truth...)
	if err != nil {
		return nil, err
	}
	reader, err := cli.NewReader()
	if err != nil {
		return nil, err
	}
	bar := cli.NewProgress(stderr, "reading the truth", len(paths))
	defer bar.Finish()
	var fields []field.Field
	for _, path := range paths {
		g, err := reader.Read(ctx, path, f.data.Options)
		if err != nil {
			return nil, err
		}
		fields = append(fields, g.Fields...)
		bar.Step()
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("no .nc file below %v", f.truth)
	}
	return fields, nil
}

// lazyEngine opens an engine once, when a network has to run.
type lazyEngine struct {
	name   string
	log    *slog.Logger
	opened *engine.Engine
}

func (l *lazyEngine) open() (*engine.Engine, error) {
	if l.opened != nil {
		return l.opened, nil
	}
	var err error
	l.opened, err = engine.Open(l.name, engine.Config{}, l.log)
	return l.opened, err
}

func (l *lazyEngine) close() {
	if l.opened != nil {
		l.opened.Finalize()
	}
}
