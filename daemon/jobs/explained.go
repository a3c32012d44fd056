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
}

// Drift is the map of what they explain of one field.
type Drift struct {
	Time   time.Time `json:"time"`
	SHA256 string    `json:"sha256"`
}

func (f Folder) packExplained(e fill.Explained) (*Explained, error) {
	if e.Names == "" {
		return nil, nil
	}
	out := &Explained{Names: e.Names, Inputs: e.Inputs, Lacking: e.Lacking}
	for _, d := range e.Drift {
		var content bytes.Buffer
		if err := binary.Write(&content, binary.LittleEndian, d.Values); err != nil {
			return nil, err
		}
		sum, err := f.AddBytes(content.Bytes())
		if err != nil {
			return nil, err
		}
		out.Drift = append(out.Drift, Drift{Time: d.Time.UTC(), SHA256: sum})
	}
	return out, nil
}

func (f Folder) unpackExplained(e *Explained) (fill.Explained, error) {
	if e == nil {
		return fill.Explained{}, nil
	}
	out := fill.Explained{Names: e.Names, Inputs: e.Inputs, Lacking: e.Lacking}
	for _, d := range e.Drift {
		content, err := f.Read(d.SHA256)
		if err != nil {
			return out, err
		}
		values := make([]float32, len(content)/4)
		if err := binary.Read(bytes.NewReader(content), binary.LittleEndian, values); err != nil || len(content)%4 != 0 {
			return out, fmt.Errorf("map %s is damaged", d.SHA256)
		}
		out.Drift = append(out.Drift, infer.Drift{Time: d.Time, Values: values})
	}
	return out, nil
}
