package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"lacuna/daemon/cli"
	"lacuna/daemon/feed"
	"lacuna/daemon/retrain"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/infer/trial"
	"lacuna/pipeline/nn"

	"github.com/spf13/cobra"
)

// benchFlags are the command line of lacuna bench.
type benchFlags struct {
	trial  trial.Config
	grid   feed.Size
	tiers  []string
	engine string
	asJSON bool
}

func benchCommand() *cobra.Command {
	flags := benchFlags{trial: trial.DefaultConfig()}
	c := &cobra.Command{
		Use:   "bench",
		Short: "measure how fast this machine fills",
		Long: `Bench fills a field of a simulated sea with DINEOF, optimal interpolation and
networks of random weights, which cost what trained ones cost, and prints where
the time went: the analysis by optimal interpolation that networks begin with,
the look of the imputer, the members, and what the host did beside them. The
first row of networks compiles them; the rows of the tiers find them compiled,
as every field after the first does.

Nothing is written, and nothing of the sea can be learned from it. The figures
are of this machine as it is now: other work on it shows.

Exit status: 0 done, 1 failed, 2 usage.`,
		Example: `  lacuna bench
  lacuna bench --grid 790x1101 --size base --tiers fast,standard,full`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := flags.settle(); err != nil {
				return cli.Usage(err)
			}
			return flags.run(c)
		},
	}
	f, t := c.Flags(), &flags.trial
	f.StringVar(&t.Product, "product", t.Product, "simulated `PRODUCT`; 'lacuna simulate --help' lists them")
	f.Var(&flags.grid, "grid", "size of the grid; default: one fit for a demo; that of blk-chl is 790x1101")
	f.IntVar(&t.Days, "days", t.Days, "days before the field that are looked at")
	f.StringVar(&t.Size, "size", t.Size, "of the networks: tiny, small, base or large")
	f.StringVar(&flags.engine, "engine", engine.Auto, "what networks run on; 'lacuna engines' lists them")
	f.StringSliceVar(&flags.tiers, "tiers", []string{"fast", "standard"}, "which tiers: fast, standard, full")
	f.IntVar(&t.Network.Members, "members", 0, "how many members to draw (default: 4 for standard, 16 for full)")
	f.IntVar(&t.Network.WindowCells, "window", 0, "side of the largest window in cells (default: 512, on a GPU 1024)")
	f.IntVar(&t.Network.Batch, "batch", 0, "windows or members at a time on a GPU (default: 8)")
	f.BoolVar(&flags.asJSON, "json", false, "print JSON")
	return c
}

// settle checks the flags and puts them where the trial takes them from.
func (f *benchFlags) settle() error {
	errs := []error{f.trial.Network.Validate()}
	f.trial.Tiers = nil
	for _, name := range f.tiers {
		tier := infer.Tier(name)
		errs = append(errs, infer.Network{Tier: tier}.Validate())
		f.trial.Tiers = append(f.trial.Tiers, tier)
	}
	if f.trial.Days < 0 || f.trial.Days > 60 {
		errs = append(errs, fmt.Errorf("--days is %d, must be 0..60", f.trial.Days))
	}
	if sizes := []string{nn.Tiny, nn.Small, nn.Base, nn.Large}; !slices.Contains(sizes, f.trial.Size) {
		errs = append(errs, fmt.Errorf("--size is %q, must be one of %v", f.trial.Size, sizes))
	}
	f.trial.Height, f.trial.Width = f.grid.Height, f.grid.Width
	return errors.Join(errs...)
}

func (f *benchFlags) run(c *cobra.Command) error {
	stderr := c.ErrOrStderr()
	e, err := engine.Open(f.engine, engine.Config{}, slog.New(cli.NewConsole(stderr, slog.LevelWarn)))
	if err != nil {
		return err
	}
	defer e.Finalize()
	bar := cli.NewProgress(stderr, "", 0)
	began := func(part string) func(done, total int) {
		bar.Finish()
		bar = cli.NewProgress(stderr, part, 0)
		return bar.Set
	}
	report, err := trial.Run(c.Context(), f.trial, infer.Device{Backend: e, GPU: e.Kind != engine.ORT}, began)
	bar.Finish()
	if err != nil {
		return err
	}
	report.Engine, report.PeakMB = e.Kind+" on "+retrain.Hardware(), retrain.PeakMemory()>>20
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(report)
	}
	return report.Print(c.OutOrStdout())
}
