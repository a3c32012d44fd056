package baselines

import (
	"context"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
)

// Sampled returns one of the published samplers as a method. contexts gives the
// masks that the sampler draws from in a case.
func Sampled(model *impute.Model, sampler Sampler, cfg SamplerConfig, contexts func(evaluate.Case) Contexts) evaluate.Method {
	return evaluate.Method{Name: "sampled", Fill: func(ctx context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		out := make([]evaluate.Answer, len(cases))
		for i, c := range cases {
			how := Sampling{Sampler: sampler, Config: cfg, Contexts: contexts(c)}
			drawn, err := Sample(ctx, model, c.Inputs, how, c.Stream())
			if err != nil {
				return nil, err
			}
			out[i] = ofMembers(drawn.Members, drawn.Calls)
		}
		return out, nil
	}}
}

// Method returns the baseline as a method of an exam: the mean of members
// that are drawn in a number of steps.
func (d *DINDiff) Method(members, steps int) evaluate.Method {
	return evaluate.Method{Name: "dindiff", Fill: func(ctx context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		in, streams := make([]impute.Inputs, len(cases)), make([]noise.Stream, len(cases))
		for i, c := range cases {
			in[i], streams[i] = c.Inputs, c.Stream()
		}
		drawn, err := d.Draw(ctx, in, streams, members, steps)
		if err != nil {
			return nil, err
		}
		out := make([]evaluate.Answer, len(cases))
		for i, m := range drawn {
			out[i] = ofMembers(m, steps)
		}
		return out, nil
	}}
}

// ofMembers returns the mean of members as an answer, and an ensemble where
// there is more than one.
func ofMembers(members [][]float32, calls int) evaluate.Answer {
	a := evaluate.Answer{Mean: make([]float32, len(members[0])), Calls: calls}
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
