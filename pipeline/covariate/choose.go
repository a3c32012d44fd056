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
		if r.Judged[k].Why = "it has no map of these days"; t.known() {
			kept = append(kept, k)
		}
	}
	before := without(s, days.Judge)
	learn, err := with.OI.Misses(ctx, before, anomalies, days.Learn, with.Tuning)
	var choose, judge []classical.Missed
	if err == nil {
		choose, err = with.OI.Misses(ctx, before, anomalies, days.Choose, with.Tuning)
	}
	if err == nil && days.Judge != nil {
		judge, err = with.OI.Misses(ctx, s, anomalies, days.Judge, with.Tuning)
	}
	if err == nil {
		err = r.choose(terms, kept, learn, choose, judge)
	}
	if few := (*skill.TooFewDays)(nil); errors.As(err, &few) || errors.Is(err, classical.ErrNoOverlays) {
		r.Note = fmt.Sprintf("covariates are not used: the days do not tell: %v", err)
		return r, nil
	}
	return r, err
}

// choose drops one term after the other until each that is left pays on the days that
// choose, and all of them together.
func (r *Regression) choose(terms []Term, kept []int, learn, choose, judge []classical.Missed) (err error) {
	known := slices.Clone(kept)
	scale := scales(learn, len(terms))
	equations := daysOf(learn, scale)
	kept, r.Gain, err = narrow(r.Judged, kept, func(set []int) (gains, error) { return gainsOf(equations, scale, set, choose) })
	for _, k := range known {
		if !slices.Contains(kept, k) {
			r.Judged[k].Why = noGain
		}
	}
	if err != nil {
		return err
	}
	coefficients, ridge := fit(equations, kept)
	for i, k := range kept {
		r.Judged[k].Used, r.Judged[k].Why = true, ""
		r.Ridge = ridge
		r.Terms = append(r.Terms, Coefficient{Name: terms[k].Name, Units: terms[k].Units, Scale: scale[k], Slope: coefficients[i]})
	}
	if judge == nil {
		return nil
	}
	return r.judge(known, kept, equations, scale, judge)
}

// judge replaces the gains by those on days that judge: of each covariate in use over the
// others, of any other beside those in use, and of all in use over none.
func (r *Regression) judge(known, kept []int, learn []sums, scale []float64, judge []classical.Missed) error {
	r.OnJudge = true
	for _, k := range known {
		set := kept
		if !slices.Contains(kept, k) {
			set = append(slices.Clone(kept), k)
		}
		g, err := gainsOf(learn, scale, set, judge)
		if err != nil {
			return err
		}
		r.Judged[k].Gain = gainOf(g.without[slices.Index(set, k)])
		if len(kept) > 0 && slices.Contains(kept, k) {
			r.Gain = gainOf(g.whole)
		}
	}
	return nil
}

// noGain is why a covariate is not used.
const noGain = "no gain beyond chance"

// pays reports whether a difference is a gain beyond chance, and one that is worth it.
func pays(d skill.Difference) bool { return d.Interval.High < 0 && d.Relative <= -leastGain }

// gains are the differences in squared error of a method with all inputs.
type gains struct {
	whole   skill.Difference   // from none of them
	without []skill.Difference // from all but one
}

// gainsOf compares terms with none of them and with each left out, fitted anew, on days
// that choose.
func gainsOf(learn []sums, scale []float64, terms []int, choose []classical.Missed) (gains, error) {
	return gainsBy(terms, func(set []int) ([]skill.Loss, error) {
		slopes, _ := fit(learn, set)
		for i, k := range set {
			slopes[i] = ratio(slopes[i], scale[k])
		}
		return losses(choose, set, slopes), nil
	})
}

// without returns a series with some frames blank.
func without(s classical.Series, frames []int) classical.Series {
	s.Frames = slices.Clone(s.Frames)
	for _, f := range frames {
		s.Frames[f].Values = slices.Repeat([]float32{field.NaN()}, s.Grid.Len())
	}
	return s
}
