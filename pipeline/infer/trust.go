package infer

import (
	"context"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/skill"
)

// Trust says how far a model is followed on its way from optimal interpolation:
// one that was not trained and judged on a dataset has to show there first that
// its way is right (skill.Trusted).
type Trust struct {
	Weight float64 // 0: the analysis is that of the method oi, bit for bit, to 1: that of the model
	// Widening is that of optimal interpolation, as Scene.Widening is that of the
	// model.
	Widening skill.Widening
	Apart    bool // keep what each says by itself, to be scored
}

// full reports whether nothing but the model is asked.
func (t *Trust) full() bool { return t == nil || t.Weight >= 1 && !t.Apart }

// followed reports whether the model has a part in the analysis.
func (t *Trust) followed() bool { return t == nil || t.Weight > 0 }

// Apart are the analyses that were mixed, in the space of the transform, with the
// sigma of each before its widening.
type Apart struct{ Interpolated, Modelled classical.Estimate }

// follow fills a frame by optimal interpolation and, as far as it is trusted, by
// the model. Interpolation comes first: the model may overwrite the series.
func (f *Filler) follow(ctx context.Context, v view, progress func(done, total int)) (filling, error) {
	half := func(k int) func(done, total int) {
		return func(done, total int) { progress(k*total+done, 2*total) }
	}
	if !v.trust.followed() && !v.trust.Apart && !f.draws() {
		return f.widened(ctx, v, "oi", v.trust.Widening, progress)
	}
	plain, err := f.widened(ctx, v, "oi", v.trust.Widening, half(0))
	if err != nil {
		return plain, err
	}
	network, err := f.widened(ctx, v, MethodModel, v.wide, half(1))
	if err != nil {
		return network, err
	}
	out := mix(plain, network, float32(v.trust.Weight))
	if !v.trust.followed() && f.cfg.Members == 0 {
		out.sampling.Follows = "" // a better tier would change nothing but members, which nobody gets
		if out.sampling.Members == 0 {
			out.sampling = Sampling{} // the networks have no part in it
		}
	}
	if v.trust.Apart {
		out.apart = &Apart{Interpolated: plain.before(), Modelled: network.before()}
	}
	return out, nil
}

// draws reports whether members are drawn by the networks, also where a model is
// not followed: its fields differ from one another as real ones do, whoever
// knows their mean better.
func (f *Filler) draws() bool {
	n := f.cfg.Network
	return f.model.Members() && n.Tier != Fast && (n.Tier != "" || n.Deadline > 0)
}

// before returns the estimate with its sigma as it was before the widening.
func (out filling) before() classical.Estimate {
	e := classical.Estimate{Mean: out.estimate.Mean, Sigma: out.estimate.Sigma}
	if out.own != nil {
		e.Sigma = out.own
	}
	return e
}

// mix goes a share of the way from one filling to another. Its sigma goes the same
// share of the way: the errors of the two, which see the same days, are nearly one,
// and the standard deviation of a mean of two errors that are one is the mean of
// their standard deviations; of any others it is less. A cell that the model does
// not fill stays where it was. Members are those of the model, about the mean and
// as far apart as the mixed sigma says.
func mix(from, to filling, share float32) filling {
	switch share {
	case 0:
		out := from
		out.members, out.means, out.sampling, out.took = to.members, to.means, to.sampling, to.took
		out.sampling.Centre = "" // the mean is neither
		eachCell(len(from.estimate.Mean), func(i int) { out.gather(to.estimate, i) })
		return out
	case 1:
		return to
	}
	n := len(from.estimate.Mean)
	out := to
	out.own, out.familiar, out.noise = nil, nil, from.noise
	out.estimate = classical.Estimate{Mean: make([]float32, n), Sigma: make([]float32, n)}
	if from.noise != nil && to.noise != nil {
		out.noise = make([]float32, n)
	}
	eachCell(n, func(i int) {
		mean, sigma := from.estimate.Mean[i], from.estimate.Sigma[i]
		if centre, spread := to.estimate.Mean[i], to.estimate.Sigma[i]; finite(centre) && finite(spread) {
			mean, sigma = mean+share*(centre-mean), sigma+share*(spread-sigma)
		}
		out.estimate.Mean[i], out.estimate.Sigma[i] = mean, sigma
		out.gather(to.estimate, i)
		if from.noise != nil && to.noise != nil {
			out.noise[i] = mixNoise(from.noise[i], to.noise[i], share)
		}
	})
	return out
}

// gather moves the members of a cell, which are about an estimate of the model's,
// to that of the filling, as far apart as its sigma says.
func (out filling) gather(from classical.Estimate, i int) {
	if len(out.members) == 0 {
		return
	}
	centre, spread := from.Mean[i], from.Sigma[i]
	if !finite(centre) || !finite(spread) {
		centre, spread = impute.Departure(out.members, i)
	}
	factor := float32(0)
	if spread > 0 {
		factor = out.estimate.Sigma[i] / spread
	}
	for _, x := range out.members {
		x[i] = out.estimate.Mean[i] + factor*(x[i]-centre)
	}
}

// mixNoise mixes two fitted errors of an observation, of which one may be missing.
func mixNoise(from, to, share float32) float32 {
	switch {
	case !finite(to):
		return from
	case !finite(from):
		return field.NaN()
	}
	return from + share*(to-from)
}
