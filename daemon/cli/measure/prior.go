package measure

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/internal/faults"
	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/field"
	"lacuna/pipeline/lab/chart"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"

	"github.com/spf13/cobra"
)

func priorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "prior",
		Short: "look at what a model has learned about gaps",
		Long: `Prior shows what the mask prior of a model has learned: which parts of the sea
are seen together, and which vanish together under a cloud.

Exit status: 0 done, 1 failed, 2 usage.`,
	}
	return cli.Group(c, nil, priorSampleCommand())
}

// sampleFlags are the command line of lacuna prior sample.
type sampleFlags struct {
	data          input.Data
	store, file   string
	version       string
	out, engine   string
	count, side   int
	seed          uint64
	weight        float64
	guidanceFound bool
}

func priorSampleCommand() *cobra.Command {
	var flags sampleFlags
	c := &cobra.Command{
		Use:   "sample (--store DIR | --prior FILE.onnx) --data FILE... -o SHEET.png",
		Short: "draw masks from a prior onto a contact sheet",
		Long: `Sample draws a contact sheet, a column for each of some days of the data: the
real mask, a mask that the prior draws for the place and season, one that is
pulled towards a thinned copy of what was observed, and the context and the
query that it splits the observation into. On it one sees whether the prior
draws clouds or noise.

Exit status: 0 the sheet was written, 1 failed, 2 usage.`,
		Example: "  lacuna prior sample --store var/store --data archive -o sheet.png",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := flags.validate(); err != nil {
				return cli.Usage(err)
			}
			flags.guidanceFound = !c.Flags().Changed("weight")
			return flags.run(c)
		},
	}
	f := c.Flags()
	flags.data.Add(f)
	f.StringVar(&flags.store, "store", "", "model store `DIR`")
	f.StringVar(&flags.version, "version", "champion", "`VERSION` in the store")
	f.StringVar(&flags.file, "prior", "", "prior `FILE.onnx` instead of a store")
	f.StringVarP(&flags.out, "output", "o", "", "`FILE.png` to write (required)")
	f.IntVar(&flags.count, "count", 6, "number of days")
	f.IntVar(&flags.side, "side", 64, "of the windows in cells")
	f.Uint64Var(&flags.seed, "seed", 1, "another seed draws other masks")
	f.Float64Var(&flags.weight, "weight", prior.DefaultGuidance().Weight, "strength of guidance (default: that of the version's card)")
	f.StringVar(&flags.engine, "engine", engine.Auto, "`ENGINE`; see lacuna engines")
	return c
}

func (f *sampleFlags) validate() error {
	errs := faults.Of(f.data.Validate())
	errs.Check((f.store == "") != (f.file == ""), "either --store DIR or --prior FILE.onnx is required")
	errs.Check(f.out != "", "-o SHEET.png is required")
	errs.Check(f.count > 0 && f.side > 0, "--count and --side must be positive")
	return errs.Err()
}

func (f *sampleFlags) run(c *cobra.Command) error {
	ctx := c.Context()
	bytes, weight, err := f.read()
	if err != nil {
		return err
	}
	set, err := f.data.Load(ctx, c.ErrOrStderr())
	if err != nil {
		return err
	}
	e, err := engine.Open(f.engine, engine.Config{}, slog.New(cli.NewConsole(c.ErrOrStderr(), slog.LevelInfo)))
	if err != nil {
		return err
	}
	defer e.Finalize()
	model, err := prior.Load(e, bytes)
	if err != nil {
		return err
	}
	defer model.Close()
	cfg := prior.DefaultGuidance()
	cfg.Weight, cfg.Batch = weight, min(cfg.Batch, f.count)
	exhibits, err := f.exhibits(ctx, model, set.Series, cfg)
	if err != nil {
		return err
	}
	if err := chart.WritePNG(f.out, sheet(exhibits, set).Draw()); err != nil {
		return err
	}
	for _, x := range exhibits {
		fmt.Fprintf(c.OutOrStdout(), "%s  observed %3.0f %%  drawn %3.0f %%  guided %3.0f %%  context %3.0f %% of the observed\n",
			x.Patch.Time.Format(time.DateOnly), 100*over(x.Observed, x.Patch.Sea), 100*over(x.Unconditional, x.Patch.Sea),
			100*over(x.Guided, x.Patch.Sea), 100*over(x.Context, x.Observed))
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), f.out)
	return err
}

