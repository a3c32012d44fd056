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
	"os"
	"path/filepath"

	"lacuna/modelstore"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/version"

	"github.com/google/renameio/v2"
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
	if done.State, err = t.decide(ctx, v.ID, out.Decision); err != nil {
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

// decide promotes or refuses the version by the policy, and returns its state.
func (t *Training) decide(ctx context.Context, id string, ruling skill.Decision) (string, error) {
	change := modelstore.Change{Dataset: t.req.Dataset, Version: id, By: "lacuna train", Why: ruling.Reasons}
	switch {
	case t.req.Policy == PolicyNever, t.req.Options.Only == version.OnlyPrior:
		return StateWritten, nil
	case ruling.Unjudged:
		change.Why = version.Against(ruling)
		return StateUnjudged, t.once(ctx, modelstore.Unjudged, change, t.store.LeaveUnjudged)
	case !ruling.Promote:
		change.Why = version.Against(ruling)
		return StateRefused, t.once(ctx, modelstore.Refused, change, t.store.Refuse)
	case t.req.Policy == PolicyAsk:
		return StateWaiting, nil
	}
	_, err := t.store.PromoteOver(ctx, t.championID, change)
	if errors.Is(err, modelstore.ErrChampionChanged) {
		return "", fmt.Errorf("%w; the same command judges the version again, against the new champion", err)
	}
	return StatePromoted, err
}

// once writes an entry of the log, unless a process that was killed had written it
// already.
func (t *Training) once(ctx context.Context, action modelstore.Action, change modelstore.Change,
	write func(context.Context, modelstore.Change) (modelstore.Entry, error),
) error {
	log, err := t.store.Log()
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
	if err := renameio.WriteFile(path, data, 0o644); err != nil {
		return card, fmt.Errorf("write the card: %w", err)
	}
	return modelstore.DecodeCard(data)
}
