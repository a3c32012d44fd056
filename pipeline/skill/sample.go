package skill

import (
	"errors"
	"fmt"
	"math"
	"time"

	"lacuna/pipeline/field"
)

const (
	badLength  = "skill: slices of different length"
	badOverlap = "skill: a cell is both visible and scored"
)

// LeastPixels is how many cells a sample must leave visible, and how many it
// must score: with fewer a day is an anecdote.
const LeastPixels = 20

// ErrTooFewPixels marks a sample that is not worth a score.
var ErrTooFewPixels = errors.New("too few pixels")

// Usable reports whether an overlay leaves enough visible and hides enough to
// be scored.
func Usable(visible, scored field.Mask) bool {
	return visible.Count() >= LeastPixels && scored.Count() >= LeastPixels
}

// A Sample is one day, what a method was shown of it, and what it made of the
// rest. Cells that are neither visible nor scored have no truth and are never
// looked at.
type Sample struct {
	Day           time.Time
	Height, Width int
	Truth         []float32   // on visible and scored cells
	Mean          []float32   // on scored cells
	Sigma         []float32   // standard deviation about Mean; nil: none claimed
	Members       [][]float32 // equally likely maps; nil: none
	Centred       bool        // Members were moved so that their mean is Mean
	Visible       field.Mask  // what the method saw
	Scored        field.Mask  // what it did not; disjoint from Visible
	Weights       []float32   // what a scored cell counts in WeightedMSE; nil: nothing is weighted
	Physical      Physical
}

// Physical leads from normalised values back to physical ones. The zero value
// is the identity.
type Physical struct {
	Normalisation field.Normalisation // Std 0: values are not normalised
	Transform     field.Transform
}

// Inverse returns the physical value of the normalised x.
func (p Physical) Inverse(x float64) float64 {
	if p.Normalisation.Std != 0 {
		x = x*p.Normalisation.Std + p.Normalisation.Mean
	}
	if p.Transform.Log10 {
		x = math.Pow(10, x)
	}
	return x
}

// Composed returns the product that a reader of the map sees: the truth where
// it was visible, fill where it is scored, NaN elsewhere.
func (x Sample) Composed(fill []float32) []float32 {
	if len(fill) != len(x.Truth) {
		panic(badLength)
	}
	out := make([]float32, len(fill))
	for i := range out {
		switch {
		case x.Visible[i]:
			out[i] = x.Truth[i]
		case x.Scored[i]:
			out[i] = fill[i]
		default:
			out[i] = field.NaN()
		}
	}
	return out
}

// check panics where slices do not fit and returns an error where the data
// cannot be scored.
func (x Sample) check() error {
	n := x.Height * x.Width
	fits := func(length int, optional bool) {
		if length != n && (!optional || length != 0) {
			panic(badLength)
		}
	}
	fits(len(x.Truth), false)
	fits(len(x.Mean), false)
	fits(len(x.Visible), false)
	fits(len(x.Scored), false)
	fits(len(x.Sigma), true)
	fits(len(x.Weights), true)
	for _, m := range x.Members {
		fits(len(m), false)
	}
	for i := range n {
		if x.Visible[i] && x.Scored[i] {
			panic(badOverlap)
		}
		if (x.Visible[i] || x.Scored[i]) && !finite(x.Truth[i]) {
			return fmt.Errorf("truth of cell %d is %v", i, x.Truth[i])
		}
	}
	if !Usable(x.Visible, x.Scored) {
		return fmt.Errorf("%d visible and %d scored, need %d of each: %w",
			x.Visible.Count(), x.Scored.Count(), LeastPixels, ErrTooFewPixels)
	}
	return nil
}

func finite(v float32) bool { return v-v == 0 }
