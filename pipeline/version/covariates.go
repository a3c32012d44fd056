package version

import (
	"context"
	"errors"
	"slices"

	"lacuna/pipeline/covariate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// dropCovariates is the share of examples that lose a covariate. The network must know
// the days without it well enough to be asked what it brings, and to fill such a day.
const dropCovariates = 0.25

// WithCovariates returns s for a network that sees the covariates of a series too, beside
// those that the version to begin from has. Without any it is s.
func (s Settings) WithCovariates(list []samples.Covariate) Settings {
	var names, standing []string
	for _, c := range list {
		if c.Stays {
			standing = append(standing, c.Name)
		} else {
			names = append(names, c.Name)
		}
	}
	s.Imputer.Design = s.Imputer.Design.With(names, standing)
	if len(list) > 0 {
		s.Imputer.DropCovariates = dropCovariates
	}
	return s
}

var errGridsOfCovariates = errors.New("covariates are for days of one grid: give days of one, or leave the covariates out")

// beginCovariates makes the channels of the network from the days to learn from.
func (r *run) beginCovariates() error {
	if len(r.req.Series) > 1 && slices.ContainsFunc(r.req.Series, func(s samples.Series) bool { return len(s.Covariates) > 0 }) {
		return errGridsOfCovariates
	}
	r.channels = samples.ChannelsOf(r.s.Imputer.Design.Channels(), r.train.LearnChannels())
	r.showCovariates()
	return nil
}

// showCovariates gives the channels to the networks that learn and are judged.
func (r *run) showCovariates() {
	if len(r.channels) > 0 {
		r.material.Covariates = r.learned.Channels(r.channels)
		r.aroundChoose.Covariates, r.aroundJudge.Covariates = r.chooseSide.Channels(r.channels), r.judgeSide.Channels(r.channels)
	}
}

// covariatesFile keeps the choice of covariates in the checkpoint folder.
const covariatesFile = "covariates.json"

// chooseCovariates asks the imputer what each covariate brings on the overlays that
// choose. One that does not pay counts as missing everywhere from here on: for the
// members, at the gate and where the version serves.
func (r *run) chooseCovariates(ctx context.Context) error {
	if len(r.channels) == 0 {
		return nil
	}
	var kept covariate.Kept
	known, err := r.folder.load(covariatesFile, &kept)
	if err != nil {
		return err
	}
	if !known {
		if kept, err = r.keepCovariates(ctx); err != nil {
			return err
		}
		if err := r.folder.save(covariatesFile, kept); err != nil {
			return err
		}
	}
	r.eval.Covariates = &kept
	for k := range r.channels {
		if r.channels[k].Off = !kept.Judged[k].Used; !r.channels[k].Off {
			continue
		}
		for _, inputs := range [][]impute.Inputs{r.scoring, r.chosen} {
			for _, in := range inputs {
				in.Covariates[k] = nil
			}
		}
	}
	r.showCovariates()
	return nil
}

// keepCovariates finds out which covariates pay.
func (r *run) keepCovariates(ctx context.Context) (covariate.Kept, error) {
	var err error
	if r.chosen, err = r.analysed(ctx, r.choosing); err != nil {
		return covariate.Kept{}, err
	}
	names, there := make([]string, len(r.channels)), make([]bool, len(r.channels))
	for k, c := range r.channels {
		names[k] = c.Name
		there[k] = slices.ContainsFunc(r.chosen, func(in impute.Inputs) bool { return in.Covariates[k] != nil })
	}
	return covariate.Keep(names, there, func(seen []int) ([]skill.Loss, error) {
		inputs := slices.Clone(r.chosen)
		for i, in := range inputs {
			inputs[i].Covariates = make([][]float32, len(r.channels))
			for _, k := range seen {
				inputs[i].Covariates[k] = in.Covariates[k]
			}
		}
		said, err := r.model.Predict(ctx, inputs)
		if err != nil {
			return nil, err
		}
		out := make([]skill.Loss, len(said))
		for i, p := range said {
			o := r.choosing[i]
			out[i].Day = o.Time
			for cell, scored := range o.Scored {
				if e := float64(p.Mean[cell]) - float64(o.Values[cell]); scored && e-e == 0 {
					out[i].Sum, out[i].Pixels = out[i].Sum+e*e, out[i].Pixels+1
				}
			}
		}
		return out, nil
	})
}

// inputsThatChoose returns the inputs for some of the overlays that choose.
func (r *run) inputsThatChoose(ctx context.Context, first, end int) ([]impute.Inputs, error) {
	if r.chosen != nil {
		return r.chosen[first:end], nil
	}
	return r.analysed(ctx, r.choosing[first:end])
}
