package masks

import (
	"context"
	"errors"
	"fmt"
	"math"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// Target is the aim of guidance.
type Target struct {
	ContextShare float64 `json:"context_share" yaml:"context_share"` // mean over patches of |context| / |observed|
	Tolerance    float64 `json:"tolerance" yaml:"tolerance"`         // absolute tolerance of ContextShare
	// MaxRoughness is how many times the edges of the real masks, or of the
	// prior's own where it is a rough one, a guided mask may have: beyond it the
	// pull has torn the mask into salt and pepper.
	MaxRoughness float64 `json:"max_roughness" yaml:"max_roughness"`
}

// DefaultTarget asks for half of the observation, the mean share that coherent
// anchors keep.
func DefaultTarget() Target { return Target{ContextShare: 0.5, Tolerance: 0.02, MaxRoughness: 1.3} }

// Strength is a weight of guidance and its effect.
type Strength struct {
	Weight       float64 `json:"weight"` // weight for prior.GuideConfig, on 64×64 cells
	ContextShare float64 `json:"context_share"`
	Roughness    float64 `json:"roughness"` // edges of the guided masks over those that real ones, or the prior's own, have without a pull
	Reached      bool    `json:"reached"`   // the target, within its tolerance
	Tried        int     `json:"tried"`     // weights
}

// Weights that are tried: from where nothing happens, by factors, to where a
// walk overshoots within one step.
const (
	weightLeast  = 4
	weightFactor = 3
	weightMost   = 20000
	weightHalves = 6 // bisections of the last interval: a fiftieth of the factor is left
)

// AutoStrength finds the weight that gives the context share of the target on
// the patches, or, where masks get rougher than allowed first, the largest
// weight that keeps them plausible. It goes up by factors, since the share
// grows with the weight only until walks overshoot, and then bisects the
// logarithm between the last weight that was too weak and the first that was
// not.
func AutoStrength(ctx context.Context, m *prior.Model, patches []samples.Patch, cfg prior.GuideConfig, want Target) (Strength, error) {
	if len(patches) == 0 {
		return Strength{}, errors.New("find the strength of guidance: no patches")
	}
	edges, err := freeEdges(ctx, m, patches, cfg)
	if err != nil {
		return Strength{}, fmt.Errorf("find the strength of guidance: %w", err)
	}
	search := strengthSearch{want: want, measure: func(weight float64) (Strength, error) {
		cfg.Weight = weight
		return measureStrength(ctx, m, patches, cfg, edges)
	}}
	if err := search.run(); err != nil {
		return Strength{}, fmt.Errorf("find the strength of guidance: %w", err)
	}
	return search.best, nil
}

// strengthSearch is a search under way.
type strengthSearch struct {
	want    Target
	measure func(weight float64) (Strength, error)
	best    Strength
	tried   int
}

func (s *strengthSearch) run() error {
	low, high := 0.0, 0.0 // logarithms; high is 0 until a weight was enough
	for weight := float64(weightLeast); weight < weightMost; weight *= weightFactor {
		enough, err := s.try(weight)
		if err != nil || s.best.Reached {
			return err
		}
		if enough {
			high = math.Log(weight)
			break
		}
		low = math.Log(weight)
	}
	if high == 0 || low == 0 {
		return nil // no weight is enough, or the least is too much
	}
	for range weightHalves {
		middle := (low + high) / 2
		enough, err := s.try(math.Exp(middle))
		if err != nil || s.best.Reached {
			return err
		}
		if enough {
			high = middle
		} else {
			low = middle
		}
	}
	return nil
}

// try measures a weight and keeps the best. It reports whether the share is
// reached or the masks are too rough.
func (s *strengthSearch) try(weight float64) (enough bool, err error) {
	got, err := s.measure(weight)
	if err != nil {
		return false, err
	}
	rough := got.Roughness > s.want.MaxRoughness
	got.Reached = math.Abs(got.ContextShare-s.want.ContextShare) <= s.want.Tolerance && !rough
	if s.tried == 0 || s.want.misses(got) < s.want.misses(s.best) {
		s.best = got
	}
	s.tried++
	s.best.Tried = s.tried
	return rough || got.ContextShare > s.want.ContextShare, nil
}

// misses says how far a strength is from the target; one that is too rough is
// further than any that is not.
func (w Target) misses(s Strength) float64 {
	miss := math.Abs(s.ContextShare - w.ContextShare)
	if s.Roughness > w.MaxRoughness {
		miss += s.Roughness
	}
	return miss
}

// freeEdges returns the edge density that masks have without a pull: that of
// the real ones, or of the prior's own where it is higher. A prior that was
// trained in haste is rough by itself, which is no fault of the pull and must not
// keep it at nothing.
func freeEdges(ctx context.Context, m *prior.Model, patches []samples.Patch, cfg prior.GuideConfig) (float64, error) {
	cfg.Weight = 0
	free, err := measureStrength(ctx, m, patches, cfg, 1)
	if err != nil {
		return 0, err
	}
	real := make([]prior.Mask, len(patches))
	for i, p := range patches {
		real[i] = prior.MaskOf(p)
	}
	return max(Describe(real).EdgeDensity, free.Roughness), nil
}

// measureStrength draws one guided mask for each patch, with the same noise
// for every weight, and compares its edges with those of masks without a pull.
func measureStrength(ctx context.Context, m *prior.Model, patches []samples.Patch, cfg prior.GuideConfig, edges float64) (Strength, error) {
	masks, _, err := m.DrawGuided(ctx, patches, cfg, noise.New(1, "prior", "strength"))
	if err != nil {
		return Strength{}, err
	}
	places, share := make([]prior.Place, len(patches)), 0.0
	for i, p := range patches {
		places[i] = prior.PlaceOf(p)
		share += ContextShare(p.Observed(), masks[i])
	}
	rough := Describe(prior.MasksAt(places, masks)).EdgeDensity / max(edges, 1e-6)
	return Strength{Weight: cfg.Weight, ContextShare: share / float64(len(patches)), Roughness: rough}, nil
}

// ContextShare returns how much of the observed cells a mask shares.
func ContextShare(observed, mask []bool) float64 {
	shared, seen := 0, 0
	for i, o := range observed {
		if o {
			seen++
			if mask[i] {
				shared++
			}
		}
	}
	return float64(shared) / float64(max(seen, 1))
}
