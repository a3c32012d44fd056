package measure

import (
	"errors"
	"flag"

	"lacuna/daemon/cli/measure/roofline"
	"lacuna/daemon/cli/measure/year"
	"lacuna/pipeline/lab"

	"github.com/spf13/cobra"
)

// labCommand offers the laboratory to those who work on the method.
func labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:    "lab",
		Short:  "measure the method: tables, priors, scenes, speed; for developers",
		Hidden: true,
		Long: `Lab reaches the measurements behind the results page: each is a command with
flags of its own, which -help lists. They take packed series, which 'lacuna pack'
makes, and print JSON or tables; nothing of a service is read or written.

Exit status: 0 done, 1 failed, 2 usage.`,
		Example: "  lacuna lab jobs -plan plan.json -engine xla:cuda -o results\n  lacuna lab steps -engine ort -size tiny -batch 4 -side 32",
	}
	year := lab.Command{Name: "year", Short: "a year of weekly fine-tunes on a simulated sea whose sensor changes", Run: year.Command}
	roofline := lab.Command{Name: "roofline", Short: "how far reading, filling, networks, writing, hashing and publishing are from what the machine can do", Run: roofline.Command}
	for _, l := range append(lab.Commands(), year, roofline) {
		c.AddCommand(&cobra.Command{
			Use: l.Name, Short: l.Short,
			DisableFlagParsing: true, // the flags are the measurement's own
			RunE: func(c *cobra.Command, args []string) error {
				err := l.Run(c.Context(), args, c.OutOrStdout(), c.ErrOrStderr())
				if errors.Is(err, flag.ErrHelp) {
					return nil
				}
				return err
			},
		})
	}
	return c
}
