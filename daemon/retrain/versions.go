package retrain

import (
	"context"
	"errors"
	"fmt"

	"lacuna/modelstore"
	"lacuna/pipeline/finetune"
)

// findVersions loads the version to begin with and those to beat, every byte
// checked.
func (t *Training) findVersions(ctx context.Context) error {
	serving, err := t.store.LoadChampion(t.req.Dataset)
	switch {
	case errors.Is(err, modelstore.ErrNoChampion):
	case err != nil:
		return err
	default:
		t.championID = serving.Version.ID
		if t.championFiles, err = Files(serving.Version); err != nil {
			return err
		}
	}
	if t.championFiles[finetune.ImputerFile] == nil {
		t.championFiles = nil // a champion that fills nothing is none to beat
	}
	var starter *modelstore.Version
	none := "" // why no starter fits
	if t.championFiles == nil || t.req.From == FromStarter {
		if starter, none, err = t.req.Starter(ctx); err != nil {
			return err
		}
	}
	if starter != nil && t.championFiles == nil {
		if t.starterFiles, err = Files(starter); err != nil {
			return err
		}
	}
	return t.findParent(starter, none)
}

// findParent loads the version to begin with. Why there is no starter is none.
func (t *Training) findParent(starter *modelstore.Version, none string) (err error) {
	var parent *modelstore.Version
	switch t.req.From {
	case "":
		return nil
	case FromStarter:
		if starter == nil {
			return fmt.Errorf("%s: train without --from, or from a version of the store (lacuna models list)", none)
		}
		parent, t.parentID = starter, starter.ID
	case FromChampion:
		if t.championID == "" {
			return fmt.Errorf("dataset %s has no champion to begin with; train without --from first", t.req.Dataset)
		}
		t.parentID = t.championID
	default:
		if t.parentID, err = t.store.Resolve(t.req.From); err != nil {
			return err
		}
	}
	if parent == nil {
		if parent, err = t.store.Load(t.parentID); err != nil {
			return err
		}
	}
	t.parentCard = parent.Card
	t.parentFiles, err = Files(parent)
	return err
}

// Files reads what training needs of a version.
func Files(v *modelstore.Version) (finetune.Files, error) {
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
