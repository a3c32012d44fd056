package version

import (
	"context"
	"errors"
	"fmt"
	"math"

	"lacuna/pipeline/parts"

	"lacuna/pipeline/learn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// Bits is the cost of the masks of days that choose under a prior, in bits a cell.
type Bits struct {
	Mean  float64 `json:"mean"`
	Std   float64 `json:"std"`
	Masks int     `json:"masks"`
}

// Drift returns how far now lies above b in standard deviations of a single
// mask: by how much masks cost more than when the prior was made, or less where
// it is negative.
func (b Bits) Drift(now Bits) float64 {
	if b.Std == 0 {
		return 0
	}
	return (now.Mean - b.Mean) / b.Std
}

// costOf measures patches under a prior: their bits and, where the prior has a
// reference, their mean surprise. The likelihood of which both are made takes most of
// the time of a prior that is taken, so it is computed once.
func costOf(ctx context.Context, m *prior.Model, patches []samples.Patch) (Bits, *float64, error) {
	if m.Reference() == nil {
		each, err := m.BitsPerPixel(ctx, patches)
		return bitsOf(each), nil, err
	}
	each, err := m.Surprises(ctx, patches)
	if err != nil {
		return Bits{}, nil, err
	}
	bits := make([]float64, len(each))
	for i, s := range each {
		bits[i] = s.Bits
	}
	return bitsOf(bits), meanSurprise(each), nil
}

// bitsOf returns the mean and the spread of bits; NaN is that of a patch without sea.
func bitsOf(each []float64) Bits {
	var b Bits
	sum, squares := 0.0, 0.0
	for _, v := range each {
		if v == v {
			sum, squares, b.Masks = sum+v, squares+v*v, b.Masks+1
		}
	}
	n := float64(max(b.Masks, 1))
	b.Mean = sum / n
	b.Std = math.Sqrt(max(squares/n-b.Mean*b.Mean, 0))
	return b
}

// bitMasks is how many masks a drift is measured on: their mean is then known
// to an eighth of their spread.
const bitMasks = 64

// PriorReport says whether the prior was taken or trained, and its scores.
type PriorReport struct {
	Taken bool     `json:"taken"` // whether it is the parent's
	Drift *float64 `json:"drift,omitempty"`
	Bits  Bits     `json:"bits"` // cost of held-out masks
	// Surprise is the mean of how far the cost of held-out masks lies from what
	// such masks usually cost; nil: the prior has no reference.
	Surprise *float64           `json:"surprise,omitempty"`
	Report   *learn.PriorReport `json:"report,omitempty"`
}

// priorReport keeps the report in the checkpoint folder.
const priorReport = "prior.json"

// makePrior trains a prior, or takes that of the parent while masks have not
// drifted.
func (r *run) makePrior(ctx context.Context) error {
	if !r.s.needsPrior() {
		// The prior of the parent goes along, with its report.
		if parent, known := r.req.Parent.evaluation(); known {
			r.eval.Prior, r.eval.Strength = parent.Prior, parent.Strength
		}
		return nil
	}
	data, err := r.folder.read(PartPrior.checkpoint())
	if err != nil {
		return err
	}
	if data == nil {
		if data, err = r.findPrior(ctx); err != nil {
			return err
		}
		if err := errors.Join(r.folder.write(PartPrior.checkpoint(), data), r.folder.discard(checkpointFile(PhasePrior))); err != nil {
			return err
		}
	} else if _, err := r.folder.load(priorReport, &r.eval.Prior); err != nil {
		return err
	}
	r.parts[PartPrior] = data
	if r.prior, err = prior.Load(r.req.Backend, data); err != nil {
		return err
	}
	r.prior.Recall(r.train)
	return nil
}

// findPrior returns a prior file and leaves its report in the folder.
func (r *run) findPrior(ctx context.Context) ([]byte, error) {
	if r.s.Only != OnlyPrior && !r.s.RefitPrior && r.req.Parent[PartPrior] != nil && r.parentIsOfHere() {
		taken, err := r.takePrior(ctx)
		if err != nil {
			return nil, fmt.Errorf("prior of the parent: %w", err)
		}
		if taken {
			return r.req.Parent[PartPrior], r.folder.save(priorReport, r.eval.Prior)
		}
	}
	if r.s.Only == OnlyImputer {
		return nil, fmt.Errorf("strategy %s needs a prior, and the version to begin from has none: train the prior too, or choose another strategy", r.s.Strategy)
	}
	model, report, err := r.trainPrior(ctx)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	r.eval.Prior = &PriorReport{Report: &report}
	if r.eval.Prior.Bits, r.eval.Prior.Surprise, err = costOf(ctx, model, r.heldPatches()); err != nil {
		return nil, err
	}
	data, err := model.Encode()
	if err != nil {
		return nil, err
	}
	return data, r.folder.save(priorReport, r.eval.Prior)
}

// parentIsOfHere reports whether the parent is of no grid or of this one: the
// prior of another grid has learned where that is cloudy.
func (r *run) parentIsOfHere() bool {
	data := r.req.Parent[PartScaling]
	if data == nil {
		return true
	}
	s, err := parts.DecodeScaling(data)
	return err == nil && len(r.train.Places()) == 1 && s.Fits(r.train.Grid(), r.train.Transform())
}

// takePrior reports whether the prior of the parent still fits the masks.
func (r *run) takePrior(ctx context.Context) (bool, error) {
	model, err := prior.Load(r.req.Backend, r.req.Parent[PartPrior])
	if err != nil {
		return false, err
	}
	defer model.Close()
	for _, p := range r.train.Places() {
		if !model.FitsGrid(p.Grid.Height(), p.Grid.Width()) {
			return false, nil // its map of frequencies is of another grid
		}
	}
	now, surprise, err := costOf(ctx, model, r.heldPatches())
	if err != nil {
		return false, err
	}
	r.eval.Prior = &PriorReport{Taken: true, Bits: now}
	parent, known := r.req.Parent.evaluation()
	if !known || parent.Prior == nil {
		return r.s.Only == OnlyImputer, nil
	}
	before := parent.Prior
	drift := math.Abs(before.Bits.Drift(now))
	if surprise != nil && before.Surprise != nil {
		drift = *surprise - *before.Surprise
	}
	// The reference stays the one of the training, or masks could creep away
	// in small steps.
	r.eval.Prior.Drift, r.eval.Prior.Bits, r.eval.Prior.Surprise = &drift, before.Bits, before.Surprise
	return r.s.Only == OnlyImputer || drift <= r.s.Drift, nil
}

// heldPatches returns patches of the days that choose, spread over all of them.
func (r *run) heldPatches() []samples.Patch {
	return spreadPatches(r.chooseSide.Refs(r.s.Prior.Side, r.s.Prior.Side, partition.MinObservedCells), bitMasks, r.chooseSide.Cut)
}

// spreadPatches cuts at most n of the refs, evenly spread over their order.
func spreadPatches(refs []samples.Ref, n int, cut func(samples.Ref) samples.Patch) []samples.Patch {
	n = min(n, len(refs))
	out := make([]samples.Patch, n)
	for i := range out {
		out[i] = cut(refs[i*len(refs)/n])
	}
	return out
}

// trainPrior fits a prior, going on from its checkpoint where there is one.
func (r *run) trainPrior(ctx context.Context) (*prior.Model, learn.PriorReport, error) {
	cfg := r.s.Prior
	cfg.Model.Frequency = cfg.Model.Frequency && len(r.learned.Places()) == 1 // a map is of one grid
	from, err := r.parentPrior(cfg.Model)
	if err != nil {
		return nil, learn.PriorReport{}, err
	}
	if from != nil {
		cfg.Step.LearningRate *= tuningRate
	}
	hooks := r.trainHooks(training{phase: PhasePrior})
	hooks.From = from
	return learn.TrainPrior(ctx, r.req.Backend, r.train, r.chooseSide, cfg, hooks)
}

// parentPrior returns the weights of the parent's prior where it is of the
// same config, else nil. Those of a prior of another grid serve too: the map
// of frequencies is made anew.
func (r *run) parentPrior(cfg prior.Config) ([]float32, error) {
	data := r.req.Parent[PartPrior]
	if data == nil {
		return nil, nil
	}
	parent, err := prior.Load(r.req.Backend, data)
	if err != nil {
		return nil, fmt.Errorf("prior of the parent: %w", err)
	}
	defer parent.Close()
	if parent.Config() != cfg {
		return nil, nil
	}
	return parent.Weights(), nil
}
