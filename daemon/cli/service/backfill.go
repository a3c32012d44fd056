package service

import (
	"errors"
	"fmt"
	"io"

	"lacuna/daemon"
	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

type backfillFlags struct {
	daemonFlags
	operator
	from, to, model               string
	again, estimate, detach       bool
	cancel, pauseLane, resumeLane bool
	rate                          float64            // products an hour
	asked                         []operate.Backfill // to be followed
}

func backfillCommand() *cobra.Command {
	var flags backfillFlags
	c := &cobra.Command{
		Use:   "backfill --from DAY --to DAY",
		Short: "fetch and fill older days, or make their products again, behind what is live",
		Long: `Backfill fetches a range of older days from the archive of a dataset and fills
it, some days at a time. What is live always goes first. Where the daemon runs
it does the work, and the command shows how it gets on; else the command does it
itself. Interrupted, it stays on the list: the daemon, or the same command, goes
on where it stopped. Days that are there already are not fetched or filled again.

With --again nothing is fetched: the products of the range that are there are
made again, each as a new revision that supersedes the one before. With --model
champion there must be a champion, and the revisions name it as their reason; if
another version becomes champion meanwhile, the days that are left are filled by
that one. Products that were retracted stay so.

The command first says how many products there are to make and how long that
takes by the speed of the last ones, on as many machines as fill them now;
--estimate says it and asks for nothing. It then shows the products an hour and
the time left, and in the end what was made, what was set aside, and the time it
took. With workers.type kafka the workers fill, also where no daemon runs.
--pause has the backfill rest after the granule in hand, --resume go on. --rate holds
it to so many products an hour, for an archive or a machine that others use too;
without --from and --to it changes the rate of a backfill under way. Without --dataset
all of it is for every dataset: a daemon fills them side by side, the command by itself
one after the other.

Exit status: 0 done (with --detach: on the list), 1 failed, paused or interrupted
before the end, 2 usage, 78 bad configuration.`,
		Example: `  lacuna backfill --config /etc/lacuna/lacuna.yaml --dataset black-sea-chl --from 2020-01-01 --to 2020-12-31
  lacuna backfill --config lacuna.yaml --dataset black-sea-chl --again --model champion --from 2024-01-01 --to 2024-03-31 --estimate
  lacuna backfill --config lacuna.yaml --from 1998-01-01 --to 2025-12-31 --rate 500
  lacuna backfill --config lacuna.yaml --dataset black-sea-chl --pause
  lacuna backfill --config lacuna.yaml --dataset black-sea-chl --cancel`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return flags.run(c) },
	}
	flags.daemonFlags.add(c)
	f := c.Flags()
	f.StringVar(&flags.dataset, "dataset", "", "`NAME` of the dataset (default: all)")
	f.StringVar(&flags.from, "from", "", "first `DAY`, such as 2020-01-01 (required)")
	f.StringVar(&flags.to, "to", "", "last `DAY` (required)")
	f.BoolVar(&flags.again, "again", false, "make the products that are there again, as new revisions")
	f.StringVar(&flags.model, "model", "", "with --again: `champion`, to make sure that there is one (default: what fills the dataset now)")
	f.BoolVar(&flags.estimate, "estimate", false, "say what it would take, and ask for nothing")
	f.BoolVar(&flags.detach, "detach", false, "put it on the list of the daemon and return")
	f.BoolVar(&flags.cancel, "cancel", false, "take it off the list; what was fetched stays")
	f.BoolVar(&flags.pauseLane, "pause", false, "have it rest after the granule in hand, until --resume")
	f.BoolVar(&flags.resumeLane, "resume", false, "have it go on")
	f.Float64Var(&flags.rate, "rate", 0, "at most `N` products an hour, 0 for as many as can be made")
	f.BoolVar(&flags.json, "json", false, "print JSON")
	c.MarkFlagsMutuallyExclusive("cancel", "pause", "resume", "again")
	c.MarkFlagsMutuallyExclusive("cancel", "pause", "resume", "estimate")
	return c
}

func (f *backfillFlags) run(c *cobra.Command) error {
	rated := c.Flags().Changed("rate")
	if f.rate < 0 {
		return cli.Usage(fmt.Errorf("--rate is %g, must not be negative", f.rate))
	}
	d, err := f.daemon(c.ErrOrStderr())
	if err != nil {
		return err
	}
	names := []string{f.dataset}
	if f.dataset == "" {
		names = names[:0]
		for _, set := range d.Station().Datasets {
			names = append(names, set.Name)
		}
	}
	do := f.askFor
	switch {
	case f.cancel:
		do = f.cancelIt
	case f.pauseLane || f.resumeLane:
		do = f.steer
	case rated && f.from == "" && f.to == "":
		do = f.changeRate
	}
	for _, f.dataset = range names {
		if err := do(c, d); err != nil {
			return err
		}
	}
	return f.followAll(c, d)
}

