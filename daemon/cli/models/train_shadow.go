package models

import (
	"errors"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/retrain"

	"github.com/spf13/cobra"
)

// shadowCommand lets a version that won fill the days since, beside the
// champion, and promotes it if it is not worse. It is hidden: the daemon runs it
// when the shadow days of a version are over.
func shadowCommand() *cobra.Command {
	var f measureFlags
	var version, since string
	c := &cobra.Command{
		Use: "shadow --version VERSION --since TIME --data FILE... --store DIR --dataset NAME", Short: "judge a version on the days since it was made",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(f.data.Validate(), f.covariates.Validate()); err != nil {
				return err
			}
			since, err := time.Parse(time.RFC3339, since)
			if err != nil || f.store == "" || f.dataset == "" || version == "" {
				return cli.Usage(errors.New("--version, --store, --dataset and --since as 2026-01-31T00:00:00Z are required"))
			}
			done, err := f.measurement(c).Shadow(c.Context(), version, since)
			if err != nil {
				return err
			}
			return retrain.WriteEvent(c.OutOrStdout(), done)
		},
	}
	f.add(c)
	c.Flags().StringVar(&version, "version", "", "`VERSION` that won (required)")
	c.Flags().StringVar(&since, "since", "", "`TIME` from which on days are new to both (required)")
	return c
}
