package service

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

func redoCommand() *cobra.Command {
	var o operator
	why := ""
	c := &cobra.Command{
		Use:   "redo GRANULE|DAY --why TEXT",
		Short: "fill a granule or a day again and publish it as a new revision",
		Long: `Redo asks for the products of a granule, or of every granule of a day, to be
made again from the bytes that are there, with the model and the neighbours of
now, and to be published as new revisions in place of those before. The reason
is kept with them; 'lacuna why' shows it.

It can be used while the daemon runs; the work is done by that daemon at its
next poll, or by the next run or once.

Exit status: 0 it is queued, 1 nothing is known of it or it is set aside,
2 usage, 78 bad configuration.`,
		Example: `  lacuna redo 2024-04-09 --why 'new sea mask' --config /etc/lacuna/lacuna.yaml
  lacuna redo 20240409_chl.nc --why 'checked by hand' --config lacuna.yaml --dataset black-sea-chl`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(why) == "" {
				return cli.Usage(errors.New("--why TEXT is required: it is kept with the new revision"))
			}
			request := operate.RedoRequest{Dataset: o.dataset, Why: why}
			day, err := time.Parse(time.DateOnly, args[0])
			if err == nil {
				request.Day = day
			} else {
				request.Granule = args[0]
			}
			return o.on(c, func(operations *operate.Operations) error {
				done, err := operations.Redo(c.Context(), request)
				if len(done) == 0 && err != nil {
					return err
				}
				return errors.Join(o.print(c, emptyList(done), func(w io.Writer) {
					for _, r := range done {
						fmt.Fprintf(w, "%s\t%s\trevision %d\t%s\n", r.Dataset, r.Granule, r.Revision, cmp.Or(r.Note, "queued"))
					}
				}), err)
			})
		},
	}
	o.add(c)
	c.Flags().StringVar(&why, "why", "", "`TEXT` that says why (required)")
	return c
}
