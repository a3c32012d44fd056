package version

import (
	"context"
	"errors"
	"fmt"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
)

var errNothingToCalibrate = errors.New("only the calibration is asked for, and there is no version with an imputer to calibrate: say which one to begin with")

// keepNetworks takes the networks of the parent as they are: what is made anew is all
// that is fitted to days without a training. What was found out about them stays true.
func (r *run) keepNetworks(context.Context) (err error) {
	if r.model, err = impute.Load(r.req.Parent[PartImputer], r.runner); err != nil {
		return fmt.Errorf("load the parent: %w", err)
	}
	if before, known := r.req.Parent.evaluation(); known {
		r.eval.Prior, r.eval.Strength, r.eval.Queries = before.Prior, before.Strength, before.Queries
		r.eval.Reliability, r.eval.Covariates = before.Reliability, before.Covariates
	}
	known, err := r.parentScaling()
	if err != nil || known == nil {
		return err
	}
	// A covariate that did not pay for its network is not shown to it now.
	r.channels = samples.ChannelsOf(r.s.Imputer.Design.Channels(), known.Covariates)
	r.showCovariates()
	return nil
}

// parentScaling returns that of the parent where it is of this place, else nil.
func (r *run) parentScaling() (*parts.Scaling, error) {
	data := r.req.Parent[PartScaling]
	if data == nil || !r.parentIsOfHere() {
		return nil, nil
	}
	s, err := parts.DecodeScaling(data)
	return &s, err
}
