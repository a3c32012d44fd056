package classical

import (
	"errors"
	"math"
	"time"

	"lacuna/pipeline/field"
)

// ErrNoObservations says that not a single value of a series can be used.
var ErrNoObservations = errors.New("the series has no observation")

const (
	badLength = "classical: slice length differs from the grid"
	badTarget = "classical: target is not an index of a frame"
	badOrder  = "classical: frames are not in order of time"
)

// A Series is the input of a method: maps of one variable on one grid, in the
// space in which errors are additive (for example log10), in order of time.
type Series struct {
	Grid   field.Grid
	Sea    field.Mask // nil: every cell is sea
	Frames []Frame    // times must not descend; equal ones are allowed
}

// A Frame is the map of one time. No method changes it.
type Frame struct {
	Time   time.Time
	Values []float32 // NaN (or an infinity): a gap
	// Drift is the part of every value, observed or not, that something else than the
	// series explains, such as covariates; nil: none. OI interpolates what is left;
	// other methods ignore it.
	Drift []float32
	// Errors are the standard errors of the observations where they differ in them,
	// NaN where one is not known; nil: none is, and all weigh alike.
	Errors []float32
}

// An Estimate is the result of a method for the target frame. Both maps are NaN
// on land and where there is no estimate. Sigma is the standard deviation of an
// observation at that cell about Mean, so it includes the error of measurement
// and the variation below the scale of the grid.
type Estimate struct {
	Mean, Sigma []float32
	// Expected is Sigma as the covariance alone has it, where OI calibrated Sigma
	// by overlays; else nil.
	Expected []float32
}

// Window returns the series of the frames from past before the target to
// future after it, both included, and the target's index in it. It shares
// the frames with s.
func (s Series) Window(target int, past, future time.Duration) (Series, int) {
	if target < 0 || target >= len(s.Frames) {
		panic(badTarget)
	}
	now := s.Frames[target].Time
	first, last := target, target
	for first > 0 && now.Sub(s.Frames[first-1].Time) <= past {
		first--
	}
	for last+1 < len(s.Frames) && s.Frames[last+1].Time.Sub(now) <= future {
		last++
	}
	return Series{Grid: s.Grid, Sea: s.Sea, Frames: s.Frames[first : last+1]}, target - first
}

// check panics if the series is malformed or has no such target.
func (s Series) check(target int) {
	if target < 0 || target >= len(s.Frames) {
		panic(badTarget)
	}
	if s.Sea != nil && len(s.Sea) != s.Grid.Len() {
		panic(badLength)
	}
	for i, f := range s.Frames {
		if len(f.Values) != s.Grid.Len() || f.Errors != nil && len(f.Errors) != s.Grid.Len() {
			panic(badLength)
		}
		if i > 0 && f.Time.Before(s.Frames[i-1].Time) {
			panic(badOrder)
		}
	}
}

// sea reports whether cell i is to be filled.
func (s Series) sea(i int) bool { return s.Sea == nil || s.Sea[i] }

// observed reports whether frame f has an observation at cell i. Values on land
// are ignored.
func (s Series) observed(f, i int) bool {
	v := s.Frames[f].Values[i]
	return v-v == 0 && s.sea(i) // false for NaN and infinities
}

// days returns the time of frame f in days after frame origin.
func (s Series) days(f, origin int) float64 {
	return s.Frames[f].Time.Sub(s.Frames[origin].Time).Hours() / 24
}

// gaps returns an estimate of NaN everywhere.
func gaps(n int) Estimate {
	e := Estimate{Mean: make([]float32, n), Sigma: make([]float32, n)}
	nan := float32(math.NaN())
	for i := range n {
		e.Mean[i], e.Sigma[i] = nan, nan
	}
	return e
}
