package roofline

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime/pprof"
	"slices"

	"github.com/google/pprof/profile"
)

// Profile says which functions of this program take the time of a stage.
type Profile struct {
	Stage     string     `json:"stage"`
	Functions []Function `json:"functions"` // those that take most, without what they call
}

// Function is a function and its share of the processor time.
type Function struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// Numbers of a profile.
const (
	shownFunctions = 8
	leastShare     = 0.02
)

// profileOf runs a stage once and looks where it is, a hundred times a second.
func profileOf(s stage) (Profile, error) {
	var raw bytes.Buffer
	if err := pprof.StartCPUProfile(&raw); err != nil {
		return Profile{}, err
	}
	err := s.run()
	pprof.StopCPUProfile()
	if err != nil {
		return Profile{}, err
	}
	seen, err := profile.Parse(&raw)
	if err != nil {
		return Profile{}, err
	}
	return Profile{Stage: s.name, Functions: functionsOf(seen)}, nil
}

// functionsOf returns the functions in which samples were taken, the most frequent first.
func functionsOf(seen *profile.Profile) []Function {
	const nanoseconds = 1 // the second of the two numbers of a sample
	times, all := map[string]float64{}, 0.0
	for _, sample := range seen.Sample {
		all += float64(sample.Value[nanoseconds])
		times[nameOf(sample)] += float64(sample.Value[nanoseconds])
	}
	var out []Function
	for _, name := range slices.Sorted(maps.Keys(times)) {
		if share := times[name] / all; share >= leastShare {
			out = append(out, Function{Name: name, Share: share})
		}
	}
	slices.SortStableFunc(out, func(a, b Function) int { return cmp.Compare(b.Share, a.Share) })
	return out[:min(len(out), shownFunctions)]
}

// nameOf returns the function in which a sample was taken.
func nameOf(sample *profile.Sample) string {
	if len(sample.Location) > 0 && len(sample.Location[0].Line) > 0 {
		if f := sample.Location[0].Line[0].Function; f != nil && f.Name != "" {
			return f.Name
		}
	}
	return "code that is not Go"
}

// print writes the profile; one of a stage that was too short for a sample is empty.
func (p Profile) print(out io.Writer) error {
	if len(p.Functions) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(out, "\nWhere %s, the slowest of them outside of networks, spends its time:\n", p.Stage); err != nil {
		return err
	}
	for _, f := range p.Functions {
		if _, err := fmt.Fprintf(out, "%5.0f %%  %s\n", 100*f.Share, f.Name); err != nil {
			return err
		}
	}
	return nil
}
