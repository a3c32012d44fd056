package maskprior

import (
	"context"
	"fmt"
	"math"

	"lacuna/pipeline/masks"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// estimate is a mean over patches. Draws of one patch are alike, so only patches
// count as independent.
type estimate struct {
	Mean   float64 `json:"mean"`
	Within float64 `json:"within"` // half the width of its 95 % interval
}

func estimateOf(x []float64) estimate {
	const normal95 = 1.96
	m, squares := mean(x), 0.0
	for _, v := range x {
		squares += (v - m) * (v - m)
	}
	n := float64(len(x))
	return estimate{m, normal95 * math.Sqrt(squares/max(n-1, 1)/n)}
}

// guidedStudy measures the effect of guidance with one set of settings.
type guidedStudy struct {
	Anchor      prior.Anchor `json:"anchor"`
	Rho         float64      `json:"rho"`
	Weight      float64      `json:"weight"`
	Steps       int          `json:"steps"`
	GuidedSteps int          `json:"guided_steps"` // 0: all
	Tuned       bool         `json:"tuned"`        // the weight was found for these settings

	ContextShare estimate `json:"context_share"` // share of context in the observed cells
	MaskSD       estimate `json:"mask_sd"`       // standard deviation over the draws of a patch, mean over its sea
	// ContextEdges is how often one of two neighbouring observed cells is
	// context and the other query, over how often it is where other days'
	// masks are laid over the same patches; MaskEdges compares the masks
	// themselves with the real ones. Salt and pepper is far above 1.
	ContextEdges estimate `json:"context_edges"`
	MaskEdges    float64  `json:"mask_edges"`

	perPatch struct{ share, sd []float64 }
}

// rhoStudy varies the share of the observation that is kept as anchor.
type rhoStudy struct {
	guidedStudy
	// More compares with the rho before, patch by patch.
	MoreShare *estimate `json:"more_share,omitempty"`
	MoreSD    *estimate `json:"more_sd,omitempty"`
}

// rhos draws every patch with three values of rho and both anchors, at the
// weight that is found for the usual one.
func (b *bench) rhos(ctx context.Context, m *prior.Model) error {
	for _, anchor := range []prior.Anchor{prior.AnchorCoherent, prior.AnchorPixel} {
		found, err := b.strength(ctx, m, anchor)
		if err != nil {
			return err
		}
		var before *guidedStudy
		for _, rho := range []float64{0.6, 0.8, 1} {
			cfg := b.guide
			cfg.Anchor, cfg.Rho, cfg.Weight = anchor, rho, found.Weight
			s, err := b.study(ctx, m, cfg)
			if err != nil {
				return err
			}
			r := rhoStudy{guidedStudy: s}
			if before != nil {
				share, sd := estimateOf(minus(s.perPatch.share, before.perPatch.share)), estimateOf(minus(s.perPatch.sd, before.perPatch.sd))
				r.MoreShare, r.MoreSD = &share, &sd
			}
			before = &s
			b.report.Rho = append(b.report.Rho, r)
		}
	}
	return nil
}

// untilSteps returns the guided ones of ten: the gradient grows towards the end,
// so the last steps are where a pull can tear a mask.
func untilSteps() []int { return []int{2, 4, 6, 8, 10} }

// until guides up to a step, at the weight of full guidance and at one that
// brings the same share of context.
func (b *bench) until(ctx context.Context, m *prior.Model) error {
	for _, anchor := range []prior.Anchor{prior.AnchorCoherent, prior.AnchorPixel} {
		base := b.anchored(anchor)
		base.Steps = 10
		target := masks.DefaultTarget()
		target.MaxRoughness = math.Inf(1) // only the share is to be the same
		full, err := masks.AutoStrength(ctx, m, b.tuning(), base, target)
		if err != nil {
			return err
		}
		for _, k := range untilSteps() {
			cfg := base
			cfg.GuidedSteps, cfg.Weight = k, full.Weight
			if err := b.studyUntil(ctx, m, cfg, false); err != nil {
				return err
			}
			found, err := masks.AutoStrength(ctx, m, b.tuning(), cfg, target)
			if err != nil {
				return err
			}
			cfg.Weight = found.Weight
			if err := b.studyUntil(ctx, m, cfg, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) studyUntil(ctx context.Context, m *prior.Model, cfg prior.GuideConfig, tuned bool) error {
	s, err := b.study(ctx, m, cfg)
	s.Tuned = tuned
	b.report.Until = append(b.report.Until, s)
	return err
}

// tuning are the patches on which strengths are found.
func (b *bench) tuning() []samples.Patch {
	return b.places[:min(len(b.places), max(b.guide.Batch, 64))]
}

// anchored returns the settings of guidance with an anchor.
func (b *bench) anchored(anchor prior.Anchor) prior.GuideConfig {
	cfg := b.guide
	cfg.Anchor = anchor
	if anchor == prior.AnchorPixel {
		cfg.Rho = 0.8
	}
	return cfg
}

// strength finds the strength of an anchor, once.
func (b *bench) strength(ctx context.Context, m *prior.Model, anchor prior.Anchor) (masks.Strength, error) {
	if found, ok := b.report.Strength[string(anchor)]; ok {
		return found, nil
	}
	found, err := masks.AutoStrength(ctx, m, b.tuning(), b.anchored(anchor), masks.DefaultTarget())
	if err == nil {
		b.report.Strength[string(anchor)] = found
	}
	return found, err
}

// study draws each of some patches many times.
func (b *bench) study(ctx context.Context, m *prior.Model, cfg prior.GuideConfig) (guidedStudy, error) {
	s := guidedStudy{Anchor: cfg.Anchor, Rho: cfg.Rho, Weight: cfg.Weight, Steps: cfg.Steps, GuidedSteps: cfg.GuidedSteps}
	patches := b.places[:min(b.patches, len(b.places))]
	var copies []samples.Patch
	for _, p := range patches {
		for range b.draws {
			copies = append(copies, p)
		}
	}
	drawn, _, err := m.DrawGuided(ctx, copies, cfg, noise.New(1, "study"))
	if err != nil {
		return s, fmt.Errorf("draw %d patches %d times: %w", len(patches), b.draws, err)
	}
	others, err := partition.Empirical(b.train).Partition(ctx, patches, noise.New(1, "laid over"))
	if err != nil {
		return s, err
	}
	var edges, real []float64
	for i, p := range patches {
		masks := drawn[i*b.draws : (i+1)*b.draws]
		share, sd := describeDraws(p, masks)
		s.perPatch.share, s.perPatch.sd = append(s.perPatch.share, share), append(s.perPatch.sd, sd)
		torn := 0.0
		for _, mask := range masks {
			torn += innerEdges(p, mask) / float64(b.draws)
		}
		edges, real = append(edges, torn), append(real, innerEdges(p, others[i].Context))
	}
	s.ContextShare, s.MaskSD = estimateOf(s.perPatch.share), estimateOf(s.perPatch.sd)
	s.ContextEdges = estimateOf(edges)
	scale := max(mean(real), 1e-9)
	s.ContextEdges.Mean /= scale
	s.ContextEdges.Within /= scale
	s.MaskEdges = masks.Describe(replace(copies, drawn)).EdgeDensity / max(masks.Describe(masksOf(patches)).EdgeDensity, 1e-9)
	return s, nil
}

// describeDraws returns the mean share of the observed cells that masks keep,
// and the mean over the sea of the standard deviation of a cell.
func describeDraws(p samples.Patch, masks [][]bool) (share, sd float64) {
	observed, sea := 0.0, 0.0
	for c, o := range p.Observed() {
		often := 0.0
		for _, mask := range masks {
			if mask[c] {
				often += 1 / float64(len(masks))
			}
		}
		if o {
			share, observed = share+often, observed+1
		}
		if p.Sea[c] {
			sd, sea = sd+math.Sqrt(max(often*(1-often), 0)), sea+1
		}
	}
	return share / max(observed, 1), sd / max(sea, 1)
}

// innerEdges returns the share of neighbouring pairs of observed cells of which
// a mask keeps one.
func innerEdges(p samples.Patch, mask []bool) float64 {
	observed, width := p.Observed(), p.Window.Width
	edges, pairs := 0.0, 0.0
	count := func(a, b int) {
		if observed[a] && observed[b] {
			pairs++
			if mask[a] != mask[b] {
				edges++
			}
		}
	}
	for c := range observed {
		if c%width+1 < width {
			count(c, c+1)
		}
		if c+width < len(observed) {
			count(c, c+width)
		}
	}
	return edges / max(pairs, 1)
}

func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}
