package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"lacuna/daemon"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"

	"lacuna/internal/figure"
)

type planFlags struct {
	daemonFlags
	dataset string
	json    bool
}

func planCommand() *cobra.Command {
	var flags planFlags
	c := &cobra.Command{
		Use:   "plan",
		Short: "what would be done now, and why; changes nothing",
		Long: `Plan lists the archives, looks at the ledger and says what the daemon would do
now: what it would fetch, which granules it would fill, whether it would train
and what it would publish, each with the reason. It changes nothing and can be
used while the daemon runs; what that daemon is at just now is part of the plan
until it is done.

Exit status: 0 done (also where nothing is to be done), 1 a part of the plan
could not be made (the rest is printed), 2 usage, 78 bad configuration.`,
		Example: "  lacuna plan --config /etc/lacuna/lacuna.yaml\n  lacuna plan --config lacuna.yaml --dataset black-sea-chl --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := flags.daemon(c.ErrOrStderr())
			if err != nil {
				return err
			}
			plan, err := d.Station().Plan(c.Context(), flags.dataset)
			if errors.Is(err, daemon.ErrConfig) {
				return err
			}
			return errors.Join(flags.print(c.OutOrStdout(), plan), err)
		},
	}
	flags.add(c)
	c.Flags().StringVar(&flags.dataset, "dataset", "", "`NAME` of the dataset; all of them where it is not given")
	c.Flags().BoolVar(&flags.json, "json", false, "print JSON")
	return c
}

func (f *planFlags) print(w io.Writer, p operate.Plan) error {
	if f.json {
		return json.NewEncoder(w).Encode(p)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range p.Fetch {
		fmt.Fprintf(table, "fetch\t%s\t%s\t%s, %s, %s: %s\n", s.Dataset, s.Name, s.Action, figure.Bytes(s.Size), s.Lane, s.Why)
	}
	for _, s := range p.Fill {
		fmt.Fprintf(table, "fill\t%s\t%s\trevision %d: %s\n", s.Dataset, s.Granule, s.Revision, s.Why)
	}
	for _, s := range p.Reanalyse {
		fmt.Fprintf(table, "reanalyse\t%s\t%s\t%s: %s\n", s.Dataset, s.Granule, s.Lane, s.Why)
	}
	trainings := 0
	for _, s := range p.Train {
		verdict := "no"
		if s.Due {
			verdict = "yes"
			trainings++
		}
		fmt.Fprintf(table, "train\t%s\t%s\t%s\n", s.Dataset, verdict, s.Why)
	}
	waiting := 0
	for _, s := range p.Publish {
		waiting += s.Waiting
		fmt.Fprintf(table, "publish\t%s\t%d waiting\t%s, %s\n", s.Sink, s.Waiting, figure.Bytes(s.Bytes), s.Why)
	}
	for _, n := range p.Notices {
		fmt.Fprintf(table, "notice\t%s\t\t%s\n", n.Dataset, n.Text)
	}
	fmt.Fprintf(table, "%d to look at on the archives, %d to fill, %d to look at again, %d to train, %d to publish\n",
		len(p.Fetch), len(p.Fill), len(p.Reanalyse), trainings, waiting)
	return table.Flush()
}
