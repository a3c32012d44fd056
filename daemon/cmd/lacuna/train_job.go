package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lacuna/daemon"
	"lacuna/modelstore"
	"lacuna/modelstore/starters"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/finetune"

	"github.com/google/renameio/v2"
)

// trainJob is a training under way and what is around it.
type trainJob struct {
	flags   *trainFlags
	sets    []dataset // one for each grid
	beside  []dataset // learned from and not judged on
	engine  *engine.Engine
	store   *modelstore.Store
	started time.Time
	resumed bool // an earlier process left checkpoints
	memory  *deviceMemory
	phases  map[string]float64 // seconds

	parentID, championID                     string // empty: none
	parentCard                               modelstore.Card
	parentFiles, championFiles, starterFiles finetune.Files
	starter                                  *modelstore.Version // that fits the data; nil: none does
	request                                  finetune.Request
}

// findVersions loads the version to begin with and those to beat, every byte
// checked.
func (j *trainJob) findVersions(ctx context.Context) error {
	serving, err := j.store.LoadChampion(j.flags.dataset)
	switch {
	case errors.Is(err, modelstore.ErrNoChampion):
	case err != nil:
		return err
	default:
		j.championID = serving.Version.ID
		if j.championFiles, err = versionFiles(serving.Version); err != nil {
			return err
		}
	}
	if j.championFiles[finetune.ImputerFile] == nil {
		j.championFiles = nil // a champion that fills nothing is none to beat
	}
	none := "" // why no starter fits
	if j.championFiles == nil || j.flags.from == "starter" {
		var err error
		if none, err = j.findStarter(ctx); err != nil {
			return err
		}
	}
	var parent *modelstore.Version
	switch j.flags.from {
	case "":
		return nil
	case "starter":
		if j.starter == nil {
			return fmt.Errorf("%s: train without --from, or from a version of the store (lacuna models list)", none)
		}
		parent, j.parentID = j.starter, j.starter.ID
	case "champion":
		if j.championID == "" {
			return fmt.Errorf("dataset %s has no champion to begin with; train without --from first", j.flags.dataset)
		}
		j.parentID = j.championID
	default:
		if j.parentID, err = j.store.Resolve(j.flags.from); err != nil {
			return err
		}
	}
	if parent == nil {
		if parent, err = j.store.Load(j.parentID); err != nil {
			return err
		}
	}
	j.parentCard = parent.Card
	j.parentFiles, err = versionFiles(parent)
	return err
}

// findStarter finds the starter of the quantity of the data, or says why there
// is none. Without a champion it is what fills.
func (j *trainJob) findStarter(ctx context.Context) (none string, err error) {
	all, err := starters.List(ctx)
	if err != nil {
		return "", err
	}
	if j.starter, none = daemon.StarterFor(all, j.sets[0].sample); j.starter == nil || j.championFiles != nil {
		return none, nil
	}
	j.starterFiles, err = versionFiles(j.starter)
	return "", err
}

// versionFiles reads what training needs of a version.
func versionFiles(v *modelstore.Version) (finetune.Files, error) {
	files := finetune.Files{}
	for _, name := range []string{
		finetune.PriorFile, finetune.ImputerFile, finetune.MembersFile, finetune.ReliabilityFile,
		finetune.CalibrationFile, finetune.ScalingFile, finetune.EvaluationFile,
	} {
		if !v.Has(name) {
			continue
		}
		data, err := v.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	return files, nil
}

// conclude writes the version, promotes or refuses it, and clears the
// checkpoints. Killed in between, the same command does the rest: the card is
// kept, so that the version is the same one.
func (j *trainJob) conclude(ctx context.Context, out finetune.Outcome, t *teller) error {
	if err := j.addQueries(out); err != nil {
		return err
	}
	card, err := j.keptCard(out)
	if err != nil {
		return err
	}
	files := map[string]io.Reader{}
	for name, data := range out.Files {
		files[name] = bytes.NewReader(data)
	}
	v, err := j.store.Write(ctx, card, files)
	if err != nil {
		return err
	}
	done := trained{Event: "done", Version: v.ID, Parent: j.parentID, Champion: j.championID, Won: out.Decision.Promote, Reasons: out.Decision.Reasons}
	if err := j.decide(ctx, v.ID, out, &done); err != nil {
		return err
	}
	if err := t.done(done); err != nil {
		return err
	}
	if err := os.RemoveAll(j.request.Folder); err != nil {
		return fmt.Errorf("clear checkpoints: %w", err)
	}
	return nil
}

// decide does with the version what the policy says.
func (j *trainJob) decide(ctx context.Context, id string, out finetune.Outcome, done *trained) error {
	change := modelstore.Change{Dataset: j.flags.dataset, Version: id, By: "lacuna train", Why: out.Decision.Reasons}
	switch {
	case j.flags.policy == policyNever, j.flags.only == finetune.OnlyPrior:
		done.State = "written"
	case !out.Decision.Promote:
		done.State = "refused"
		change.Why = finetune.Against(out.Decision)
		return j.refuseOnce(ctx, change)
	case j.flags.policy == policyAsk:
		done.State = "waiting"
	default:
		done.State = "promoted"
		_, err := j.store.PromoteOver(ctx, j.championID, change)
		if errors.Is(err, modelstore.ErrChampionChanged) {
			return fmt.Errorf("%w; the same command judges the version again, against the new champion", err)
		}
		return err
	}
	return nil
}

// refuseOnce writes a refusal, unless a process that was killed had written it
// already.
func (j *trainJob) refuseOnce(ctx context.Context, change modelstore.Change) error {
	log, err := j.store.Log()
	if err != nil {
		return err
	}
	for _, e := range log {
		if e.Version == change.Version && e.Action == modelstore.Refused {
			return nil
		}
	}
	_, err = j.store.Refuse(ctx, change)
	return err
}

// keptCard returns the card of the version: the one in the checkpoint folder
// that is about this champion, or a new one that is kept there.
func (j *trainJob) keptCard(out finetune.Outcome) (modelstore.Card, error) {
	path := filepath.Join(j.request.Folder, fmt.Sprintf("card-%s.json", orElse(j.championID, "first")))
	data, err := os.ReadFile(path)
	if err == nil {
		return modelstore.DecodeCard(data)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return modelstore.Card{}, fmt.Errorf("read the card: %w", err)
	}
	card, err := j.card(out)
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
