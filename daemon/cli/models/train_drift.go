package models

import (
	"context"
	"errors"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/daemon/retrain"
	"lacuna/pipeline/engine"

	"github.com/spf13/cobra"
)

// measureFlags are the flags of lacuna drift, which lacuna shadow has too.
type measureFlags struct {
	data                   input.Data
	covariates             input.Covariates
	store, dataset, engine string
}

func (f *measureFlags) add(c *cobra.Command) {
	f.data.Add(c.Flags())
	f.covariates.Add(c.Flags())
	f.covariates.AddFiles(c.Flags())
	c.Flags().StringVar(&f.store, "store", "", "model store `DIR` (required)")
	c.Flags().StringVar(&f.dataset, "dataset", "", "`NAME` of the dataset (required)")
	c.Flags().StringVar(&f.engine, "engine", engine.Auto, "`ENGINE`: auto, ort, ort:cuda or xla:cuda")
}

// measurement returns the measurement that the flags ask for.
func (f *measureFlags) measurement(c *cobra.Command) retrain.Measurement {
	return retrain.Measurement{Store: f.store, Dataset: f.dataset, Engine: f.engine, Days: func(ctx context.Context) (retrain.Data, error) {
		set, err := f.data.Load(ctx, c.ErrOrStderr())
		if err == nil {
			set.Covariates, err = f.covariates.Join(ctx, &set.Series, c.ErrOrStderr())
		}
		return trainingOf(set), err
	}}
}

// driftCommand measures how far granules have moved from those of the champion.
// It is hidden: the daemon runs it beside the training, for its triggers.
func driftCommand() *cobra.Command {
	var f measureFlags
	c := &cobra.Command{
		Use: "drift --data FILE... --store DIR --dataset NAME", Short: "compare granules with those of the champion", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(f.data.Validate(), f.covariates.Validate()); err != nil {
				return err
			}
			if f.store == "" || f.dataset == "" {
				return cli.Usage(errors.New("--store DIR and --dataset NAME are required"))
			}
			done, err := f.measurement(c).Drift(c.Context())
			if err != nil {
				return err
			}
			return retrain.WriteEvent(c.OutOrStdout(), done)
		},
	}
	f.add(c)
	return c
}
