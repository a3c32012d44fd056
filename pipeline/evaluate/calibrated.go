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

// Calibrated returns answers to all cases with calibrated sigmas. Those of every
// other month are calibrated on the months between, so that no case is judged by
// a calibration that was fitted to it.
func (e *Exam) Calibrated(answers []Answer) ([]Answer, error) {
	var fitted [2]impute.Calibration
	err := e.fit(answers, func(half int, cases []impute.Case) (err error) {
		fitted[half], err = impute.Calibrate(cases, impute.DefaultCalibration())
		return err
	})
	out := make([]Answer, len(answers))
	for i, a := range answers {
		o := e.overlays[i]
		distance := skill.Distances(o.Visible, o.Window.Height, o.Window.Width)
		out[i] = a
		out[i].Sigma = make([]float32, len(a.Sigma))
		for k, s := range a.Sigma {
			out[i].Sigma[k] = fitted[half(o)].Apply(s, float32(distance[k]), o.Time.YearDay())
		}
	}
	return out, err
}

// CalibratedMembers returns answers to all cases with members moved to the mean
// and calibrated spread, each month by a fit to the months between.
func (e *Exam) CalibratedMembers(answers []Answer) ([]Answer, error) {
	if len(answers) == 0 || len(answers[0].Members) == 0 {
		return nil, errors.New("calibrate members: the answers have no members")
	}
	var fitted [2]impute.MembersCalibration
	err := e.fit(answers, func(half int, cases []impute.Case) (err error) {
		fitted[half], err = impute.CalibrateMembers(cases, len(answers[0].Members), impute.DefaultCalibration())
		return err
	})
	out := make([]Answer, len(answers))
	for i, a := range answers {
		o := e.overlays[i]
		in := impute.Inputs{Height: o.Window.Height, Width: o.Window.Width, Visible: o.Visible, DayOfYear: o.Time.YearDay()}
		p := impute.Prediction{Mean: a.Mean, Sigma: a.Sigma}
		out[i] = Answer{Mean: a.Mean, Centred: true, Calls: a.Calls}
		out[i].Members = fitted[half(o)].Recentre(a.Members, in, p, skill.Distances(o.Visible, in.Height, in.Width))
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

// fit calls fit for either half of the months with the scored cells of the
// other half.
func (e *Exam) fit(answers []Answer, fit func(half int, cases []impute.Case) error) error {
	cases := [2][]impute.Case{}
	for i, a := range answers {
		o := e.overlays[i]
		distance := skill.Distances(o.Visible, o.Window.Height, o.Window.Width)
		for k, scored := range o.Scored {
			if !scored {
				continue
			}
			c := impute.Case{Error: a.Mean[k] - o.Values[k], Sigma: a.Sigma[k], DistanceCells: float32(distance[k]), DayOfYear: o.Time.YearDay()}
			if len(a.Members) > 0 {
				_, c.Spread = impute.Departure(a.Members, k)
			}
			cases[half(o)] = append(cases[half(o)], c)
		}
	}
	for h := range cases {
		other := cases[1-h]
		if len(other) == 0 { // a single month has to calibrate itself
			other = cases[h]
		}
		if len(other) == 0 {
			return errors.New("calibrate: no cell is scored")
		}
		if err := fit(h, other); err != nil {
			return err
		}
	}
	return nil
}

// half assigns months to two halves in turn.
func half(o samples.Overlay) int { return int(o.Time.Month()) % 2 }
