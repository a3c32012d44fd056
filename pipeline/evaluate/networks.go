package evaluate

import (
	"context"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
)

// OneStep returns the prediction of an imputer as a method, with its sigma
// where the network has one.
func OneStep(model *impute.Model) Method {
	return Method{Name: "one-step", Fill: func(ctx context.Context, cases []Case) ([]Answer, error) {
		said, err := model.Predict(ctx, inputsOf(cases))
		if err != nil {
			return nil, err
		}
		out := make([]Answer, len(said))
		for i, p := range said {
			out[i] = Answer{Mean: p.Mean, Calls: 1}
			if model.Design().Variance {
				out[i].Sigma = p.Sigma
			}
		}
		return out, nil
	}}
}

// A Drawing says how many members are drawn, and how.
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
			targets[i] = impute.Target{Inputs: in[i], Prediction: said[i], Stream: stream(c)}
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

// Sampled returns one of the paper's samplers as a method. contexts gives the
// masks that the sampler draws from in a case.
func Sampled(model *impute.Model, sampler impute.Sampler, cfg impute.SamplerConfig, contexts func(Case) impute.Contexts) Method {
	return Method{Name: "sampled", Fill: func(ctx context.Context, cases []Case) ([]Answer, error) {
		out := make([]Answer, len(cases))
		for i, c := range cases {
			how := impute.Sampling{Sampler: sampler, Config: cfg, Contexts: contexts(c)}
			drawn, err := model.Sample(ctx, c.Inputs, how, stream(c))
			if err != nil {
				return nil, err
			}
			out[i] = ofMembers(drawn.Members, drawn.Calls)
		}
		return out, nil
	}}
}

// DINDiff returns the baseline of that name as a method: the mean of members
// that are drawn in so many steps.
func DINDiff(d *impute.DINDiff, members, steps int) Method {
	return Method{Name: "dindiff", Fill: func(ctx context.Context, cases []Case) ([]Answer, error) {
		streams := make([]noise.Stream, len(cases))
		for i, c := range cases {
			streams[i] = stream(c)
		}
		drawn, err := d.Draw(ctx, inputsOf(cases), streams, members, steps)
		if err != nil {
			return nil, err
		}
		out := make([]Answer, len(cases))
		for i, m := range drawn {
			out[i] = ofMembers(m, steps)
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

// stream is where the noise of a case comes from, whoever asks for it.
func stream(c Case) noise.Stream { return noise.New(1, "overlay").Sub(uint64(c.Number)) }

// ofMembers returns the mean of members as an answer, and an ensemble where
// there is more than one.
func ofMembers(members [][]float32, calls int) Answer {
	a := Answer{Mean: make([]float32, len(members[0])), Calls: calls}
	for _, m := range members {
		for i, v := range m {
			a.Mean[i] += v / float32(len(members))
		}
	}
	if len(members) > 1 {
		a.Members = members
	}
	return a
}
