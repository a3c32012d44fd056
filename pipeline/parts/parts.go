// Package parts is what the calibration and the scaling of a model version hold,
// as the training writes them and as whoever serves the version reads them.
//
// It knows neither training nor serving.
package parts

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// Calibration is the calibration of a version: factors on the sigma of the
// imputer and, where there are members, how wide they stand about its mean.
type Calibration struct {
	impute.Calibration
	Members *impute.MembersCalibration `json:"members,omitempty"`
}

// DecodeCalibration reads a calibration. Without one nothing is calibrated.
func DecodeCalibration(data []byte) (Calibration, error) {
	var c Calibration
	if data == nil {
		return c, nil
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, err
	}
	errs := []error{c.Validate()}
	if c.Members != nil {
		errs = append(errs, c.Members.Validate())
	}
	return c, errors.Join(errs...)
}

// Scaling is the scaling of a version: how the network's anomalies are made of
// transformed values, cell by cell of a grid. A version of several grids has
// none, and one of another grid is ignored: in both cases the place where
// the version serves learns its own, see samples.LearnScaling.
type Scaling struct {
	Lat []float64 `json:"lat"`
	Lon []float64 `json:"lon"`
	// Plane is that of the grid, where it has one.
	Plane *field.Plane `json:"plane,omitempty"`
	Log10 bool         `json:"log10"`
	Floor float32      `json:"floor,omitempty"` // least value that has a logarithm
	Std   float64      `json:"std"`
	Mean  []float32    `json:"mean"` // per cell, row by row
	// Constants are those of the analysis that the network departs from; nil: the
	// defaults for the grid.
	Constants *Constants `json:"constants,omitempty"`
	// Query is P(query) of each cell over the draws that the network learned
	// from, -1 where there were too few; nil: not counted.
	Query []float32 `json:"query,omitempty"`
	// Covariates are the constants of those that the network sees; nil: it sees none.
	Covariates []samples.Channel `json:"covariates,omitempty"`
	// Levels are changes of the level of the data, in order of time; the mean map is at
	// the level after the last. Nil: there were none.
	Levels []samples.Level `json:"levels,omitempty"`
}

// Constants are the scales of optimal interpolation.
type Constants struct {
	LengthKM float64 `json:"length_km"`
	Days     float64 `json:"days"`
	Nugget   float64 `json:"nugget"`
}

// Of returns oi with these constants.
func (c Constants) Of(oi classical.OI) classical.OI {
	oi.LengthKM, oi.Days, oi.Nugget = c.LengthKM, c.Days, c.Nugget
	return oi
}

// NewScaling returns the scaling of a grid as a part of a version.
func NewScaling(g field.Grid, tr field.Transform, s samples.Scaling) Scaling {
	return Scaling{Lat: g.Lat, Lon: g.Lon, Plane: g.Plane, Log10: tr.Log10, Floor: tr.Floor, Std: s.Std, Mean: s.Mean}
}

// DecodeScaling reads a scaling.
func DecodeScaling(data []byte) (Scaling, error) {
	var s Scaling
	if err := json.Unmarshal(data, &s); err != nil {
		return s, err
	}
	if s.Query != nil && len(s.Query) != len(s.Mean) {
		return s, fmt.Errorf("P(query) of %d cells, means of %d", len(s.Query), len(s.Mean))
	}
	if c := s.Constants; c != nil && !(c.LengthKM > 0 && c.Days > 0 && c.Nugget >= 0 && c.Nugget < 1) {
		return s, fmt.Errorf("constants of optimal interpolation are %+v", *c)
	}
	for _, c := range s.Covariates {
		if c.Mean != nil && len(c.Mean) != len(s.Mean) || !(c.Std >= 0) || math.IsInf(c.Std, 1) {
			return s, fmt.Errorf("covariate %s has %d means for %d cells, and the standard deviation %v", c.Name, len(c.Mean), len(s.Mean), c.Std)
		}
	}
	if len(s.Mean) != len(s.Lat)*len(s.Lon) || !(s.Std > 0) || math.IsInf(s.Std, 1) {
		return s, fmt.Errorf("%d means for %d x %d cells, standard deviation %v", len(s.Mean), len(s.Lat), len(s.Lon), s.Std)
	}
	return s, nil
}

// Samples returns the scaling as package samples takes it.
func (s Scaling) Samples() samples.Scaling { return samples.Scaling{Mean: s.Mean, Std: s.Std} }

// Grid returns the grid of the scaling. A plane may have lost its places.
func (s Scaling) Grid() field.Grid { return field.Grid{Lat: s.Lat, Lon: s.Lon, Plane: s.Plane} }

// Fits reports whether the scaling is of this grid and transform.
func (s Scaling) Fits(g field.Grid, tr field.Transform) bool {
	return g.Same(s.Grid()) && s.Log10 == tr.Log10
}
