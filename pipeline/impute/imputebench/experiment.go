package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"lacuna/pipeline/impute"
)

// An experiment is one network, or a classical method, and how it is scored.
// What a list does not say is as the preset has it.
type experiment struct {
	Name      string             `json:"name"`
	Method    string             `json:"method"` // imputer, dindiff, missdiff, oi or kriging
	Preset    string             `json:"preset"` // lacuna or paper
	Partition string             `json:"partition"`
	PerPatch  int                `json:"per_patch"` // partitions of each patch; 0: always new ones
	Seeds     []uint64           `json:"seeds"`
	Modes     []impute.Mode      `json:"modes"` // that it is scored in
	Train     impute.TrainConfig `json:"train"`

	Members  *membersPlan  `json:"members"`
	Samplers []samplerPlan `json:"samplers"`
	Classify bool          `json:"classify"` // train P(query | context) too

	// Of dindiff and missdiff.
	Ensemble         int `json:"ensemble"` // members
	Steps            int `json:"ensemble_steps"`
	EnsembleOverlays int `json:"ensemble_overlays"` // 0: all
}

// membersPlan asks for residual members.
type membersPlan struct {
	Train    impute.TrainConfig `json:"train"`
	Count    int                `json:"count"`
	Overlays int                `json:"overlays"` // scored with members; 0: all
	ODEs     []impute.ODE       `json:"odes"`
}

// samplerPlan asks for one of the paper's samplers.
type samplerPlan struct {
	Sampler  string               `json:"sampler"`
	Overlays int                  `json:"overlays"` // 0: all
	Config   impute.SamplerConfig `json:"config"`
}

// UnmarshalJSON implements json.Unmarshaler: what is not said is as the
// tables have it.
func (p *samplerPlan) UnmarshalJSON(text []byte) error {
	type plain samplerPlan
	v := plain{Config: impute.DefaultSampler()}
	if err := strict(text, &v); err != nil {
		return err
	}
	*p = samplerPlan(v)
	return nil
}

// readExperiments reads a list, strictly.
func readExperiments(path string) ([]experiment, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	list := make([]experiment, len(raw))
	names := map[string]bool{}
	for i, text := range raw {
		if list[i], err = decodeExperiment(text); err != nil {
			return nil, fmt.Errorf("read %s: experiment %d: %w", path, i+1, err)
		}
		if names[list[i].Name] {
			return nil, fmt.Errorf("read %s: two experiments are called %q", path, list[i].Name)
		}
		names[list[i].Name] = true
	}
	return list, nil
}

func decodeExperiment(text []byte) (experiment, error) {
	var first struct {
		Preset  string    `json:"preset"`
		Members *struct{} `json:"members"`
	}
	if err := json.Unmarshal(text, &first); err != nil {
		return experiment{}, err
	}
	e := experiment{
		Method: "imputer", Partition: "empirical", Seeds: []uint64{1},
		Modes: []impute.Mode{impute.Single}, Ensemble: 8, Steps: 20,
	}
	switch first.Preset {
	case "", "lacuna":
		e.Train = impute.DefaultTrainConfig()
		e.Modes = []impute.Mode{impute.Delayed, impute.Past, impute.Single}
	case "paper":
		e.Train = impute.PaperConfig()
	default:
		return experiment{}, fmt.Errorf("preset is %q, must be lacuna or paper", first.Preset)
	}
	if err := strict(text, &e); err != nil {
		return experiment{}, err
	}
	if first.Members != nil { // again, over settings that depend on the model's
		e.Members = &membersPlan{Train: impute.MembersConfig(e.Train), Count: 8, ODEs: []impute.ODE{impute.DefaultODE()}}
		if err := strict(text, &e); err != nil {
			return experiment{}, err
		}
	}
	if e.Name == "" {
		return experiment{}, errors.New("it has no name")
	}
	return e, nil
}

func strict(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}
