package service

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"lacuna/daemon/cli"

	"github.com/spf13/cobra"
)

func (p *publications) takeover() *cobra.Command {
	var why string
	c := &cobra.Command{
		Use:   "takeover --why TEXT",
		Short: "make the folder of products, the bucket and the topics this state's",
		Long: `Takeover marks the folder of products, and the bucket and the Kafka topics where
the configuration names them, as those of this state, in a new epoch. It is for
a service that is to go on in the place of another: a standby, or a state that
was begun anew. Each of these places belongs to one state, so that one revision
of a product never has two files; a daemon that finds another's mark there, or a
later epoch than its own, delivers nothing.

The daemons of both states should be stopped. One of the other state that still
runs elsewhere stops delivering when it next looks, which is before its next
delivery. The next start of this one adopts what is there and goes on above it.
The reason is kept in the ledger and its journal.

It runs while no daemon works on this state or on its folder of products, and
where every sink answers.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if strings.TrimSpace(why) == "" {
				return cli.Usage(errors.New("--why TEXT is required: it is kept in the journal"))
			}
			flags := daemonFlags{config: p.config, log: "text"}
			d, err := flags.daemon(c.ErrOrStderr())
			if err != nil {
				return err
			}
			all, err := d.TakeOver(c.Context(), why)
			if err != nil {
				return err
			}
			return p.print(c, all, func(w io.Writer) {
				fmt.Fprintln(w, "SINK\tWAS OF\tIS OF\tEPOCH")
				for _, one := range all {
					fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", one.Sink, cmp.Or(one.Was, "nobody"), one.State, one.Epoch)
				}
			})
		},
	}
	c.Flags().StringVar(&why, "why", "", "reason that is kept in the journal (required)")
	return c
}
