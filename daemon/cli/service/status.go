package service

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/pages"
	"lacuna/ops"

	"github.com/spf13/cobra"

	"lacuna/internal/figure"
)

func statusCommand() *cobra.Command {
	var flags daemonFlags
	var o operator
	check := false
	c := &cobra.Command{
		Use:   "status",
		Short: "how the service is, on one screen",
		Long: `Status shows for every dataset the last granule, how old the newest field is,
how many granules wait, what fills it and how well, and for every sink what
waits for it; then the room on the disks and what somebody should look at, with
what to do. Where the daemon runs it is asked; where it does not, its books are
read, and problems of archives are not known.

Exit status: 0 done; with --check 1 where something is wrong; 1 the status
cannot be read, 2 usage, 78 bad configuration.`,
		Example: "  lacuna status --config /etc/lacuna/lacuna.yaml\n  lacuna status --config lacuna.yaml --check || mail -s lacuna ops@example.org",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			flags.config, flags.log = o.config, "text"
			d, err := flags.daemon(c.ErrOrStderr())
			if err != nil {
				return err
			}
			view, err := d.Overview(c.Context())
			if err != nil {
				return err
			}
			if err := o.print(c, view, func(w io.Writer) { printOverview(w, view) }); err != nil {
				return err
			}
			if n := len(view.Status.Alarms); check && n > 0 {
				return fmt.Errorf("%d things need somebody to look", n)
			}
			return nil
		},
	}
	cli.AddConfig(c.Flags(), &o.config)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	c.Flags().BoolVar(&check, "check", false, "exit with 1 where something is wrong")
	return c
}

// printOverview writes the status as a screen of text.
func printOverview(w io.Writer, v pages.Overview) {
	s := v.Status
	switch {
	case v.Running && v.Page != "":
		fmt.Fprintf(w, "lacuna %s runs as %s, up %s, %s\n", s.Version, v.Holder, age(s.Now, s.Started), v.Page)
	case v.Running:
		fmt.Fprintf(w, "lacuna runs as %s, but its status page does not answer; what follows is from its books\n", v.Holder)
	default:
		fmt.Fprintf(w, "lacuna does not run; what follows is from its books (%s)\n", s.Version)
	}
	fmt.Fprintln(w, "\nDATASET\tLAST GRANULE\tLAG\tQUEUE\tPRODUCTS\tSET ASIDE\tFILLED BY\tSKILL")
	for _, d := range s.Datasets {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", d.Name, shortName(d.LastGranule), lagOf(d, s.Now), d.Queue,
			counted(d, "stored", "announced"), counted(d, "quarantined"), cmp.Or(d.Champion, shortMethod(d.Method)), skillText(d.Skill))
	}
	for _, d := range s.Datasets {
		if d.CloudedOut+d.NoGranule > 0 {
			fmt.Fprintf(w, "%s: in the last month %d days were clouded out and %d had no granule; they are filled from other days\n", d.Name, d.CloudedOut, d.NoGranule)
		}
		if d.Train != nil {
			fmt.Fprintf(w, "model of %s: %s\n", d.Name, d.Training)
		}
	}
	fmt.Fprintln(w, "\nSINK\tWAITING\tOLDEST\tSET ASIDE")
	for _, sink := range s.Sinks {
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\n", sink.Name, sink.Waiting, age(s.Now, sink.Oldest), sink.Aside)
	}
	printFleet(w, s)
	fmt.Fprintln(w)
	for _, d := range s.Disks {
		fmt.Fprintf(w, "disk of %s: %s free\n", d.Folder, figure.Bytes(d.FreeBytes))
	}
	fmt.Fprintf(w, "ledger: %s\n", figure.Bytes(s.Ledger.Bytes))
	for _, d := range s.Datasets {
		if d.Backfill != "" {
			fmt.Fprintln(w, "backfill of "+d.Backfill)
		}
	}
	if len(s.Alarms) == 0 {
		fmt.Fprintln(w, "\nNothing needs somebody to look.")
	}
	for _, a := range s.Alarms {
		fmt.Fprintf(w, "\n! %s.\n  %s.\n", upper(a.Summary), upper(a.Remedy))
	}
}

// printFleet writes the workers on other machines.
func printFleet(w io.Writer, s ops.Status) {
	if s.Fleet == nil {
		return
	}
	fmt.Fprintln(w, "\nWORKER\tIN HAND\tSINCE\tPART\tDONE\tEACH\tFAILED")
	for _, x := range s.Fleet.Workers {
		part := "-"
		if x.Granule != "" {
			part = figure.Percent(x.Share)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%d\n", x.Name, shortName(x.Granule), age(s.Now, x.Since), part, x.Done, figure.Seconds(x.Seconds), x.Failed)
	}
	fmt.Fprintf(w, "%d jobs under way, %d live and %d of the backfill wait or are in hand; %d done, %d failed, %d given up\n",
		s.Fleet.UnderWay, s.Fleet.WaitingLive, s.Fleet.WaitingBackfill, s.Fleet.Done, s.Fleet.Failed, s.Fleet.Dead)
}

// lagOf returns the age of the newest field of a dataset.
func lagOf(d ops.Dataset, now time.Time) string {
	if d.Finished {
		return "finished"
	}
	return age(d.Clock(now), d.NewestField)
}

// counted returns the number of granules of a dataset in some states.
func counted(d ops.Dataset, states ...string) int {
	n := 0
	for _, c := range d.States {
		for _, state := range states {
			if c.State == state {
				n += c.Granules
			}
		}
	}
	return n
}

// shortName returns the beginning and the end of a granule's name that fit into a
// table.
func shortName(name string) string {
	const room, end = 40, 14 // characters
	name = path.Base(name)
	switch {
	case name == ".":
		return "-"
	case len(name) > room:
		return name[:room-end-3] + "..." + name[len(name)-end:]
	}
	return name
}

// shortMethod returns the beginning of a method's description that fits into a
// table.
func shortMethod(method string) string {
	if method == "" {
		return "nothing yet"
	}
	short, _, _ := strings.Cut(method, ",")
	const room = 40 // characters
	if len(short) > room {
		short = short[:room-3] + "..."
	}
	return short
}

func skillText(s *ops.Skill) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%s of variance, %s in 90 %%", figure.Number(s.MSE), figure.Percent(s.Within90))
}

// age returns the time since t, as people say it.
func age(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return figure.Duration(max(now.Sub(t), 0))
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
