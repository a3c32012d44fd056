package version

import (
	"context"
	"fmt"
	"slices"

	"lacuna/pipeline/covariate"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Brings says what each covariate brings the candidate on an exam on the days of on: its
// error with those that it uses, and without each. It returns nil where its network sees
// none.
func (c *Candidate) Brings(ctx context.Context, exam *evaluate.Exam, on samples.HeldOut) (*covariate.Kept, error) {
	if len(c.list) == 0 {
		return nil, nil
	}
	all := slices.Clone(c.list)
	names, known, used := make([]string, len(all)), make([]bool, len(all)), make([]bool, len(all))
	for k := range all {
		names[k], used[k] = all[k].Name, all[k].In()
		all[k].Off = false // those that are not used are asked about too
	}
	maps := on.Channels(all)
	for i := range exam.Cases() {
		for k, m := range maps.Cut(exam.Overlay(i).Ref) {
			known[k] = known[k] || m != nil
		}
	}
	asked := asking{c: c, exam: exam, on: on, maps: maps, inputs: map[int]impute.Inputs{}, rescalings: map[int]rescaling{}}
	losses := map[string][]skill.Loss{}
	kept, err := covariate.Bring(names, known, used, func(seen []int) ([]skill.Loss, error) {
		key := fmt.Sprint(seen)
		if _, done := losses[key]; !done {
			v, err := exam.Judge(ctx, asked.seeing(seen), nil, nil)
			if err != nil {
				return nil, err
			}
			losses[key] = v.Losses.Squared
		}
		return losses[key], nil
	})
	return &kept, err
}

// asking asks a candidate about one exam again and again, with other covariates each time:
// the analyses are made once.
type asking struct {
	c          *Candidate
	exam       *evaluate.Exam
	on         samples.HeldOut
	maps       samples.Channels
	inputs     map[int]impute.Inputs // by case number
	rescalings map[int]rescaling
}

// seeing returns the candidate where it sees the covariates of these numbers only.
func (a asking) seeing(seen []int) evaluate.Method {
	return evaluate.Method{Name: "version", Fill: func(ctx context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		if _, done := a.inputs[cases[0].Number]; !done {
			inputs, maps, err := a.c.inputs(ctx, cases, a.exam, a.on)
			if err != nil {
				return nil, err
			}
			for i, k := range cases {
				a.inputs[k.Number], a.rescalings[k.Number] = inputs[i], maps[i]
			}
		}
		inputs, maps := make([]impute.Inputs, len(cases)), make([]rescaling, len(cases))
		for i, k := range cases {
			inputs[i], maps[i] = a.inputs[k.Number], a.rescalings[k.Number]
			cut := a.maps.Cut(a.exam.Overlay(k.Number).Ref)
			inputs[i].Covariates = make([][]float32, len(cut))
			for _, n := range seen {
				inputs[i].Covariates[n] = cut[n]
			}
		}
		return a.c.answers(ctx, inputs, maps)
	}}
}
