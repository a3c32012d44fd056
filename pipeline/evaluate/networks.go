package evaluate

import (
	"context"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
)

// A predictor fills windows: a model, or a group of them.
type predictor interface {
	Predict(ctx context.Context, in []impute.Inputs) ([]impute.Prediction, error)
}

// OneStep returns the prediction of an imputer as a method, with its sigma
// where the network has one.
func OneStep(model *impute.Model) Method { return Predicted(model, model.Design().Variance) }

// Predicted returns predictions as a method, with their sigma where it is known.
func Predicted(by predictor, variance bool) Method {
	return Method{Name: "one-step", Fill: func(ctx context.Context, cases []Case) ([]Answer, error) {
		said, err := by.Predict(ctx, inputsOf(cases))
		if err != nil {
			return nil, err
		}
		out := make([]Answer, len(said))
		for i, p := range said {
			out[i] = Answer{Mean: p.Mean, Calls: 1}
			if variance {
				out[i].Sigma = p.Sigma
			}
		}
		return out, nil
	}}
}

// A Drawing holds the number of members and the settings of their sampler.
type Drawing struct {
	Members int        `json:"members"`
	ODE     impute.ODE `json:"ode"`
}

// Ensemble returns residual members about the prediction of their model as a
// method. Its mean is the prediction.
func Ensemble(model *impute.Model, members *impute.Members, d Drawing) Method {
	return Method{Name: "members", Fill: func(ctx context.Context, cases []Case) ([]Answer, error) {
		in := inputsOf(cases)
		said, err := model.Predict(ctx, in)
		if err != nil {
			return nil, err
		}
		targets := make([]impute.Target, len(cases))
		for i, c := range cases {
			targets[i] = impute.Target{Inputs: in[i], Prediction: said[i], Stream: c.Stream()}
		}
		drawn, err := members.Draw(ctx, targets, d.Members, d.ODE)
		if err != nil {
			return nil, err
		}
		out := make([]Answer, len(cases))
		for i := range out {
			out[i] = Answer{Mean: said[i].Mean, Sigma: said[i].Sigma, Members: drawn[i], Calls: 1 + d.ODE.Calls()}
		}
		return out, nil
	}}
}

func inputsOf(cases []Case) []impute.Inputs {
	in := make([]impute.Inputs, len(cases))
	for i, c := range cases {
		in[i] = c.Inputs
	}
	return in
}

// Stream returns the noise of a case, the same for every method.
func (c Case) Stream() noise.Stream { return noise.New(1, "overlay").Sub(uint64(c.Number)) }
