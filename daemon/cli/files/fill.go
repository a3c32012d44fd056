package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/daemon/covariates"
	"lacuna/daemon/fill"
	"lacuna/daemon/onboard"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/skill"
	"lacuna/publish"
	"lacuna/publish/netcdf"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type fillFlags struct {
	out     string
	history []string
	mask    string
	layout  netcdf.Layout
	options ingest.Options
	fill    infer.Config
	model   input.Model
	screen  fill.Screening
	beside  covariates.Covariates
	named   input.Covariates

	tuned   map[string]fill.Tunings      // by grid and transform, for all granules of the run
	weighed map[string][]skill.Departure // likewise, of the model that was chosen
	noted   *string                      // the last note on an analysis
	told    map[string]bool              // warnings of sea masks that were printed
	refused map[string]fill.Screened     // by sha256, of the granules that were screened together
}

func fillCommand() *cobra.Command {
	flags := fillFlags{fill: infer.DefaultConfig()}
	c := &cobra.Command{
		Use:   "fill IN.nc... -o DIR",
		Short: "fill the gaps of granules",
		Long:  fillHelp,
		Example: `  lacuna fill 20240312_chl.nc -o products --history archive/
  lacuna fill week/*.nc -o products --var CHL --model oi
  lacuna fill today.nc -o products --history archive/ --store models --tier full --members-file`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if flags.out == "" {
				return cli.Usage(errors.New("-o DIR is required"))
			}
			flags.choose()
			if err := errors.Join(flags.named.Validate(), flags.fill.Validate(), flags.model.Validate(flags.fill), flags.options.Validate(), flags.layout.Validate(), flags.screen.Ice.Validate()); err != nil {
				return cli.Usage(err)
			}
			return flags.run(c.Context(), args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVarP(&flags.out, "output", "o", "", "`DIR` for the products (required)")
	f.StringArrayVar(&flags.history, "history", nil, "`FILE|DIR` with granules of neighbouring days; may be repeated")
	flags.model.Add(f, &flags.fill)
	addReading(f, &flags.options)
	f.StringVar((*string)(&flags.layout), "layout", string(netcdf.Plain), "`LAYOUT` of the products: lacuna (names, units and packing of the input), ghrsst or cmems")
	f.StringVar(&flags.mask, "mask", "auto", "sea mask: `FILE`, builtin, learned, or auto (the granule's own, else builtin; learned where that is wrong)")
	addWindow(f, &flags.fill)
	input.AddTests(f, &flags.screen.Tests, &flags.screen.Ice)
	flags.named.Add(f)
	return c
}

// addReading adds the flags that say how files are read.
func addReading(f *pflag.FlagSet, o *ingest.Options) {
	f.StringVar(&o.Product, "product", "", "product `NAME` that says how to read the files")
	f.StringVar(&o.Variable, "var", "", "`VARIABLE` to fill")
	input.AddPart(f, o)
	f.StringArrayVar(&o.Quality, "quality", nil, "quality `RULE`, such as 'quality_level >= 4'; may be repeated")
}

// addWindow adds the flags of the window of days.
func addWindow(f *pflag.FlagSet, c *infer.Config) {
	f.IntVar(&c.PastDays, "past-days", c.PastDays, "how many days back to look")
	f.IntVar(&c.FutureDays, "future-days", infer.JudgedFutureDays, "how many days ahead to look; 0: as in near-real-time")
	f.DurationVar(&c.Back, "past", 0, "how far back to look, such as 36h, in place of --past-days")
	f.DurationVar(&c.Ahead, "future", 0, "how far ahead to look, in place of --future-days")
}

// choose takes the method from the flags.
func (f *fillFlags) choose() {
	f.tuned, f.weighed, f.noted, f.told = map[string]fill.Tunings{}, map[string][]skill.Departure{}, new(string), map[string]bool{}
	f.fill.Method = f.model.Method()
}

func (f fillFlags) run(ctx context.Context, inputs []string, stdout, stderr io.Writer) error {
	reader, err := cli.NewReader()
	if err != nil {
		return err
	}
	f.screen.Reader, f.refused, f.beside = reader, map[string]fill.Screened{}, f.named.Open(reader, stderr)
	filler, err := f.model.Open(f.fill.Method, stderr)
	if err != nil {
		return err
	}
	defer filler.Close()
	paths, err := onboard.GranuleFiles(f.history...)
	if err != nil {
		return err
	}
	granules, errs, err := f.readAll(ctx, reader, inputs, paths, stderr)
	if err != nil {
		return err
	}
	history := make([]ingest.Granule, 0, len(granules))
	for _, g := range granules {
		history = append(history, g)
	}
	slices.SortFunc(history, func(a, b ingest.Granule) int { return strings.Compare(a.Name, b.Name) })
	if err := f.screenAll(ctx, reader, history); err != nil {
		return err
	}
	for path, g := range granules {
		at := slices.IndexFunc(history, func(h ingest.Granule) bool { return h.SHA256 == g.SHA256 && h.Whole() == g.Whole() })
		granules[path] = history[at]
	}
	inputs = slices.Compact(slices.Clone(inputs))
	for i, path := range inputs {
		g, ok := granules[path]
		if !ok {
			continue // its error is in errs
		}
		out, err := f.one(ctx, reader, filler, fill.Job{Granule: g, History: history, Spend: i == len(inputs)-1}, stderr)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			errs = append(errs, err)
			continue
		}
		if _, err := fmt.Fprintln(stdout, out); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// readAll reads inputs and history, each file once. An input that cannot be read is
// in errs; a file of the history is left out.
func (f fillFlags) readAll(ctx context.Context, reader *ingest.Reader, inputs, paths []string, stderr io.Writer) (granules map[string]ingest.Granule, errs []error, err error) {
	granules = map[string]ingest.Granule{}
	var left leftOut
	bar := cli.NewProgress(stderr, "reading", len(inputs)+len(paths))
	defer bar.Finish()
	known := map[string]bool{} // files by their whole path: an input may lie in the history
	for _, path := range slices.Concat(inputs, paths) {
		whole, err := filepath.Abs(path)
		if err != nil {
			return nil, nil, err
		}
		if !known[whole] {
			known[whole] = true
			g, err := reader.Read(ctx, path, fill.Reading(f.options, f.screen.Ice))
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			switch {
			case err == nil && slices.Contains(inputs, path):
				granules[path] = g
			case err == nil:
				granules[path] = g.Neighbour()
			case slices.Contains(inputs, path):
				errs = append(errs, err)
			default: // a poorer analysis, not a failure
				left.add(err)
			}
		}
		bar.Step()
	}
	bar.Finish()
	left.print(stderr)
	return granules, errs, nil
}

// one fills one granule and returns the path of its product.
func (f fillFlags) one(ctx context.Context, reader *ingest.Reader, filler *input.Filler, job fill.Job, stderr io.Writer) (string, error) {
	g := job.Granule
	sea, err := fill.SeaMask(ctx, f.mask, reader, g, job.History)
	if err != nil {
		return "", fmt.Errorf("sea mask for %s: %w", g.Name, err)
	}
	if sea.Warning != "" && !f.told[sea.Warning] { // the inputs of a run share their days, and so their mask
		f.told[sea.Warning] = true
		fmt.Fprintf(stderr, "lacuna: %s: %s\n", g.Name, sea.Warning)
	}
	job.Sea, job.Seen, job.SeaMask = sea.Mask, sea.Seen, sea.Origin
	if err := f.screened(ctx, &job, stderr); err != nil {
		return "", err
	}
	g = job.Granule
	job.Dataset, job.Fill, job.Layout = fill.StandAloneDataset(g), f.fill, f.layout
	job.Fill.Step = fill.StepOf(g, job.History)
	if err := filler.Settle(&job, func(chosen fill.Job) ([]skill.Departure, error) { return f.weigh(ctx, chosen, stderr) }); err != nil {
		return "", err
	}
	if job.Constants, err = f.constants(ctx, job, stderr); err != nil {
		return "", err
	}
	if job.Explained, err = fill.Explain(ctx, job, &f.beside, false); err != nil {
		return "", err
	}
	f.tellCovariates(job, stderr)
	job.Fill.Members = f.model.MembersOf(job.Fill)
	made, err := fill.MadeAt(time.Now(), os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return "", err
	}
	job.Revision, job.Created, job.Filled = 1, made, made
	bar := cli.NewProgress(stderr, g.Name, 0)
	outcome, err := fill.Analyse(ctx, job, bar.Set)
	bar.Finish()
	if err != nil {
		return "", err
	}
	if outcome.Note != "" && outcome.Note != *f.noted { // it is that of the series, and would come with every granule
		fmt.Fprintf(stderr, "%s: %s\n", g.Name, outcome.Note)
	}
	*f.noted = outcome.Note
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(f.out, fill.ProductName(g.Name)+".nc")
	members := publish.MembersName(path)
	_, _, err = outcome.Write(path, members, filepath.Base(members))
	return path, err
}

// constants returns the constants of optimal interpolation for a job. They are
// tuned on the days of all granules of the grid, once; for a product in near real
// time on those before it, and again when these have doubled.
func (f fillFlags) constants(ctx context.Context, job fill.Job, stderr io.Writer) (*infer.Constants, error) {
	if job.Fill.Method != "oi" && job.Trust == nil && job.Scaling == nil {
		return nil, nil
	}
	g, key := job.Granule, seriesOf(job)
	fields := slices.Clone(g.Fields)
	for _, h := range job.History {
		if h.SHA256 != g.SHA256 && h.Fields[0].Grid.Same(g.Fields[0].Grid) {
			fields = append(fields, h.Fields...)
		}
	}
	kept := f.tuned[key]
	known := kept.Serving()
	if job.Fill.Future() == 0 {
		first, _ := field.Span(g.Fields)
		fields = slices.DeleteFunc(fields, func(at field.Field) bool { return !at.Time.Before(first) })
		known = kept.Before(first)
		if known != nil && min(len(fields), infer.TuningFields(g.Fields[0].Grid)) >= 2*known.Evidence.Fields {
			known = nil
		}
	}
	if known != nil {
		return known, nil
	}
	bar := cli.NewProgress(stderr, "tuning optimal interpolation", 0)
	c, err := infer.Tune(ctx, fields, job.Sea, g.Transform, job.Fill, job.Terms(&f.beside))
	bar.Finish()
	if err != nil {
		return nil, err
	}
	if job.Fill.Future() > 0 || c.Evidence.Fields > 0 { // else more days may be before the next
		f.tuned[key] = kept.Add(fill.Tuning{Constants: c})
	}
	return &c, nil
}

// tellCovariates says once which covariates are used for a job, and why others are not.
func (f fillFlags) tellCovariates(job fill.Job, stderr io.Writer) {
	if job.Constants == nil || job.Constants.Covariates == nil {
		return
	}
	r := job.Constants.Covariates
	lines := []string{r.Note}
	if r.Note == "" {
		lines = nil
		for _, v := range r.Judged {
			lines = append(lines, "covariate "+v.String())
		}
	}
	for _, line := range lines {
		if !f.told[line] {
			f.told[line] = true
			fmt.Fprintf(stderr, "lacuna: %s\n", line)
		}
	}
}

// seriesOf names the series of a job: its grid and its transform.
func seriesOf(job fill.Job) string {
	return fmt.Sprint(job.Granule.Fields[0].Grid, job.Granule.Transform)
}

// weigh scores the model of a job, with the first granule of its grid, on the days
// of all of them.
func (f fillFlags) weigh(ctx context.Context, job fill.Job, stderr io.Writer) ([]skill.Departure, error) {
	key := seriesOf(job)
	if days, ok := f.weighed[key]; ok {
		return days, nil
	}
	job.Trust = &skill.Trust{}
	var err error
	if job.Constants, err = f.constants(ctx, job, stderr); err != nil {
		return nil, err
	}
	if job.Explained, err = fill.Explain(ctx, job, &f.beside, true); err != nil {
		return nil, err
	}
	bar := cli.NewProgress(stderr, "weighing the model", 0)
	days, err := fill.Weigh(ctx, job, bar.Set)
	bar.Finish()
	if err == nil {
		f.weighed[key] = days
	}
	return days, err
}

// shortTime formats times of fields for tables: the day, and the time of day
// where there is one.
func shortTime(t time.Time) string {
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02 15:04")
}
