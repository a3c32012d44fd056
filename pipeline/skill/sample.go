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
// must score: with fewer a score is chance.
const LeastPixels = 20

// ErrTooFewPixels marks a sample that is too small to be scored.
var ErrTooFewPixels = errors.New("too few pixels")

// Usable reports whether an overlay leaves enough visible and hides enough to
// be scored.
func Usable(visible, scored field.Mask) bool {
	return visible.Count() >= LeastPixels && scored.Count() >= LeastPixels
}

// A Sample is one day, its visible cells and a method's estimate of the hidden
// ones. Cells that are neither visible nor scored have no truth and are never
// read.
type Sample struct {
	Day           time.Time
	Height, Width int
	Truth         []float32   // defined on visible and scored cells
	Mean          []float32   // the estimate, on scored cells
	Sigma         []float32   // standard deviation about Mean; nil: not estimated
	Members       [][]float32 // equally likely maps; nil: no ensemble
	Centred       bool        // Members were moved so that their mean is Mean
	Visible       field.Mask  // cells that the method saw
	Scored        field.Mask  // hidden cells; disjoint from Visible
	Weights       []float32   // weight of each scored cell in WeightedMSE; nil: no WeightedMSE
	Physical      Physical
}

// Physical converts normalised values to physical ones. The zero value
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

// Composed returns the map as it would be published: the truth on visible
// cells, fill on scored ones, NaN elsewhere.
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

// check panics if slices differ in length and returns an error if the data
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
		return fmt.Errorf("%d visible and %d scored cells, need %d of each: %w",
			x.Visible.Count(), x.Scored.Count(), LeastPixels, ErrTooFewPixels)
	}
	return nil
}

func finite(v float32) bool { return v-v == 0 }