// read returns the prior file and its strength of guidance.
func (f *sampleFlags) read() ([]byte, float64, error) {
	if f.file != "" {
		data, err := os.ReadFile(f.file)
		return data, f.weight, err
	}
	s := modelstore.New(f.store, time.Now)
	id, err := s.Resolve(f.version)
	if err != nil {
		return nil, 0, err
	}
	v, err := s.Load(id)
	if err != nil {
		return nil, 0, err
	}
	if !v.Has(modelstore.PriorFile) {
		return nil, 0, fmt.Errorf("version %s has no %s; it was trained with a strategy that needs none", id, modelstore.PriorFile)
	}
	if f.guidanceFound && v.Card.Guidance > 0 {
		f.weight = v.Card.Guidance
	}
	data, err := v.ReadFile(modelstore.PriorFile)
	return data, f.weight, err
}

// exhibits draws masks for windows of days that are spread over the series.
func (f *sampleFlags) exhibits(ctx context.Context, m *prior.Model, s samples.Series, cfg prior.GuideConfig) ([]masks.Exhibit, error) {
	days, err := s.Whole()
	if err != nil {
		return nil, err
	}
	refs := days.Refs(f.side, f.side, partition.MinObservedCells)
	if len(refs) == 0 {
		return nil, fmt.Errorf("no window of %d cells has %d observed ones; try a larger --side", f.side, partition.MinObservedCells)
	}
	n := min(f.count, len(refs))
	patches := make([]samples.Patch, n)
	for i := range patches {
		patches[i] = days.Cut(refs[i*len(refs)/n])
	}
	if grid := days.Grid(); !m.FitsGrid(grid.Height(), grid.Width()) {
		return nil, fmt.Errorf("the prior was learned on another grid than the %dx%d cells of the data", grid.Height(), grid.Width())
	}
	m.Recall(days)
	return masks.Exhibits(ctx, m, patches, cfg, noise.New(f.seed, "prior", "sheet"))
}

// sheet lays the exhibits out, one column each.
func sheet(exhibits []masks.Exhibit, set input.Dataset) chart.Contact {
	w := exhibits[0].Patch.Window
	lat := set.Series.Grid.Lat
	c := chart.Contact{
		Title: "Masks of " + cmp.Or(set.Variable, set.Name, "real days"), Caption: "blue: observed, white: gap; context and query are the guided partition of the real mask",
		Height: w.Height, Width: w.Width, NorthUp: lat[len(lat)-1] > lat[0], Sea: exhibits[0].Patch.Sea,
	}
	for _, x := range exhibits {
		if x.Patch.Window != w {
			c.Sea = nil // one sheet shows one coast
		}
	}
	for _, row := range []struct {
		name string
		mask func(masks.Exhibit) []bool
	}{
		{"real", func(x masks.Exhibit) []bool { return x.Observed }},
		{"unconditional", func(x masks.Exhibit) []bool { return x.Unconditional }},
		{"anchor", func(x masks.Exhibit) []bool { return x.Anchor }},
		{"guided", func(x masks.Exhibit) []bool { return x.Guided }},
		{"context", func(x masks.Exhibit) []bool { return x.Context }},
		{"query", func(x masks.Exhibit) []bool { return x.Query }},
	} {
		r := chart.ContactRow{Name: row.name}
		for _, x := range exhibits {
			r.Masks = append(r.Masks, field.Mask(row.mask(x)))
			r.Captions = append(r.Captions, x.Patch.Time.Format(time.DateOnly))
		}
		c.Rows = append(c.Rows, r)
	}
	return c
}

// over returns the share of b that a covers.
func over(a, b []bool) float64 {
	both, all := 0, 0
	for i := range b {
		if b[i] {
			all++
			if a[i] {
				both++
			}
		}
	}
	return float64(both) / float64(max(all, 1))
}
