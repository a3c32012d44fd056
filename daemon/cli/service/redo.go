package service

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

func redoCommand() *cobra.Command {
	var o operator
	var chosen selection
	why := ""
	c := &cobra.Command{
		Use:   "redo GRANULE|DAY|FROM..TO... --why TEXT",
		Short: "fill granules, a day or a range again and publish them as new revisions",
		Long: `Redo asks for the products of granules, or of every granule of a day or of a
range of days, to be made again from the bytes that are there, with the model and the neighbours of
now, and to be published as new revisions in place of those before. The reason
is kept with them; 'lacuna why' shows it. For many days 'lacuna backfill'
with --again does the same behind what is live, with an estimate of the time.

It can be used while the daemon runs; the work is done by that daemon at its
next poll, or by the next run or once.

Exit status: 0 it is queued, 1 nothing is known of it or it is set aside,
2 usage, 78 bad configuration.`,
		Example: `  lacuna redo 2024-04-09 --why 'new sea mask' --config /etc/lacuna/lacuna.yaml
  lacuna redo 2024-04-01..2024-04-30 --why 'new sea mask' --dataset black-sea-chl
  lacuna redo 20240409_chl.nc --why 'checked by hand' --config lacuna.yaml --dataset black-sea-chl`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(why) == "" {
				return cli.Usage(errors.New("--why TEXT is required: it is kept with the new revision"))
			}
			selected, err := chosen.of(o.dataset, args)
			if err != nil {
				return err
			}
			if selected.IsZero() {
				return cli.Usage(errors.New("name granules, a day or a range like 2024-04-01..2024-04-30"))
			}
			request := operate.RedoRequest{Selection: selected, Why: why}
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
	chosen.add(c)
	c.Flags().StringVar(&why, "why", "", "`TEXT` that says why (required)")
	return c
}
