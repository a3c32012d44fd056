package service

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"

	"lacuna/internal/figure"
)

func tuningCommand() *cobra.Command {
	var o operator
	c := &cobra.Command{
		Use:   "tuning",
		Short: "the constants of optimal interpolation: show them, or have them tuned again",
		Long: `Tuning is about the constants of optimal interpolation of a dataset: how far and
how long anomalies are alike, and how much of them is noise. They are tuned on
its own days when 15 are there, again whenever there are twice as many, and kept
with what they were tuned on. A day is never scored, nor filled in near real
time, with constants that were tuned on it or on a later one. Covariates are judged
with them, from 40 days on, and each is shown with what it saves. Scales under fill.oi in the configuration win. It can be used while
the daemon runs.

Exit status: 0 done, 1 failed, 2 usage, 78 bad configuration.`,
		Example: `  lacuna tuning show --config /etc/lacuna/lacuna.yaml
  lacuna tuning again --dataset black-sea-chl --config lacuna.yaml`,
	}
	o.add(c)
	return cli.Group(c, nil, o.showTuning(), o.tuneAgain())
}

func (o *operator) showTuning() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "the constants, and every tuning of them with its days, overlays, error and coverage",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := o.load()
			if err != nil {
				return err
			}
			all, err := cfg.Operate().Tunings(o.dataset)
			if err != nil {
				return err
			}
			for i := range all {
				all[i].All = emptyList(all[i].All)
			}
			return o.print(c, emptyList(all), func(w io.Writer) {
				for i, s := range all {
					if i > 0 {
						fmt.Fprintln(w)
					}
					printTuning(w, s)
				}
			})
		},
	}
}

func printTuning(w io.Writer, s operate.TuningStatus) {
	fmt.Fprintf(w, "dataset:\t%s\n", s.Dataset)
	if len(s.All) == 0 {
		fmt.Fprintf(w, "constants:\tthe defaults: nothing was tuned yet, or a model fills\n")
	} else {
		last := s.All[len(s.All)-1]
		text := cmp.Or(last.Note, fmt.Sprintf("length %.3g km, time %.3g days, nugget %.2g, factor on sigma %.2f",
			last.LengthKM, last.Days, last.Nugget, last.SigmaScale))
		fmt.Fprintf(w, "constants:\t%s\ngrid:\t%s, %s\n", text, s.Grid, s.Transform)
		if r := last.Covariates; r != nil {
			for _, v := range r.Judged {
				fmt.Fprintf(w, "covariate:\t%v\n", v)
			}
			if r.Note != "" {
				fmt.Fprintf(w, "covariates:\t%s\n", r.Note)
			}
		}
	}
	for i := len(s.All) - 1; i >= 0; i-- {
		t, e := s.All[i], s.All[i].Evidence
		fmt.Fprintf(w, "tuned:\t%s  on %d fields of %s to %s", t.At.UTC().Format(time.RFC3339), e.Fields,
			e.From.UTC().Format(time.DateOnly), e.To.UTC().Format(time.DateOnly))
		if t.Tuned() {
			fmt.Fprintf(w, ", %d overlays: MSE %s, %s within the 90 %% interval", e.Overlays, figure.Number(e.MSE), figure.Percent(e.Coverage90))
		}
		fmt.Fprintln(w)
	}
	if s.Again {
		fmt.Fprintf(w, "again:\twith the next granule that optimal interpolation fills\n")
	}
}

func (o *operator) tuneAgain() *cobra.Command {
	return &cobra.Command{
		Use:   "again",
		Short: "have a dataset tuned anew with its next granule; those before stay in the list",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := o.load()
			if err != nil {
				return err
			}
			done, err := cfg.Operate().TuneAgain(o.dataset)
			if err != nil {
				return err
			}
			return o.print(c, done, func(w io.Writer) {
				fmt.Fprintf(w, "%s is tuned again with the next granule that optimal interpolation fills, by the daemon, or by the next run or once\n", done.Dataset)
			})
		},
	}
}
