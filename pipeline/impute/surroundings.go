package impute

import (
	"fmt"
	"time"

	"lacuna/pipeline/samples"
)

// A Mode says which days around a target may be used.
type Mode string

// The modes, from the fewest days to the most.
const (
	Single  Mode = "single"  // the target day alone
	Past    Mode = "past"    // also the days before it: near real time
	Delayed Mode = "delayed" // also the days before and after it
)

// ParseMode returns the mode with the given name.
func ParseMode(name string) (Mode, error) {
	for _, m := range []Mode{Single, Past, Delayed} {
		if name == string(m) {
			return m, nil
		}
	}
	return "", fmt.Errorf("mode is %q, must be %q, %q or %q", name, Single, Past, Delayed)
}

// Window returns how many days before and after a target a mode shows.
func (m Mode) Window() (past, future int) {
	switch m {
	case Single:
		return 0, 0
	case Past:
		return samples.LastDays, 0
	}
	return samples.LastDays, samples.NextDays
}

// Days gives patches and the observations nearest in time around them. Both
// sides of a split are Days.
type Days interface {
	Cut(samples.Ref) samples.Patch
	Last(r samples.Ref, maxDays int) samples.Composite
	Next(r samples.Ref, maxDays int) samples.Composite
}

// Backgrounds gives analyses of days from their neighbours; samples.Backgrounds
// implements it.
type Backgrounds interface {
	Cut(samples.Ref) (value, sigma []float32, ok bool)
}

// An Analyser estimates a patch from its visible cells and, as far as the mode
// allows, from the days around it; 0 on land.
type Analyser interface {
	Analyse(r samples.Ref, visible []bool, mode Mode) (value, sigma []float32, err error)
}

// Covariates give the inputs that other variables are; samples.Channels implements it.
type Covariates interface {
	Cut(samples.Ref) [][]float32
}

// Surroundings are days with their backgrounds, an analyser and covariates, each of
// which may be nil.
type Surroundings struct {
	Days          Days
	Past, Delayed Backgrounds // backgrounds from earlier days only, and from earlier and later ones
	Analyser      Analyser
	Covariates    Covariates
}

// Inputs returns the inputs for the patch r in a mode, with the given cells of
// its day visible.
func (s Surroundings) Inputs(r samples.Ref, visible []bool, mode Mode) Inputs {
	sc := s.Scene(r)
	in := sc.Inputs(mode)
	in.Visible = visible
	return in
}

// Analysed returns Inputs with their analysis, if there is an analyser.
func (s Surroundings) Analysed(r samples.Ref, visible []bool, mode Mode) (Inputs, error) {
	in := s.Inputs(r, visible, mode)
	return in, s.Analyse(r, &in, mode)
}

// Analyse adds the analysis of the visible cells to in, if there is an
// analyser.
func (s Surroundings) Analyse(r samples.Ref, in *Inputs, mode Mode) (err error) {
	if s.Analyser == nil {
		return nil
	}
	in.Analysis, in.AnalysisSigma, err = s.Analyser.Analyse(r, in.Visible, mode)
	if err != nil {
		return fmt.Errorf("analyse window at %d, %d of day %d: %w", r.Window.Row, r.Window.Col, r.Day, err)
	}
	return nil
}

// A Scene is a patch with its surroundings for all modes.
type Scene struct {
	Patch samples.Patch

	last, next    samples.Composite
	past, delayed background
	covariates    [][]float32
}

type background struct{ value, sigma []float32 }

// Scene returns the patch r with its surroundings.
func (s Surroundings) Scene(r samples.Ref) *Scene {
	sc := &Scene{
		Patch: s.Days.Cut(r),
		last:  s.Days.Last(r, samples.LastDays), next: s.Days.Next(r, samples.NextDays),
		past: cutBackground(s.Past, r), delayed: cutBackground(s.Delayed, r),
	}
	if s.Covariates != nil {
		sc.covariates = s.Covariates.Cut(r)
	}
	return sc
}

func cutBackground(b Backgrounds, r samples.Ref) background {
	if b == nil {
		return background{}
	}
	value, sigma, ok := b.Cut(r)
	if !ok {
		return background{}
	}
	return background{value, sigma}
}

// Inputs returns the part of the scene that a mode shows, without a mask.
func (s *Scene) Inputs(mode Mode) Inputs {
	w := s.Patch.Window
	in := Inputs{
		Height: w.Height, Width: w.Width, Values: s.Patch.Values, Sea: s.Patch.Sea,
		DayOfYear: dayOfYear(s.Patch.Time), Covariates: s.covariates,
	}
	switch mode {
	case Past:
		in.Last = s.last
		in.Background, in.BackgroundSigma = s.past.value, s.past.sigma
	case Delayed:
		in.Last, in.Next = s.last, s.next
		in.Background, in.BackgroundSigma = s.delayed.value, s.delayed.sigma
	}
	return in
}

// Bytes returns the approximate size of the scene in memory.
func (s *Scene) Bytes() int64 {
	const floatBytes = 4
	n := len(s.Patch.Values) + len(s.past.value) + len(s.past.sigma) + len(s.delayed.value) + len(s.delayed.sigma) +
		len(s.last.Value) + len(s.last.Freshness) + len(s.next.Value) + len(s.next.Freshness)
	for _, m := range s.covariates {
		n += len(m)
	}
	return int64(floatBytes*n + len(s.Patch.Sea))
}

func dayOfYear(t time.Time) int {
	if t.IsZero() {
		return 0
	}
	return t.UTC().YearDay()
}
