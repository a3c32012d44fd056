package retrain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/version"
)

// Measurement compares recent days with a champion, or the champion with a
// version that won.
type Measurement struct {
	Store   string // folder of the model store
	Dataset string
	Engine  string
	// Days reads the days to measure on. It is called after the store was
	// opened, which fails at once or not at all.
	Days func(context.Context) (Data, error)
}

// Drift measures how far days have moved from those that the champion was
// trained on.
func (m Measurement) Drift(ctx context.Context) (Event, error) {
	done := Event{Event: EventDone}
	_, champion, err := m.champion()
	if err != nil {
		return done, err
	}
	set, e, err := m.open(ctx)
	if err != nil {
		return done, err
	}
	defer e.Finalize()
	moved, err := version.DriftOf(ctx, e, champion, set.Series, patchSide(set))
	done.Drift = &moved
	return done, err
}

// Shadow lets a version that won and the champion fill the days since a time,
// which are new to both, and promotes the version if it is not worse. Else it is
// refused.
func (m Measurement) Shadow(ctx context.Context, challenger string, since time.Time) (Event, error) {
	done := Event{Event: EventDone, Version: challenger}
	q := version.Shadow{Since: since}
	var err error
	if done.Champion, q.Champion, err = m.champion(); err != nil {
		return done, err
	}
	store := modelstore.New(m.Store, time.Now)
	stored, err := store.Load(challenger)
	if err != nil {
		return done, err
	}
	if q.Challenger, err = Parts(stored); err != nil {
		return done, err
	}
	set, e, err := m.open(ctx)
	if err != nil {
		return done, err
	}
	defer e.Finalize()
	// Only the settings of the judgement count here, not the size.
	q.Series, q.Backend, q.Settings = set.Series, e, version.DefaultSettings(nn.Small, e.Kind != engine.ORT)
	q.Settings = q.Settings.With(version.Budget{Side: patchSide(set), MembersSteps: -1, ReliabilitySteps: -1})
	ruling, err := q.Judge(ctx)
	if err != nil {
		return done, err
	}
	done.Won, done.Reasons = ruling.Decision.Promote, ruling.Decision.Reasons
	done.State, err = endShadow(ctx, store, m.Dataset, done)
	return done, err
}

// champion returns the version that serves.
func (m Measurement) champion() (id string, parts version.Parts, err error) {
	serving, err := modelstore.New(m.Store, time.Now).LoadChampion(m.Dataset)
	if err != nil {
		return "", nil, err
	}
	parts, err = Parts(serving.Version)
	return serving.Version.ID, parts, err
}

// open reads the days and opens the engine, which the caller finalizes.
func (m Measurement) open(ctx context.Context) (Data, *engine.Engine, error) {
	set, err := m.Days(ctx)
	if err != nil {
		return set, nil, err
	}
	e, err := engine.Open(m.Engine, engine.Config{}, slog.New(slog.DiscardHandler))
	return set, e, err
}

// endShadow writes the outcome of shadow days into the store and returns the
// state that the version is in then.
func endShadow(ctx context.Context, store *modelstore.Store, dataset string, done Event) (string, error) {
	change := modelstore.Change{Dataset: dataset, Version: done.Version, By: "lacuna shadow", Why: done.Reasons}
	if !done.Won {
		_, err := store.Refuse(ctx, change)
		return StateRefused, err
	}
	_, err := store.PromoteOver(ctx, done.Champion, change)
	if errors.Is(err, modelstore.ErrChampionChanged) {
		return "", fmt.Errorf("%w; the version is judged against the new champion at the next check", err)
	}
	return StatePromoted, err
}
