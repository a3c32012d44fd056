package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/finetune"
	"lacuna/pipeline/nn"

	"github.com/spf13/cobra"
)

// shadowFlags are the command line of lacuna shadow.
type shadowFlags struct {
	data                    dataFlags
	store, dataset, version string
	since, engine           string
}

// shadowCommand lets a version that won fill the days since, beside the
// champion, and promotes it if it is not worse. It is hidden: the daemon runs it
// when the shadow days of a version are over.
func shadowCommand() *cobra.Command {
	var f shadowFlags
	c := &cobra.Command{
		Use: "shadow --version VERSION --since TIME --data FILE... --store DIR --dataset NAME", Short: "judge a version on the days since it was made",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.data.validate(); err != nil {
				return err
			}
			since, err := time.Parse(time.RFC3339, f.since)
			if err != nil || f.store == "" || f.dataset == "" || f.version == "" {
				return usageError{errors.New("--version, --store, --dataset and --since as 2026-01-31T00:00:00Z are required")}
			}
			done, err := f.run(c, since)
			if err != nil {
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(done)
		},
	}
	f.data.add(c.Flags())
	c.Flags().StringVar(&f.store, "store", "", "model store `DIR` (required)")
	c.Flags().StringVar(&f.dataset, "dataset", "", "`NAME` of the dataset (required)")
	c.Flags().StringVar(&f.version, "version", "", "`VERSION` that won (required)")
	c.Flags().StringVar(&f.since, "since", "", "`TIME` from which on days are new to both (required)")
	c.Flags().StringVar(&f.engine, "engine", engine.Auto, "`ENGINE`: auto, ort, ort:cuda or xla:cuda")
	return c
}

func (f *shadowFlags) run(c *cobra.Command, since time.Time) (trained, error) {
	done := trained{Event: "done", Version: f.version}
	store := modelstore.New(f.store, time.Now)
	serving, err := store.LoadChampion(f.dataset)
	if err != nil {
		return done, err
	}
	done.Champion = serving.Version.ID
	challenger, err := store.Load(f.version)
	if err != nil {
		return done, err
	}
	q := finetune.Shadow{Since: since}
	if q.Champion, err = versionFiles(serving.Version); err != nil {
		return done, err
	}
	if q.Challenger, err = versionFiles(challenger); err != nil {
		return done, err
	}
	set, err := f.data.load(c.Context(), c.ErrOrStderr())
	if err != nil {
		return done, err
	}
	e, err := engine.Open(f.engine, engine.Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return done, err
	}
	defer e.Finalize()
	// Only what judges of these settings is looked at: not the size.
	q.Series, q.Backend, q.Settings = set.series, e, finetune.DefaultSettings(nn.Small, e.Kind != engine.ORT)
	q.Settings = q.Settings.With(finetune.Budget{Side: patchSide(set), MembersSteps: -1, ReliabilitySteps: -1})
	ruling, err := q.Judge(c.Context())
	if err != nil {
		return done, err
	}
	done.Won, done.Reasons = ruling.Decision.Promote, ruling.Decision.Reasons
	done.State, err = f.decide(c.Context(), store, done)
	return done, err
}

// decide writes the outcome into the store.
func (f *shadowFlags) decide(ctx context.Context, store *modelstore.Store, done trained) (string, error) {
	change := modelstore.Change{Dataset: f.dataset, Version: f.version, By: "lacuna shadow", Why: done.Reasons}
	if !done.Won {
		_, err := store.Refuse(ctx, change)
		return "refused", err
	}
	_, err := store.PromoteOver(ctx, done.Champion, change)
	if errors.Is(err, modelstore.ErrChampionChanged) {
		return "", fmt.Errorf("%w; the version is judged against the new one at the next look", err)
	}
	return "promoted", err
}
