package classical

import (
	"errors"
	"math"
	"time"

	"lacuna/pipeline/field"
)

// ErrNoObservations says that not a single value of a series can be used.
var ErrNoObservations = errors.New("no observation in the whole series")

const (
	badLength = "classical: slice length differs from the grid"
	badTarget = "classical: target is not an index of a frame"
	badOrder  = "classical: frames are not in order of time"
)

// A Series is all that a method may look at: maps of one variable on one grid,
// in the space in which errors are additive (for example log10), in order of
// time.
type Series struct {
	Grid   field.Grid
	Sea    field.Mask // nil: every cell is sea
	Frames []Frame    // times must not descend; equal ones are allowed
}

// A Frame is the map of one time. Frames are only read.
type Frame struct {
	Time   time.Time
	Values []float32 // NaN (or an infinity): a gap
}

// An Estimate is what a method says of the target frame. Both are NaN on land
// and where nothing can be said. Sigma is the standard deviation of what an
// observation at that cell would show about Mean, so it holds the error of
// measurement and what varies below the scale of the grid.
type Estimate struct {
	Mean, Sigma []float32
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

// check panics where the caller mixed something up.
func (s Series) check(target int) {
	if target < 0 || target >= len(s.Frames) {
		panic(badTarget)
	}
	if s.Sea != nil && len(s.Sea) != s.Grid.Len() {
		panic(badLength)
	}
	for i, f := range s.Frames {
		if len(f.Values) != s.Grid.Len() {
			panic(badLength)
		}
		if i > 0 && f.Time.Before(s.Frames[i-1].Time) {
			panic(badOrder)
		}
	}
}

// sea reports whether cell i is one that has to be filled.
func (s Series) sea(i int) bool { return s.Sea == nil || s.Sea[i] }

// observed reports whether frame f says anything at cell i. What a frame holds
// on land is ignored.
func (s Series) observed(f, i int) bool {
	v := s.Frames[f].Values[i]
	return v-v == 0 && s.sea(i) // false for NaN and infinities
}

// days returns the time of frame f in days after frame origin.
func (s Series) days(f, origin int) float64 {
	return s.Frames[f].Time.Sub(s.Frames[origin].Time).Hours() / 24
}

// gaps returns an estimate that says nothing yet.
func gaps(n int) Estimate {
	e := Estimate{Mean: make([]float32, n), Sigma: make([]float32, n)}
	nan := float32(math.NaN())
	for i := range n {
		e.Mean[i], e.Sigma[i] = nan, nan
	}
	return e
}