// askFor says what a backfill takes, and puts it on the list unless that was all.
func (f *backfillFlags) askFor(c *cobra.Command, d *daemon.Daemon) error {
	ask, err := f.ask(d)
	if err != nil {
		return err
	}
	station := d.Station()
	rate := station.BackfillRate(f.dataset)
	if c.Flags().Changed("rate") {
		rate = f.rate
	}
	estimate, err := station.EstimateBackfill(c.Context(), ask, rate)
	if err != nil {
		return err
	}
	said := fmt.Sprintf("%s from %s to %s: %s", ask.Dataset, f.from, f.to, estimate)
	if f.estimate {
		return f.print(c, estimate, func(w io.Writer) { fmt.Fprintln(w, said) })
	}
	fmt.Fprintln(c.ErrOrStderr(), said)
	if ask, err = station.AskBackfill(ask); err != nil {
		return err
	}
	if err := station.SetBackfillRate(f.dataset, rate); err != nil {
		return err
	}
	if f.detach {
		return f.print(c, operate.BackfillNews{Backfill: ask, Most: rate}, func(w io.Writer) {
			fmt.Fprintf(w, "%s from %s to %s is on the list\n", ask.Dataset, f.from, f.to)
		})
	}
	if station.BackfillPaused(f.dataset) {
		return fmt.Errorf("the backfill of %s is paused: it is on the list, and goes on with --resume", f.dataset)
	}
	f.asked = append(f.asked, ask)
	return nil
}

// followAll shows the backfills that were asked for, one after the other.
func (f *backfillFlags) followAll(c *cobra.Command, d *daemon.Daemon) error {
	for _, ask := range f.asked {
		if err := f.follow(c, d, ask); err != nil {
			return err
		}
	}
	return nil
}

// changeRate changes the rate of a backfill under way.
func (f *backfillFlags) changeRate(c *cobra.Command, d *daemon.Daemon) error {
	if err := d.Station().SetBackfillRate(f.dataset, f.rate); err != nil {
		return err
	}
	return f.print(c, map[string]float64{"most_an_hour": f.rate}, func(w io.Writer) {
		if f.rate == 0 {
			fmt.Fprintf(w, "the backfill of %s makes as many products as it can\n", f.dataset)
		} else {
			fmt.Fprintf(w, "the backfill of %s makes at most %.4g products an hour\n", f.dataset, f.rate)
		}
	})
}

// ask returns the backfill that the flags ask for.
func (f *backfillFlags) ask(d *daemon.Daemon) (operate.Backfill, error) {
	ask := operate.Backfill{Dataset: f.dataset, Again: f.again}
	var err error
	if ask.From, err = parseDay("--from", f.from, 0); err != nil {
		return ask, err
	}
	if ask.To, err = parseDay("--to", f.to, 0); err != nil {
		return ask, err
	}
	if ask.From.IsZero() || ask.To.IsZero() || ask.To.Before(ask.From) {
		return ask, cli.Usage(errors.New("--from DAY and --to DAY are required, in their order"))
	}
	switch {
	case f.model == "":
	case f.model != "champion" || !f.again:
		return ask, cli.Usage(fmt.Errorf("--model is %q: it takes champion, with --again; 'lacuna models promote VERSION' makes another version champion", f.model))
	default:
		ask.Model, err = d.Station().ChampionOf(f.dataset)
	}
	return ask, err
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

// steer pauses or resumes the backfill of the dataset.
func (f *backfillFlags) steer(c *cobra.Command, d *daemon.Daemon) error {
	if err := d.Station().PauseBackfill(f.dataset, f.pauseLane); err != nil {
		return err
	}
	return f.print(c, map[string]bool{"paused": f.pauseLane}, func(w io.Writer) {
		if f.pauseLane {
			fmt.Fprintf(w, "the backfill of %s rests after the granule in hand; --resume has it go on\n", f.dataset)
		} else {
			fmt.Fprintf(w, "the backfill of %s goes on; where no daemon runs, the command that asked for it goes on with it\n", f.dataset)
		}
	})
}

// follow shows the progress of a backfill until it is done.
func (f *backfillFlags) follow(c *cobra.Command, d *daemon.Daemon, ask operate.Backfill) error {
	days := int(ask.To.Sub(ask.From).Hours()/24) + 1
	bar := cli.NewProgress(c.ErrOrStderr(), ask.Dataset, days)
	before := operate.BackfillNews{}
	news, err := d.Backfill(c.Context(), ask, func(n operate.BackfillNews) {
		if n.Again {
			bar.Set(n.Granules-n.Waiting, n.Granules)
		} else {
			bar.Set(int(n.Next.Sub(n.From).Hours()/24), days)
		}
		if left := n; !bar.Visible() {
			left.Left, left.Rate, left.Took = before.Left, before.Rate, before.Took // else a line a second
			if left != before {
				fmt.Fprintln(c.ErrOrStderr(), n)
			}
		}
		before = n
	})
	bar.Finish()
	if news.Dataset == "" && err != nil {
		return err
	}
	printErr := f.print(c, news, func(w io.Writer) { fmt.Fprintln(w, news) })
	switch {
	case err != nil || news.Done:
	case news.Paused:
		err = errors.New("paused; it stays on the list, and goes on with --resume")
	default:
		err = errors.New("interrupted; it stays on the list, and the daemon or the same command goes on with it")
	}
	return errors.Join(printErr, err)
}
