package evaluate

import (
	"context"
	"errors"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Calibrated returns a method that gives the answers of another one again,
// sigmas calibrated. Those of every other month are calibrated on the months
// between, so that none is judged by what fitted it.
func (e *Exam) Calibrated(answers []Answer) (Method, error) {
	cases := [2][]impute.Case{}
	for i, a := range answers {
		o := e.overlays[i]
		distance := skill.Distances(o.Visible, o.Window.Height, o.Window.Width)
		for k, scored := range o.Scored {
			if scored {
				cases[half(o)] = append(cases[half(o)], impute.Case{
					Error: a.Mean[k] - o.Values[k], Sigma: a.Sigma[k], DistanceCells: float32(distance[k]), DayOfYear: o.Time.YearDay(),
				})
			}
		}
	}
	var fitted [2]impute.Calibration
	for h := range fitted {
		other := cases[1-h]
		if len(other) == 0 { // a single month: better than nothing
			other = cases[h]
		}
		if len(other) == 0 {
			return Method{}, errors.New("calibrate: nothing is scored")
		}
		var err error
		if fitted[h], err = impute.Calibrate(other, impute.DefaultCalibration()); err != nil {
			return Method{}, err
		}
	}
	return Method{Name: "calibrated", Fill: func(_ context.Context, asked []Case) ([]Answer, error) {
		out := make([]Answer, len(asked))
		for i, c := range asked {
			o, a := e.overlays[c.Number], answers[c.Number]
			distance := skill.Distances(o.Visible, o.Window.Height, o.Window.Width)
			out[i] = Answer{Mean: a.Mean, Sigma: make([]float32, len(a.Sigma)), Members: a.Members}
			for k, s := range a.Sigma {
				out[i].Sigma[k] = fitted[half(o)].Apply(s, float32(distance[k]), o.Time.YearDay())
			}
		}
		return out, nil
	}}, nil
}

// half puts every other month on either side.
func half(o samples.Overlay) int { return int(o.Time.Month()) % 2 }
