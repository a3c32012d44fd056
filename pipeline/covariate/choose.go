package covariate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/skill"
)

// leastGain is the share of the mean squared error that a covariate must save to be
// used: with less it is not worth that a day may lack it.
const leastGain = 0.005

// LeastDays is the number of days from which on covariates are looked at: half of them
// learn and half choose, and fewer are of one weather.
const LeastDays = 40

// Days are the frames of a series by their use. Those that judge, where there are any,
// say what covariates bring and have no part in their choice.
type Days struct{ Learn, Choose, Judge []int }

// Halves returns the use of the frames of a series: the earlier half learns and the later
// chooses, but for those within a gap of it.
func Halves(times []time.Time, gap time.Duration) Days {
	var d Days
	if len(times) < LeastDays {
		return d
	}
	middle := times[len(times)/2]
	for i, t := range times {
		switch {
		case !t.Before(middle):
			d.Choose = append(d.Choose, i)
		case middle.Sub(t) > gap:
			d.Learn = append(d.Learn, i)
		}
	}
	return d
}

// Setting is how optimal interpolation sees a series.
type Setting struct {
	OI     classical.OI
	Tuning classical.Tuning // windows and overlays; Start is not used
}

// Choose fits the regression of a series on terms on days that learn, and decides on days
// that choose which of them are used. Frames must be the observations themselves, without
// a drift.
func Choose(ctx context.Context, s classical.Series, terms []Term, days Days, with Setting) (Regression, error) {
	r := Regression{Learn: len(days.Learn), Choose: len(days.Choose)}
	for _, t := range terms {
		r.Judged = append(r.Judged, Verdict{Name: t.Name, Why: "not judged"})
	}
	if len(days.Learn) == 0 || len(days.Choose) == 0 {
		r.Note = fmt.Sprintf("covariates are not used: there are too few days to learn from and to choose by, and %d are needed", LeastDays)
		return r, nil
	}
	var anomalies [][][]float32
	var kept []int
	for k, t := range terms {
		anomalies = append(anomalies, t.anomalies(s))
		if r.Judged[k].Why = noMap; t.known() {
			kept = append(kept, k)
		}
	}
	before := without(s, days.Judge)
	learn, err := with.OI.Misses(ctx, before, anomalies, days.Learn, with.Tuning)
	var choose, judge []classical.Missed
	if err == nil {
		choose, err = with.OI.Misses(ctx, before, anomalies, days.Choose, with.Tuning)
	}
	var found *fitted
	if err == nil {
		found, err = r.choose(terms, kept, learn, choose)
	}
	if tellsNothing(err) {
		r.Note = fmt.Sprintf("covariates are not used: the days do not tell: %v", err)
		return r, nil
	}
	if err != nil || days.Judge == nil {
		return r, err
	}
	if judge, err = with.OI.Misses(ctx, s, anomalies, days.Judge, with.Tuning); err == nil {
		err = r.judge(kept, found, judge)
	}
	if tellsNothing(err) { // the gains stay those on days that choose
		return r, nil
	}
	return r, err
}

// tellsNothing reports whether an error says that days are too few, or too clear, to tell
// anything.
func tellsNothing(err error) bool {
	few := (*skill.TooFewDays)(nil)
	return errors.As(err, &few) || errors.Is(err, classical.ErrNoOverlays)
}

// fitted is what days that learn tell of the terms, and the terms that are used.
type fitted struct {
	equations []sums
	scale     []float64
	kept      []int
}

// choose drops one term after the other until each that is left pays on the days that
// choose, and all of them together.
func (r *Regression) choose(terms []Term, known []int, learn, choose []classical.Missed) (*fitted, error) {
	scale := scales(learn, len(terms))
	equations := daysOf(learn, scale)
	kept, gain, err := narrow(r.Judged, slices.Clone(known), func(set []int) (gains, error) { return gainsBy(set, lossesBy(equations, scale, choose)) })
	for _, k := range known {
		if !slices.Contains(kept, k) {
			r.Judged[k].Why = noGain
		}
	}
	if r.Gain = gain; err != nil {
		return nil, err
	}
	coefficients, ridge := fit(equations, kept)
	for i, k := range kept {
		r.Judged[k].Used, r.Judged[k].Why = true, ""
		r.Ridge = ridge
		r.Terms = append(r.Terms, Coefficient{Name: terms[k].Name, Units: terms[k].Units, Scale: scale[k], Slope: coefficients[i]})
	}
	return &fitted{equations, scale, kept}, nil
}

// judge replaces the gains by those on days that judge.
func (r *Regression) judge(known []int, f *fitted, judge []classical.Missed) error {
	gain, err := bring(r.Judged, known, f.kept, lossesBy(f.equations, f.scale, judge))
	if err == nil {
		r.OnJudge, r.Gain = true, gain
	}
	return err
}

// noGain and noMap are why a covariate is not used.
const noGain, noMap = "no gain beyond chance", "it has no map of these days"

// pays reports whether a difference is a gain beyond chance, and one that is worth it.
func pays(d skill.Difference) bool { return d.Interval.High < 0 && d.Relative <= -leastGain }

// gains are the differences in squared error of a method with all inputs.
type gains struct {
	whole   skill.Difference   // from none of them
	without []skill.Difference // from all but one
}

// lossesBy returns the squared errors with some of the terms, fitted anew, on other days.
func lossesBy(learn []sums, scale []float64, on []classical.Missed) func(set []int) ([]skill.Loss, error) {
	return func(set []int) ([]skill.Loss, error) {
		slopes, _ := fit(learn, set)
		for i, k := range set {
			slopes[i] = ratio(slopes[i], scale[k])
		}
		return losses(on, set, slopes), nil
	}
}

// without returns a series with some frames blank.
func without(s classical.Series, frames []int) classical.Series {
	s.Frames = slices.Clone(s.Frames)
	for _, f := range frames {
		s.Frames[f].Values = slices.Repeat([]float32{field.NaN()}, s.Grid.Len())
	}
	return s
}
