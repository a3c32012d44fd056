package evaluate

import (
	"context"
	"errors"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Given returns a method that replays answers to all cases of an exam.
func Given(answers []Answer) Method {
	return Method{Name: "given", Fill: func(_ context.Context, asked []Case) ([]Answer, error) {
		out := make([]Answer, len(asked))
		for i, c := range asked {
			out[i] = answers[c.Number]
		}
		return out, nil
	}}
}

// Calibrated returns answers to all cases with calibrated sigmas, each of the Folds
// of the exam by a fit to others.
func (e *Exam) Calibrated(answers []Answer) ([]Answer, error) {
	folds := e.Folds()
	fitted := make([]impute.Calibration, len(folds.By))
	err := e.fit(answers, folds, func(fold int, cases []impute.Case) (err error) {
		fitted[fold], err = impute.Calibrate(cases, impute.DefaultCalibration())
		return err
	})
	out := make([]Answer, len(answers))
	for i, a := range answers {
		o := e.overlays[i]
		distance := skill.Distances(o.Visible, o.Window.Height, o.Window.Width)
		out[i] = a
		out[i].SelfCalibrated = folds.Self
		out[i].Sigma = make([]float32, len(a.Sigma))
		for k, s := range a.Sigma {
			out[i].Sigma[k] = fitted[folds.Of[i]].Apply(s, float32(distance[k]), o.Time.YearDay())
		}
	}
	return out, err
}

// CalibratedMembers returns answers to all cases with members moved to the mean
// and calibrated spread, each of the Folds of the exam by a fit to others.
func (e *Exam) CalibratedMembers(answers []Answer) ([]Answer, error) {
	if len(answers) == 0 || len(answers[0].Members) == 0 {
		return nil, errors.New("calibrate members: the answers have no members")
	}
	folds := e.Folds()
	fitted := make([]impute.MembersCalibration, len(folds.By))
	err := e.fit(answers, folds, func(fold int, cases []impute.Case) (err error) {
		fitted[fold], err = impute.CalibrateMembers(cases, impute.DefaultCalibration())
		return err
	})
	out := make([]Answer, len(answers))
	for i, a := range answers {
		o := e.overlays[i]
		in := impute.Inputs{Height: o.Window.Height, Width: o.Window.Width, Visible: o.Visible, DayOfYear: o.Time.YearDay()}
		p := impute.Prediction{Mean: a.Mean, Sigma: a.Sigma}
		out[i] = Answer{Mean: a.Mean, Centred: true, Calls: a.Calls, SelfCalibrated: folds.Self}
		out[i].Members = fitted[folds.Of[i]].Recentre(a.Members, in, p, skill.Distances(o.Visible, in.Height, in.Width))
	}
	return out, err
}

// Textured returns answers whose map is the mean plus a share of the first
// member's deviation from it: from the smooth mean at 0, which errs least, to a
// map with the texture of a real one at 1.
func Textured(answers []Answer, share float64) []Answer {
	out := make([]Answer, len(answers))
	for i, a := range answers {
		out[i] = Answer{Mean: make([]float32, len(a.Mean)), Calls: a.Calls}
		for k, m := range a.Mean {
			out[i].Mean[k] = m + float32(share)*(a.Members[0][k]-m)
		}
	}
	return out
}

// Cases returns the scored cells of an answer to an overlay, to calibrate by.
func Cases(o samples.Overlay, a Answer) []impute.Case {
	var out []impute.Case
	distance := skill.Distances(o.Visible, o.Window.Height, o.Window.Width)
	for k, scored := range o.Scored {
		if scored {
			out = append(out, impute.Case{Error: a.Mean[k] - o.Values[k], Sigma: a.Sigma[k], DistanceCells: float32(distance[k])})
		}
	}
	return out
}

// fit calls fit for every fold with the scored cells that calibrate it.
func (e *Exam) fit(answers []Answer, folds Folds, fit func(fold int, cases []impute.Case) error) error {
	for f, by := range folds.By {
		var cases []impute.Case
		for _, i := range by {
			cases = append(cases, Cases(e.overlays[i], answers[i])...)
		}
		if err := fit(f, cases); err != nil {
			return err
		}
	}
	return nil
}
