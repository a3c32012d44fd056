package main

import (
	"context"
	"errors"
	"time"

	"lacuna/pipeline/evaluate"
)

// runKriging scores the exact conditional mean of the Gaussian sea.
func (b *bench) runKriging(ctx context.Context, e experiment) error {
	if b.sea == nil {
		return errors.New("method kriging needs -gaussian: of other data no covariance is known")
	}
	in, err := b.inputs(e.Modes[0], 0)
	if err != nil {
		return err
	}
	cases := make([]evaluate.Case, len(in))
	for i := range cases {
		cases[i] = evaluate.Case{Inputs: in[i], Number: i}
	}
	began := time.Now()
	said, err := b.sea.Kriging(b.held.Scaling()).Fill(ctx, cases)
	if err != nil {
		return err
	}
	answers := make([]answer, len(said))
	for i, a := range said {
		answers[i] = answer{mean: a.Mean, sigma: a.Sigma}
	}
	r := result{Name: e.Name, Method: e.Method, Mode: e.Modes[0], Variant: "kriging", Seconds: time.Since(began).Seconds(), Overlays: len(answers)}
	if r.Summary, err = b.score(answers); err != nil {
		return err
	}
	return b.append(r)
}
