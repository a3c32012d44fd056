package operate

import (
	"fmt"
	"os"
	"path/filepath"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/internal/faults"
)

// TuningStatus is the constants of optimal interpolation of a dataset, with what
// they were tuned on.
type TuningStatus struct {
	Dataset string `json:"dataset"`
	fill.Tunings
}

// Tunings returns the constants of a dataset, or of all where its name is empty.
func (s Settings) Tunings(dataset string) ([]TuningStatus, error) {
	sets, err := s.named(dataset)
	if err != nil {
		return nil, err
	}
	var all []TuningStatus
	for _, set := range sets {
		t := TuningStatus{Dataset: set.Name}
		if _, err := state.Load(s.State.Constants(set.Name), &t.Tunings); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// TuneAgain has the constants of a dataset tuned anew with its next granule that
// is filled by optimal interpolation. The name may be empty where there is one
// dataset.
func (s Settings) TuneAgain(dataset string) (TuningStatus, error) {
	all, err := s.Tunings(dataset)
	if err != nil {
		return TuningStatus{}, err
	}
	if len(all) != 1 {
		return TuningStatus{}, fmt.Errorf("%w: there are %d datasets, name the one to be tuned", faults.ErrConfig, len(all))
	}
	t := all[0]
	t.Again = true
	file := s.State.Constants(t.Dataset)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return t, fmt.Errorf("have %s tuned again: %w", t.Dataset, err)
	}
	return t, state.Save(file, t.Tunings)
}
