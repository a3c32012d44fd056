package version

import (
	"context"

	"lacuna/pipeline/masks"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
)

// stream returns the noise of a purpose. Its name is that of the package when
// the first versions were made: another would give other weights.
func stream(s Settings, purpose string) noise.Stream {
	return noise.New(s.Imputer.Seed, "finetune", purpose)
}

// strengthReport keeps the strength of guidance in the checkpoint folder.
const strengthReport = "strength.json"

// strengthPatches is how many patches the strength of guidance is found on;
// every weight meets the same noise, so few are enough to compare.
const strengthPatches = 16

// makeStrategy makes the strategy of partitions, with the strength of guidance
// that belongs to the prior.
func (r *run) makeStrategy(ctx context.Context) (err error) {
	guidance := r.s.Guidance
	if r.s.Strategy == "guided" {
		if r.eval.Strength, err = r.findStrength(ctx); err != nil {
			return err
		}
		guidance.Weight = r.eval.Strength.Weight
	}
	switch r.s.Strategy {
	case "guided":
		r.strategy, err = prior.NewGuided(r.prior, guidance)
	case "unconditional":
		r.strategy, err = prior.NewUnconditional(r.prior, guidance.SampleConfig)
	case "empirical":
		r.strategy = partition.Empirical(r.learned)
	case "coherent":
		r.strategy = partition.Coherent()
	case "pixel": // here and below, the shares of Ma, Zhou and Yu for AmbientDiff, blocks and saliency
		r.strategy = partition.Pixel(0.3, 0.3)
	case "block":
		r.strategy = partition.Block(8, 0.5, 0.5)
	case "saliency":
		r.strategy = partition.Saliency(0.5)
	}
	return err
}

// findStrength finds the strength of guidance, or takes it from the folder, or
// from the parent with its prior. Without a target it is that of the settings.
func (r *run) findStrength(ctx context.Context) (*masks.Strength, error) {
	if r.s.Target == (masks.Target{}) {
		return &masks.Strength{Weight: r.s.Guidance.Weight}, nil
	}
	var s masks.Strength
	if known, err := r.folder.load(strengthReport, &s); err != nil || known {
		return &s, err
	}
	if parent, known := r.req.Parent.evaluation(); known && r.eval.Prior.Taken && parent.Strength != nil {
		return parent.Strength, r.folder.save(strengthReport, parent.Strength)
	}
	r.hooks.Progress(Progress{Phase: PhaseStrength, Steps: 1})
	patches := spreadPatches(r.own, strengthPatches, r.train.Cut)
	s, err := masks.AutoStrength(ctx, r.prior, patches, r.s.Guidance, r.s.Target)
	if err != nil {
		return nil, err
	}
	r.hooks.Progress(Progress{Phase: PhaseStrength, Step: 1, Steps: 1})
	return &s, r.folder.save(strengthReport, s)
}
