package version

import (
	"errors"
	"fmt"
	"math"
	"time"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// Replay says how often patches of a day are learned from, by its age: new
// days count most, and older seasons come back often enough not to be
// forgotten.
type Replay struct {
	HalfLifeDays float64 `json:"half_life_days" yaml:"half_life_days"` // age at which a patch counts half; 0: all count alike
	Floor        float64 `json:"floor" yaml:"floor"`                   // least that a patch counts, of 1
}

// DefaultReplay gives the last season about as much weight as a year before
// it.
func DefaultReplay() Replay { return Replay{HalfLifeDays: 45, Floor: 0.2} }

func (r Replay) validate() error {
	if r.HalfLifeDays < 0 || r.Floor < 0 || r.Floor > 1 {
		return fmt.Errorf("replay has a half-life of %g days and a floor of %g, must not be negative, and the floor at most 1", r.HalfLifeDays, r.Floor)
	}
	return nil
}

// weight returns the weight of a patch of an age.
func (r Replay) weight(age time.Duration) float64 {
	if r.HalfLifeDays == 0 {
		return 1
	}
	return max(math.Exp2(-age.Hours()/24/r.HalfLifeDays), r.Floor)
}

// errNoPatches marks training days without a usable patch.
var errNoPatches = errors.New("no patch of the training days has enough observations: give more days, or smaller patches")

// ageIn returns the age of a day: 0 for the newest of its place.
func ageIn(data samples.Train) func(day int) time.Duration {
	return func(day int) time.Duration {
		_, end := data.Place(day).Days()
		return data.Time(end - 1).Sub(data.Time(day))
	}
}

// choose returns as many refs as it is given, each as often as its weight
// asks, rounded up or down so that the sum is right (systematic resampling).
func (r Replay) choose(refs []samples.Ref, age func(day int) time.Duration, stream noise.Stream) ([]samples.Ref, error) {
	if len(refs) == 0 {
		return nil, errNoPatches
	}
	sum := 0.0
	for _, ref := range refs {
		sum += r.weight(age(ref.Day))
	}
	step := sum / float64(len(refs))
	next := step * stream.Rand(0).Float64()
	out := make([]samples.Ref, 0, len(refs))
	passed := 0.0
	for _, ref := range refs {
		passed += r.weight(age(ref.Day))
		for next < passed && len(out) < len(refs) {
			out = append(out, ref)
			next += step
		}
	}
	return out, nil
}
