package impute

import (
	"context"
	"math"
)

// A Group is several networks that answer as one: the mixture of their
// predictions. With turns each of them is asked about mirror images of a window
// as well.
type Group struct {
	Models []*Model
	Turns  []Turn // nil: windows as they are
}

// Predict fills the gaps of windows as Model.Predict does.
func (g Group) Predict(ctx context.Context, in []Inputs) ([]Prediction, error) {
	turns := g.Turns
	if len(turns) == 0 {
		turns = []Turn{{}}
	}
	said := make([][]Prediction, len(in)) // by window
	for _, t := range turns {
		turned := make([]Inputs, len(in))
		for i := range in {
			turned[i] = in[i].Turn(t)
		}
		for _, m := range g.Models {
			predictions, err := m.Predict(ctx, turned)
			if err != nil {
				return nil, err
			}
			for i, p := range predictions {
				back := turner{t.inverse(), turned[i].Height, turned[i].Width}
				said[i] = append(said[i], Prediction{Mean: turn(back, p.Mean), Sigma: turn(back, p.Sigma)})
			}
		}
	}
	out := make([]Prediction, len(in))
	for i := range in {
		out[i] = Mixture(said[i])
		compose(out[i], in[i])
	}
	return out, nil
}

// Mixture returns the mean of predictions of one window, and the standard
// deviation of one that is drawn from any of them.
func Mixture(all []Prediction) Prediction {
	cells, share := len(all[0].Mean), 1/float64(len(all))
	out := Prediction{Mean: make([]float32, cells), Sigma: make([]float32, cells)}
	for i := range cells {
		mean, square := 0.0, 0.0
		for _, p := range all {
			m, s := float64(p.Mean[i]), float64(p.Sigma[i])
			mean += share * m
			square += share * (m*m + s*s)
		}
		out.Mean[i], out.Sigma[i] = float32(mean), float32(math.Sqrt(max(square-mean*mean, 0)))
	}
	return out
}
