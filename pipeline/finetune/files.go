package finetune

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// Names of the files of a version.
const (
	PriorFile       = "prior.onnx"
	ImputerFile     = "imputer.onnx"
	MembersFile     = "members.onnx"
	ReliabilityFile = "reliability.onnx"
	CalibrationFile = "calibration.json"
	ScalingFile     = "scaling.json"
	EvaluationFile  = "evaluation.json"
)

// Files are the contents of a version by name. A version need not have all of
// them.
type Files map[string][]byte

// Calibration is what a version's calibration.json holds: factors on the sigma
// of the imputer and, where there are members, how wide they stand about its
// mean.
type Calibration struct {
	impute.Calibration
	Members *impute.MembersCalibration `json:"members,omitempty"`
}

// DecodeCalibration reads a calibration.json. Without one nothing is
// calibrated.
func DecodeCalibration(data []byte) (Calibration, error) {
	var c Calibration
	if data == nil {
		return c, nil
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("read %s: %w", CalibrationFile, err)
	}
	errs := []error{c.Validate()}
	if c.Members != nil {
		errs = append(errs, c.Members.Validate())
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("read %s: %w", CalibrationFile, err)
	}
	return c, nil
}

// Scaling is what a version's scaling.json holds: how the network's anomalies
// are made of transformed values, cell by cell of a grid. A version of several
// grids has none, and one of another grid is not looked at: in both cases the
// place where the version serves learns its own, see samples.LearnScaling.
type Scaling struct {
	Lat   []float64 `json:"lat"`
	Lon   []float64 `json:"lon"`
	Log10 bool      `json:"log10"`
	Floor float32   `json:"floor,omitempty"` // least value that has a logarithm
	Std   float64   `json:"std"`
	Mean  []float32 `json:"mean"` // per cell, row by row
	// Query is P(query) of each cell over the draws that the network learned
	// from, -1 where too few say; nil: not counted.
	Query []float32 `json:"query,omitempty"`
}

// NewScaling returns the scaling of a grid in the words of the file.
func NewScaling(g field.Grid, tr field.Transform, s samples.Scaling) Scaling {
	return Scaling{Lat: g.Lat, Lon: g.Lon, Log10: tr.Log10, Floor: tr.Floor, Std: s.Std, Mean: s.Mean}
}

// scalingOf returns the scaling of the training days, nil where they are of
// several places.
func scalingOf(data samples.Train) *Scaling {
	if len(data.Places()) > 1 {
		return nil
	}
	s := NewScaling(data.Grid(), data.Transform(), data.Scaling())
	return &s
}

// DecodeScaling reads a scaling.json.
func DecodeScaling(data []byte) (Scaling, error) {
	var s Scaling
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", ScalingFile, err)
	}
	if s.Query != nil && len(s.Query) != len(s.Mean) {
		return s, fmt.Errorf("read %s: P(query) of %d cells, means of %d", ScalingFile, len(s.Query), len(s.Mean))
	}
	if len(s.Mean) != len(s.Lat)*len(s.Lon) || !(s.Std > 0) || math.IsInf(s.Std, 1) {
		return s, fmt.Errorf("read %s: %d means for %d x %d cells, standard deviation %v", ScalingFile, len(s.Mean), len(s.Lat), len(s.Lon), s.Std)
	}
	return s, nil
}

// Samples returns the scaling in the words of package samples.
func (s Scaling) Samples() samples.Scaling { return samples.Scaling{Mean: s.Mean, Std: s.Std} }

// Fits reports whether the scaling is of this grid and transform.
func (s Scaling) Fits(g field.Grid, tr field.Transform) bool {
	return g.Same(field.Grid{Lat: s.Lat, Lon: s.Lon}) && s.Log10 == tr.Log10
}
