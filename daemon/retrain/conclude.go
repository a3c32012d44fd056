package retrain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"lacuna/internal/durable"
	"lacuna/modelstore"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/version"
)

// conclude writes the version, promotes or refuses it, and clears the
// checkpoints. Killed in between, the same command does the rest: the card is
// kept, so that the version is the same one.
func (t *Training) conclude(ctx context.Context, out version.Outcome, tell func(Event) error) error {
	contents, err := filesOf(out.Parts)
	if err != nil {
		return err
	}
	if err := t.addQueries(contents, out.Queries); err != nil {
		return err
	}
	maps.Copy(contents, t.kept)
	if err := addPicture(contents, t.req.Dataset, out.Evaluation.Ruling); err != nil {
		return err
	}
	card, err := t.keptCard(out)
	if err != nil {
		return err
	}
	files := map[string]io.Reader{}
	for name, data := range contents {
		files[name] = bytes.NewReader(data)
	}
	v, err := t.store.Write(ctx, card, files)
	if err != nil {
		return err
	}
	done := Event{Event: EventDone, Version: v.ID, Parent: t.parentID, Champion: t.championID, Won: out.Decision.Promote, Reasons: out.Decision.Reasons}
	verdict := Verdict{
		Dataset: t.req.Dataset, Version: v.ID, Champion: t.championID, Decision: out.Decision,
		Policy: t.req.Policy, PriorOnly: t.req.Options.Only == version.OnlyPrior,
	}
	if done.State, err = verdict.Decide(ctx, t.store); err != nil {
		return err
	}
	if err := tell(done); err != nil {
		return err
	}
	if err := os.RemoveAll(t.job.Folder); err != nil {
		return fmt.Errorf("clear checkpoints: %w", err)
	}
	return nil
}

// Verdict is what the gate has said of a version that a store has.
type Verdict struct {
	Dataset, Version string
	Champion         string // that it was judged against; empty: none
	Decision         skill.Decision
	Policy           string
	PriorOnly        bool // it has no network that fills
}

// Decide promotes or refuses the version by the policy, and returns its state. Done
// twice it writes once. The error is modelstore.ErrChampionChanged where another
// version is champion by now.
func (v Verdict) Decide(ctx context.Context, store *modelstore.Store) (string, error) {
	change := modelstore.Change{Dataset: v.Dataset, Version: v.Version, By: "lacuna train", Why: v.Decision.Reasons}
	switch {
	case v.Policy == PolicyNever, v.PriorOnly:
		return StateWritten, nil
	case v.Decision.Unjudged:
		change.Why = version.Against(v.Decision)
		return StateUnjudged, once(ctx, store, modelstore.Unjudged, change, store.LeaveUnjudged)
	case !v.Decision.Promote:
		change.Why = version.Against(v.Decision)
		return StateRefused, once(ctx, store, modelstore.Refused, change, store.Refuse)
	case v.Policy == PolicyAsk:
		return StateWaiting, nil
	}
	_, err := store.PromoteOver(ctx, v.Champion, change)
	if errors.Is(err, modelstore.ErrChampionChanged) {
		return "", fmt.Errorf("%w; the same command judges the version again, against the new champion", err)
	}
	return StatePromoted, err
}

// once writes an entry of the log, unless a process that was killed had written it
// already.
func once(ctx context.Context, store *modelstore.Store, action modelstore.Action, change modelstore.Change,
	write func(context.Context, modelstore.Change) (modelstore.Entry, error),
) error {
	log, err := store.Log()
	if err != nil {
		return err
	}
	for _, e := range log {
		if e.Version == change.Version && e.Action == action {
			return nil
		}
	}
	_, err = write(ctx, change)
	return err
}

// keptCard returns the card of the version: the one in the checkpoint folder if
// it was judged against this champion, or else a new one, which is kept there.
func (t *Training) keptCard(out version.Outcome) (modelstore.Card, error) {
	path := filepath.Join(t.job.Folder, "card-"+cmp.Or(t.championID, "first")+".json")
	data, err := os.ReadFile(path)
	if err == nil {
		return modelstore.DecodeCard(data)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return modelstore.Card{}, fmt.Errorf("read the card: %w", err)
	}
	card, err := t.card(out)
	if err != nil {
		return card, err
	}
	if data, err = json.Marshal(card); err != nil {
		return card, fmt.Errorf("write the card: %w", err)
	}
	if err := durable.WriteFile(path, data, 0o644); err != nil {
		return card, fmt.Errorf("write the card: %w", err)
	}
	return modelstore.DecodeCard(data)
}
