package service

import (
	"errors"
	"fmt"
	"io"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

type backfillFlags struct {
	daemonFlags
	operator
	from, to       string
	detach, cancel bool
}

func backfillCommand() *cobra.Command {
	var flags backfillFlags
	c := &cobra.Command{
		Use:   "backfill --dataset NAME --from DAY --to DAY --config FILE",
		Short: "fetch and fill older days, behind what is live",
		Long: `Backfill fetches a range of older days from the archive of a dataset and fills
it, some days at a time. What is live always goes first. Where the daemon runs
it does the work, and the command shows how it gets on; else the command does it
itself. Interrupted, it stays on the list: the daemon, or the same command, goes
on where it stopped. Days that are there already are not fetched or filled again.

Exit status: 0 done (with --detach: on the list), 1 failed or interrupted before
the end, 2 usage, 78 bad configuration.`,
		Example: `  lacuna backfill --config /etc/lacuna/lacuna.yaml --dataset black-sea-chl --from 2020-01-01 --to 2020-12-31
  lacuna backfill --config lacuna.yaml --dataset black-sea-chl --cancel`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return flags.run(c) },
	}
	flags.daemonFlags.add(c)
	f := c.Flags()
	f.StringVar(&flags.dataset, "dataset", "", "`NAME` of the dataset (required)")
	f.StringVar(&flags.from, "from", "", "first `DAY`, such as 2020-01-01 (required)")
	f.StringVar(&flags.to, "to", "", "last `DAY` (required)")
	f.BoolVar(&flags.detach, "detach", false, "put it on the list of the daemon and return")
	f.BoolVar(&flags.cancel, "cancel", false, "take it off the list; what was fetched stays")
	f.BoolVar(&flags.json, "json", false, "print JSON")
	return c
}

func (f *backfillFlags) run(c *cobra.Command) error {
	if f.dataset == "" {
		return cli.Usage(errors.New("--dataset NAME is required"))
	}
	d, err := f.daemon(c.ErrOrStderr())
	if err != nil {
		return err
	}
	if f.cancel {
		return f.cancelIt(c, d)
	}
	ask := operate.Backfill{Dataset: f.dataset}
	if ask.From, err = parseDay("--from", f.from, 0); err != nil {
		return err
	}
	if ask.To, err = parseDay("--to", f.to, 0); err != nil {
		return err
	}
	if ask.From.IsZero() || ask.To.IsZero() || ask.To.Before(ask.From) {
		return cli.Usage(errors.New("--from DAY and --to DAY are required, in their order"))
	}
	ask, err = d.Station().AskBackfill(ask)
	if err != nil {
		return err
	}
	if f.detach {
		return f.print(c, operate.BackfillNews{Backfill: ask}, func(w io.Writer) {
			fmt.Fprintf(w, "%s from %s to %s is on the list\n", ask.Dataset, f.from, f.to)
		})
	}
	return f.follow(c, d, ask)
}

func (f *backfillFlags) cancelIt(c *cobra.Command, d *daemon.Daemon) error {
	known, err := d.Station().CancelBackfill(f.dataset)
	if err != nil {
		return err
	}
	return f.print(c, map[string]bool{"cancelled": known}, func(w io.Writer) {
		if known {
			fmt.Fprintf(w, "the backfill of %s is off the list\n", f.dataset)
		} else {
			fmt.Fprintf(w, "no backfill of %s was on the list\n", f.dataset)
		}
	})
}

// follow shows the progress of a backfill until it is done.
func (f *backfillFlags) follow(c *cobra.Command, d *daemon.Daemon, ask operate.Backfill) error {
	days := int(ask.To.Sub(ask.From).Hours()/24) + 1
	bar := cli.NewProgress(c.ErrOrStderr(), ask.Dataset, days)
	before := operate.BackfillNews{}
	news, err := d.Backfill(c.Context(), ask, func(n operate.BackfillNews) {
		bar.Set(int(n.Next.Sub(n.From).Hours()/24), days)
		if !bar.Visible() && n != before { // no terminal: a line where something has changed
			fmt.Fprintln(c.ErrOrStderr(), backfillLine(n))
		}
		before = n
	})
	bar.Finish()
	if news.Dataset == "" && err != nil {
		return err
	}
	printErr := f.print(c, news, func(w io.Writer) { fmt.Fprintln(w, backfillLine(news)) })
	if err == nil && !news.Done {
		err = errors.New("interrupted; it stays on the list, and the daemon or the same command goes on with it")
	}
	return errors.Join(printErr, err)
}

func backfillLine(n operate.BackfillNews) string {
	who := ""
	if n.ByDaemon {
		who = " (by the daemon)"
	}
	reached := n.Next.AddDate(0, 0, -1)
	until := "nothing fetched yet"
	if !reached.Before(n.From) {
		until = "fetched through " + reached.Format(time.DateOnly)
	}
	return fmt.Sprintf("%s %s..%s%s: %s, %d granules, %d products, %d to fill, %d set aside", n.Dataset, n.From.Format(time.DateOnly),
		n.To.Format(time.DateOnly), who, until, n.Granules, n.Products, n.Waiting, n.SetAside)
}
