package samples

import (
	"errors"
	"fmt"
	"slices"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// Scaling maps transformed values to normalised anomalies and back.
type Scaling struct {
	Mean []float32 // the smooth mean map, in the space of the transform
	Std  float64   // standard deviation of all values about their common mean
}

// ScalingDays is the least number of days of a scaling for a network of another
// place. The mean map is smooth over twenty cells, so a few observations of each
// neighbourhood are enough for it; fewer days are all of one weather.
const ScalingDays = 10

// ErrFewDays marks a series that is too short for a scaling of its own.
var ErrFewDays = errors.New("too few days to learn a scaling from")

// LearnScaling returns the scaling of a dataset from its own days, for a
// network that was trained elsewhere. Such a network knows the shape of
// anomalies; their zero and their unit are those of the place itself:
//
//	anomaly = (transformed value - smooth mean map of the place) / spread of the place
//
// exactly as the training days of a network are scaled. The days should be
// recent ones, since a mean map of another season puts that season into the
// anomalies, and of at least two months where there are as many. With fewer
// than ScalingDays days the error is ErrFewDays. LearnScaling is a function of
// s alone; a caller that keeps the result learns it anew as days come in.
func LearnScaling(s Series) (Scaling, error) {
	if len(s.Days) < ScalingDays {
		return Scaling{}, fmt.Errorf("%w: there are %d, and %d are needed", ErrFewDays, len(s.Days), ScalingDays)
	}
	return scalingOf(s, s.Days)
}

func scalingOf(s Series, days []Day) (Scaling, error) {
	frames := make([]classical.Frame, len(days))
	values := make([][]float32, len(days))
	for i, d := range days {
		frames[i] = classical.Frame{Time: d.Time, Values: d.Values}
		values[i] = d.Values
	}
	norm, err := field.NormalisationOf(field.Summarise(values...))
	if err != nil {
		return Scaling{}, fmt.Errorf("scale the days: %w", err)
	}
	mean := classical.Climatology(classical.Series{Grid: s.Grid, Sea: s.Sea, Frames: frames}, 0).Mean
	for i, m := range mean {
		if m != m { // land, or sea that no day reaches: the common mean
			mean[i] = float32(norm.Mean)
		}
	}
	return Scaling{Mean: mean, Std: norm.Std}, nil
}

// Forward returns the normalised anomaly of a transformed value in a cell.
func (s Scaling) Forward(v float32, cell int) float32 {
	return float32((float64(v) - float64(s.Mean[cell])) / s.Std)
}

// Inverse returns the transformed value of a normalised anomaly in a cell.
func (s Scaling) Inverse(a float32, cell int) float32 {
	return float32(float64(a)*s.Std + float64(s.Mean[cell]))
}

// Lower returns s for values that are lower by an amount.
func (s Scaling) Lower(by float64) Scaling {
	if by == 0 {
		return s
	}
	s.Mean = slices.Clone(s.Mean)
	for i := range s.Mean {
		s.Mean[i] -= float32(by)
	}
	return s
}

// normalisedDrift returns a part of transformed values in units of the spread; nil for
// nil.
func (s Scaling) normalisedDrift(drift []float32) []float32 {
	if drift == nil {
		return nil
	}
	out := make([]float32, len(drift))
	for i, v := range drift {
		out[i] = float32(float64(v) / s.Std)
	}
	return out
}

// Normalised returns transformed values as normalised anomalies, with gaps
// kept.
func (s Scaling) Normalised(values []float32) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = field.NaN()
		if v == v { // not NaN
			out[i] = s.Forward(v, i)
		}
	}
	return out
}
