package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/finetune"

	"github.com/spf13/cobra"
)

// driftCommand measures how far granules have moved from those of the champion.
// It is hidden: the daemon runs it beside the training, for its triggers.
func driftCommand() *cobra.Command {
	var data dataFlags
	var store, dataset, engineName string
	c := &cobra.Command{
		Use: "drift --data FILE... --store DIR --dataset NAME", Short: "compare granules with those of the champion", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := data.validate(); err != nil {
				return err
			}
			if store == "" || dataset == "" {
				return usageError{errors.New("--store DIR and --dataset NAME are required")}
			}
			serving, err := modelstore.New(store, time.Now).LoadChampion(dataset)
			if err != nil {
				return err
			}
			files, err := versionFiles(serving.Version)
			if err != nil {
				return err
			}
			set, err := data.load(c.Context(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			e, err := engine.Open(engineName, engine.Config{}, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			defer e.Finalize()
			moved, err := finetune.DriftOf(c.Context(), e, files, set.series, patchSide(set))
			if err != nil {
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(struct {
				Event string         `json:"event"`
				Drift finetune.Drift `json:"drift"`
			}{"done", moved})
		},
	}
	data.add(c.Flags())
	c.Flags().StringVar(&store, "store", "", "model store `DIR` (required)")
	c.Flags().StringVar(&dataset, "dataset", "", "`NAME` of the dataset (required)")
	c.Flags().StringVar(&engineName, "engine", engine.Auto, "`ENGINE`: auto, ort, ort:cuda or xla:cuda")
	return c
}

// patchSide returns the side of the windows that suit a grid, in cells.
func patchSide(sets ...dataset) int {
	for _, s := range sets {
		if g := s.series.Grid; max(g.Height(), g.Width()) < 64 {
			return 32
		}
	}
	return 64
}
