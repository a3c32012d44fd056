package measure

import (
	"errors"
	"fmt"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/internal/durable"
	"lacuna/pipeline/samples/pack"

	"github.com/spf13/cobra"
)

// packCommand writes a dataset as one small file for machines that have no
// granules, such as one that only lends its GPU. It is hidden: packs are read
// by the same program only.
func packCommand() *cobra.Command {
	var data input.Data
	var out string
	c := &cobra.Command{
		Use: "pack --data FILE... -o FILE", Short: "write a dataset as one small file", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := data.Validate(); err != nil {
				return err
			}
			set, err := data.Load(c.Context(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			f, err := durable.Pending(out, 0o644)
			if err != nil {
				return err
			}
			defer func() { _ = f.Cleanup() }() // after a success there is nothing to clean up
			if err := cli.During(c.ErrOrStderr(), "packing", func() error { return pack.Write(f, set.Series) }); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d days of %v\n", out, len(set.Series.Days), set.Series.Grid)
			return errors.Join(f.CloseAtomicallyReplace(), err)
		},
	}
	data.Add(c.Flags())
	c.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write")
	cobra.CheckErr(c.MarkFlagRequired("output"))
	return c
}
