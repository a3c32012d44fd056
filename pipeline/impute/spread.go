package impute

import (
	"fmt"
	"math"
)

// Centre is a mean of an ensemble.
type Centre string

// The two means.
const (
	OneStep     Centre = "one-step" // of the imputer's one step
	MembersMean Centre = "members"  // of the members that were drawn
)

// MembersCalibration makes a calibrated ensemble of the members. They are moved
// to the mean that errs less, and spread about it as far as the truth: they bring
// the shape of errors, and the imputer's sigma their size. The standard deviation
// that a cell's members are given is
//
//	f · √(w σ² + (1-w) ρ² s²)
//
// with σ that of the imputer, s the members' own, ρ the ratio of the two, and f
// a factor by distance from the nearest visible cell. Since the share w is 1 in
// every calibration that is made now, s counts only in those of earlier versions:
// the spread of sixteen members is known to an eighth, and told nothing of the size
// of errors that sigma did not. The zero value moves members and leaves their
// spread.
type MembersCalibration struct {
	Calibration         // the factors f
	Share       float32 `json:"share"` // w
	Ratio       float32 `json:"ratio"` // ρ
	// Centre is the mean that erred less; empty: OneStep.
	Centre Centre `json:"centre,omitempty"`
}

// CalibrateMembers returns the calibration under which members stand as far from
// the mean as the truth did in the cases, in every class that has enough cells.
func CalibrateMembers(cases []Case, cfg CalibrationConfig) (MembersCalibration, error) {
	c, err := calibrate(cases, cfg, sizeFactor)
	if err != nil {
		return MembersCalibration{}, fmt.Errorf("members: %w", err)
	}
	return MembersCalibration{Calibration: c, Share: 1, Ratio: 1}, nil
}

// sizeFactor returns the factor with which sigmas are as large as errors, in
// the mean of squares.
func sizeFactor(cases []Case) float64 {
	errs, sigmas := 0.0, 0.0
	for _, k := range cases {
		errs += float64(k.Error) * float64(k.Error)
		sigmas += float64(k.Sigma) * float64(k.Sigma)
	}
	return math.Sqrt(errs / sigmas)
}

func (c MembersCalibration) blend(sigma, spread float32) float32 {
	own := float64(c.Ratio) * float64(spread)
	return float32(math.Sqrt(float64(c.Share)*float64(sigma)*float64(sigma) + (1-float64(c.Share))*own*own))
}

// Sigma returns the calibrated standard deviation of a cell's members, from
// that of the imputer and their own.
func (c MembersCalibration) Sigma(sigma, spread, distanceCells float32, dayOfYear int) float32 {
	if c.Ratio == 0 {
		return spread
	}
	return c.Apply(c.blend(sigma, spread), distanceCells, dayOfYear)
}

// Validate reports the first fault of a calibration that was read from a file.
func (c MembersCalibration) Validate() error {
	if !(c.Share >= 0 && c.Share <= 1) || !(c.Ratio >= 0) || !finite(c.Ratio) {
		return fmt.Errorf("calibration of members has a share of %v and a ratio of %v", c.Share, c.Ratio)
	}
	if c.Centre != "" && c.Centre != OneStep && c.Centre != MembersMean {
		return fmt.Errorf("calibration of members has the centre %q, must be %s or %s", c.Centre, OneStep, MembersMean)
	}
	return c.Calibration.Validate()
}

// Recentre returns members of a window moved to the mean of p, or about their
// own where that is the centre, with the spread that c gives them. distance is
// that to the nearest visible cell. Visible cells keep their value.
func (c MembersCalibration) Recentre(members [][]float32, in Inputs, p Prediction, distance []float64) [][]float32 {
	out := make([][]float32, len(members))
	for m := range out {
		out[m] = make([]float32, len(p.Mean))
	}
	for i, mean := range p.Mean {
		own, spread := Departure(members, i)
		factor := float32(0)
		if spread > 0 && !in.Visible[i] {
			factor = c.Sigma(p.Sigma[i], spread, float32(distance[i]), in.DayOfYear) / spread
		}
		if c.Centre == MembersMean && !in.Visible[i] {
			mean = own
		}
		for m := range out {
			out[m][i] = mean + factor*(members[m][i]-own)
		}
	}
	return out
}

// Departure returns the mean of members at a cell, and their root mean square
// deviation from it.
func Departure(members [][]float32, cell int) (mean, spread float32) {
	sum := 0.0
	for _, m := range members {
		sum += float64(m[cell])
	}
	centre := sum / float64(len(members))
	square := 0.0
	for _, m := range members {
		d := float64(m[cell]) - centre
		square += d * d
	}
	return float32(centre), float32(math.Sqrt(square / float64(len(members))))
}
