package retrain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lacuna/modelstore"
	"lacuna/pipeline/version"
)

// findVersions loads the version to begin with and those to beat, every byte
// checked.
func (t *Training) findVersions(ctx context.Context) error {
	err := t.findChampion()
	if err != nil {
		return err
	}
	var starter *modelstore.Version
	none := "" // why no starter fits
	if t.champion == nil || t.req.From == FromStarter {
		if starter, none, err = t.req.Starter(ctx); err != nil {
			return err
		}
	}
	if starter != nil && t.champion == nil {
		if t.starter, err = Parts(starter); err != nil {
			return err
		}
	}
	return t.findParent(starter, none)
}

// findChampion loads the champion.
func (t *Training) findChampion() error {
	t.championID, t.championCard, t.champion = "", modelstore.Card{}, nil
	serving, err := t.store.LoadChampion(t.req.Dataset)
	if errors.Is(err, modelstore.ErrNoChampion) {
		return nil
	}
	if err != nil {
		return err
	}
	t.championID, t.championCard = serving.Version.ID, serving.Version.Card
	if t.champion, err = Parts(serving.Version); err != nil {
		return err
	}
	if t.champion[version.PartImputer] == nil {
		t.champion = nil // it fills nothing, so there is none to beat
	}
	return nil
}

// followChampion loads the champion anew where it is another one by now, and
// reports that.
func (t *Training) followChampion() (moved bool, err error) {
	now, err := t.store.Champion(t.req.Dataset)
	if err != nil && !errors.Is(err, modelstore.ErrNoChampion) {
		return false, err
	}
	if now.Version == t.championID {
		return false, nil
	}
	if err := t.findChampion(); err != nil {
		return false, err
	}
	t.job.Champion = t.champion
	return true, nil
}

// findParent loads the version to begin with. none is the reason why there is
// no starter.
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
	if t.parent, err = Parts(parent); err != nil {
		return err
	}
	t.seen = seenBy(parent.Card, t.parent)
	if t.req.Options.Only == version.OnlyCalibration {
		if t.kept, err = queriesOf(parent); err != nil {
			return err
		}
	}
	return nil
}

// partFiles are the names of the files of a version, by part.
var partFiles = map[version.Part]string{
	version.PartPrior:       modelstore.PriorFile,
	version.PartImputer:     modelstore.ImputerFile,
	version.PartMembers:     modelstore.MembersFile,
	version.PartReliability: modelstore.ReliabilityFile,
	version.PartCalibration: modelstore.CalibrationFile,
	version.PartScaling:     modelstore.ScalingFile,
	version.PartEvaluation:  modelstore.EvaluationFile,
}

// Parts reads the parts of a version that training needs.
func Parts(v *modelstore.Version) (version.Parts, error) {
	parts := version.Parts{}
	for part, file := range partFiles {
		if !v.Has(file) {
			continue
		}
		data, err := v.ReadFile(file)
		if err != nil {
			return nil, err
		}
		parts[part] = data
	}
	return parts, nil
}

// queriesOf returns the maps of P(query) of a version.
func queriesOf(v *modelstore.Version) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, f := range v.Card.Files {
		if strings.HasPrefix(f.Name, "query") {
			data, err := v.ReadFile(f.Name)
			if err != nil {
				return nil, err
			}
			out[f.Name] = data
		}
	}
	return out, nil
}

// filesOf returns the files of a new version, by name.
func filesOf(parts version.Parts) (map[string][]byte, error) {
	files := map[string][]byte{}
	for part, data := range parts {
		file, known := partFiles[part]
		if !known {
			return nil, fmt.Errorf("store the version: its part %q has no file", part)
		}
		files[file] = data
	}
	return files, nil
}
