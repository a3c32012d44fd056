package service

import (
	"fmt"
	"io"
	"strings"

	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

func whyCommand() *cobra.Command {
	var o operator
	c := &cobra.Command{
		Use:   "why GRANULE|DAY",
		Short: "what became of a granule or a day, and what to do",
		Long: `Why tells the whole story of a granule, or of every granule of a day: when it
was seen, fetched, filled and stored, where its product was published, why it
was set aside, made again or retracted, and what to do now. A granule may be
named by the end of its path. A day of which nothing is known has a story too:
why there may be nothing.

It can be used while the daemon runs, and without one.

Exit status: 0 the story is told, 1 nothing is known of such a granule, 2 usage,
78 bad configuration.`,
		Example: "  lacuna why 20240409_chl.nc --config /etc/lacuna/lacuna.yaml\n  lacuna why 2024-04-09 --config lacuna.yaml --dataset black-sea-chl --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.on(c, func(operations *operate.Operations) error {
				stories, err := operations.Why(c.Context(), args[0], o.dataset)
				if err != nil {
					return err
				}
				return o.print(c, emptyList(stories), func(w io.Writer) { printStories(w, stories) })
			})
		},
	}
	o.add(c)
	return c
}

func printStories(w io.Writer, stories []operate.Story) {
	for i, s := range stories {
		if i > 0 {
			fmt.Fprintln(w)
		}
		days := strings.Join(s.Days, " .. ")
		switch {
		case s.Granule == "":
			fmt.Fprintf(w, "%s of %s: nothing is known\n", days, s.Dataset)
		case days == "":
			fmt.Fprintf(w, "%s of %s: %s\n", s.Granule, s.Dataset, s.State)
		default:
			fmt.Fprintf(w, "%s of %s, %s: %s\n", s.Granule, s.Dataset, days, s.State)
		}
		for _, line := range s.Lines {
			fmt.Fprintf(w, "  %s  %s\n", line.At.UTC().Format("2006-01-02 15:04:05"), line.Text)
		}
		fmt.Fprintf(w, "What to do: %s\n", s.ToDo)
	}
}
