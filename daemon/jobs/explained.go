package jobs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"lacuna/daemon/fill"
	"lacuna/pipeline/infer"
	"lacuna/publish/netcdf"
)

// Explained is what covariates say of the fields of a job. The daemon has found it out: a
// worker needs no file of a covariate.
type Explained struct {
	Names   string         `json:"names"`
	Drift   []Drift        `json:"drift,omitempty"`
	Inputs  []netcdf.Input `json:"inputs,omitempty"`
	Lacking []string       `json:"lacking,omitempty"`
	Unfit   []string       `json:"unfit,omitempty"`
	Maps    []Map          `json:"maps,omitempty"`
}

// Map is one of a covariate that the model sees.
type Map struct {
	Time   time.Time `json:"time"`
	Name   string    `json:"name"`
	Units  string    `json:"units,omitempty"`
	SHA256 string    `json:"sha256"`
}

// Drift is the map of what they explain of one field.
type Drift struct {
	Time   time.Time `json:"time"`
	SHA256 string    `json:"sha256"`
}

func (f Folder) packExplained(e fill.Explained) (*Explained, error) {
	if e.Names == "" && len(e.Unfit) == 0 {
		return nil, nil
	}
	out := &Explained{Names: e.Names, Inputs: e.Inputs, Lacking: e.Lacking, Unfit: e.Unfit}
	for _, d := range e.Drift {
		sum, err := f.addMap(d.Values)
		if err != nil {
			return nil, err
		}
		out.Drift = append(out.Drift, Drift{Time: d.Time.UTC(), SHA256: sum})
	}
	for _, m := range e.Maps {
		sum, err := f.addMap(m.Values)
		if err != nil {
			return nil, err
		}
		out.Maps = append(out.Maps, Map{Time: m.Time.UTC(), Name: m.Name, Units: m.Units, SHA256: sum})
	}
	return out, nil
}

func (f Folder) unpackExplained(e *Explained) (fill.Explained, error) {
	if e == nil {
		return fill.Explained{}, nil
	}
	out := fill.Explained{Names: e.Names, Inputs: e.Inputs, Lacking: e.Lacking, Unfit: e.Unfit}
	for _, d := range e.Drift {
		values, err := f.readMap(d.SHA256)
		if err != nil {
			return out, err
		}
		out.Drift = append(out.Drift, infer.Drift{Time: d.Time, Values: values})
	}
	for _, m := range e.Maps {
		values, err := f.readMap(m.SHA256)
		if err != nil {
			return out, err
		}
		out.Maps = append(out.Maps, infer.Covariate{Time: m.Time, Name: m.Name, Units: m.Units, Values: values})
	}
	return out, nil
}

// addMap puts the values of a map into the folder, to the bit.
func (f Folder) addMap(values []float32) (sha256 string, err error) {
	var content bytes.Buffer
	if err := binary.Write(&content, binary.LittleEndian, values); err != nil {
		return "", err
	}
	return f.AddBytes(content.Bytes())
}

func (f Folder) readMap(sha256 string) ([]float32, error) {
	content, err := f.Read(sha256)
	if err != nil {
		return nil, err
	}
	values := make([]float32, len(content)/4)
	if err := binary.Read(bytes.NewReader(content), binary.LittleEndian, values); err != nil || len(content)%4 != 0 {
		return nil, fmt.Errorf("map %s is damaged", sha256)
	}
	return values, nil
}
