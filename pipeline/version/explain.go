package version

import (
	"context"
	"slices"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Explain finds out what covariates say of a series to optimal interpolation, and returns
// the series with the drift by those that pay. Terms are their maps of its days. The use of
// the days is that of the calendar: none that judges has a part in the choice, and the gains
// are those on them where they tell.
func Explain(ctx context.Context, s samples.Series, terms []covariate.Term, calendar samples.Calendar, oi classical.OI, mode impute.Mode) (samples.Series, covariate.Regression, error) {
	frames := classical.Series{Grid: s.Grid, Sea: s.Sea, Frames: make([]classical.Frame, len(s.Days))}
	for i, d := range s.Days {
		frames.Frames[i] = classical.Frame{Time: d.Time, Values: d.Values}
	}
	const day = 24 * time.Hour
	past, future := mode.Window()
	with := covariate.Setting{OI: oi, Tuning: classical.DefaultTuning()}
	with.Tuning.Past, with.Tuning.Future = time.Duration(past)*day, time.Duration(future)*day
	r, err := covariate.Choose(ctx, frames, terms, covariateDays(s.Days, calendar), with)
	if err != nil {
		return s, r, err
	}
	s.Days = slices.Clone(s.Days)
	for i, drift := range r.Drift(frames, terms) {
		s.Days[i].Drift = drift
	}
	return s, r, nil
}

// covariateDays returns the use of days: by their calendar and, where too few of them
// choose to tell chance from gain, by halves of those that do not judge.
func covariateDays(all []samples.Day, calendar samples.Calendar) covariate.Days {
	var days covariate.Days
	var free []int
	var times, choosing []time.Time // of free, and of those that choose
	for i, d := range all {
		switch calendar.Role(samples.DateOf(d.Time)) {
		case samples.Judge:
			days.Judge = append(days.Judge, i)
			continue
		case samples.Choose:
			days.Choose, choosing = append(days.Choose, i), append(choosing, d.Time)
		case samples.Learn:
			days.Learn = append(days.Learn, i)
		default:
			continue
		}
		free, times = append(free, i), append(times, d.Time)
	}
	if skill.DefaultBootstrap().Enough(choosing) {
		return days
	}
	halves := covariate.Halves(times, time.Duration(calendar.GapDays)*24*time.Hour)
	pick := func(of []int) []int {
		var out []int
		for _, k := range of {
			out = append(out, free[k])
		}
		return out
	}
	days.Learn, days.Choose = pick(halves.Learn), pick(halves.Choose)
	return days
}

// TermsOf returns the covariates of a series as the terms of a regression.
func TermsOf(s samples.Series) []covariate.Term {
	terms := make([]covariate.Term, len(s.Covariates))
	for k, c := range s.Covariates {
		terms[k] = covariate.Term{Name: c.Name, Units: c.Units, Uniform: c.Uniform, Stays: c.Stays, Maps: make([][]float32, len(s.Days))}
		for i, d := range s.Days {
			if k < len(d.Covariates) {
				terms[k].Maps[i] = d.Covariates[k]
			}
		}
	}
	return terms
}

// explain makes the days and the exam as optimal interpolation sees them that serves for
// want of a champion: with the covariates that its own regression has chosen, and with
// constants and a calibration for what they leave. Where none is used it returns what it
// was given.
func (r *run) explain(ctx context.Context, plain Interpolation, exam *evaluate.Exam) (Interpolation, *evaluate.Exam, error) {
	if len(r.req.Series[0].Covariates) == 0 { // with covariates there is one series only
		return plain, exam, nil
	}
	s := r.req.Series[0]
	oi := plain.Constants[0].Of(classical.DefaultOI(s.Grid))
	s, by, err := Explain(ctx, s, TermsOf(s), r.split.calendars[0], oi, r.s.Judging.Mode)
	if err != nil {
		return plain, exam, err
	}
	plain.Covariates = &by
	if !by.Any() {
		return plain, exam, nil
	}
	sides, err := samples.Assign([]samples.Series{s}, r.split.calendars, r.req.Seen)
	if err != nil {
		return plain, exam, err
	}
	n, err := r.findInterpolation(ctx, explainedFile, sides.Train, sides.Choose)
	if err != nil {
		return plain, exam, err
	}
	n.Covariates = &by
	around := r.aroundJudge
	around.Days = sides.Judge
	if around.Analyser != nil { // of a starter, which departs from this analysis where it serves
		around.Analyser = analyserOf(sides.Judge, impute.ServingOI, n.Constants...)
	}
	exam, err = evaluate.NewExam(sides.Judge, around, r.judging, r.s.Judging.Mode)
	return n, exam, err
}
