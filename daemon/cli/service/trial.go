package service

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/cli"

	"github.com/spf13/cobra"

	"lacuna/internal/figure"
)

func trialCommand() *cobra.Command {
	var f trialFlags
	c := &cobra.Command{
		Use:   "trial",
		Short: "a new version of a dataset: try it beside the one in use, then accept or refuse it",
		Long: `Trial is about new versions of the data of a dataset. Until one is accepted the
old one goes on. Of Copernicus Marine the service itself tries a version that is
announced, on trial_days days; a version in another archive is tried by hand. Its
granules are fetched and filled in a folder of the state, and no receiver is told
of their products. The report compares both versions on the cells that both
observed, on the scale of the transform. All can be used while the daemon runs.

Exit status: 0 done, 1 failed, 2 usage, 78 bad configuration.`,
		Example: `  lacuna trial run --dataset black-sea-chl --version 202411 --config lacuna.yaml
  lacuna trial show --dataset black-sea-chl --config lacuna.yaml
  lacuna trial accept --dataset black-sea-chl --reason 'bias below 1 %' --config lacuna.yaml`,
	}
	p := c.PersistentFlags()
	cli.AddConfig(p, &f.config)
	p.StringVar(&f.trial.Dataset, "dataset", "", "`NAME` of the dataset (required)")
	p.BoolVar(&f.json, "json", false, "print JSON")
	return cli.Group(c, nil, f.run(), f.show(), f.decide("accept", "take the version that was tried: it is the one in use from now on", true),
		f.decide("refuse", "keep the version in use, and have no more alarms of the one that was tried", false))
}

type trialFlags struct {
	config string
	json   bool
	trial  daemon.Trial
}

// service returns the service of the configuration.
func (f *trialFlags) service(stderr io.Writer) (*daemon.Daemon, error) {
	if f.trial.Dataset == "" {
		return nil, cli.Usage(errors.New("--dataset NAME is required"))
	}
	flags := daemonFlags{config: f.config, log: "console"}
	return flags.daemon(stderr)
}

func (f *trialFlags) run() *cobra.Command {
	c := &cobra.Command{
		Use:   "run --dataset NAME (--version LABEL | --archive ADDRESS)",
		Short: "fetch and fill the latest days of a new version beside the old one, and compare them",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (f.trial.Version == "") == (f.trial.Archive == "") {
				return cli.Usage(errors.New("either --version LABEL or --archive ADDRESS is required"))
			}
			service, err := f.service(c.ErrOrStderr())
			if err != nil {
				return err
			}
			var report daemon.Versions
			err = cli.During(c.ErrOrStderr(), "trying the version", func() (err error) {
				report, err = service.TryVersion(c.Context(), f.trial)
				return err
			})
			if err != nil {
				return err
			}
			return f.print(c, report)
		},
	}
	c.Flags().StringVar(&f.trial.Version, "version", "", "`LABEL` of a version of Copernicus Marine, such as 202411")
	c.Flags().StringVar(&f.trial.Archive, "archive", "", "`ADDRESS` of the archive that has the new version, as lacuna init takes it")
	c.Flags().IntVar(&f.trial.Days, "days", 0, "`N` days to compare, back from the newest (default: trial_days of the dataset)")
	return c
}

func (f *trialFlags) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show --dataset NAME",
		Short: "the comparison of the version that was tried last, and changes of version attributes",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			service, err := f.service(c.ErrOrStderr())
			if err != nil {
				return err
			}
			known, err := service.Versions(f.trial.Dataset)
			if err != nil {
				return err
			}
			return f.print(c, known)
		},
	}
}

func (f *trialFlags) decide(use, short string, accepted bool) *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   use + " --dataset NAME --reason TEXT",
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if strings.TrimSpace(reason) == "" {
				return cli.Usage(errors.New("--reason TEXT is required: it is kept"))
			}
			service, err := f.service(c.ErrOrStderr())
			if err != nil {
				return err
			}
			todo, err := service.Decide(f.trial.Dataset, accepted, reason)
			if err == nil && todo != "" {
				_, err = fmt.Fprintln(c.OutOrStdout(), "now: "+todo)
			}
			return err
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why (required)")
	return c
}

func (f *trialFlags) print(c *cobra.Command, known daemon.Versions) error {
	return printAs(c, f.json, known, func(w io.Writer) {
		for _, change := range known.Changes {
			fmt.Fprintf(w, "changed:\t%v\n", change)
		}
		for _, d := range known.Decisions {
			word := "refused"
			if d.Accepted {
				word = "accepted"
			}
			fmt.Fprintf(w, "%s:\t%s, %s: %s\n", word, d.Version, d.At.UTC().Format(time.RFC3339), d.Why)
		}
		r := known.Report
		if r == nil {
			fmt.Fprintln(w, "tried:\tno version yet")
			return
		}
		fmt.Fprintf(w, "tried:\t%s, %s; products in %s\n", r.Version, r.At.UTC().Format(time.RFC3339), r.Folder)
		if r.InUse != "" {
			fmt.Fprintf(w, "in use:\t%s\n", r.InUse)
		}
		fmt.Fprintf(w, "result:\t%v\n", r)
		if r.Aside > 0 {
			fmt.Fprintf(w, "set aside:\t%d granules of it cannot be used\n", r.Aside)
		}
		fmt.Fprintln(w, "day\tcommon cells\tbias\tRMSE\tobserved\tbefore")
		for _, d := range r.Days {
			fmt.Fprintf(w, "%s\t%d\t%+.3g\t%.3g\t%s\t%s\n", d.Time.UTC().Format(time.DateOnly), d.Common, d.Bias, d.RMSE, figure.Percent(d.ObservedNew), figure.Percent(d.ObservedOld))
		}
	})
}
