package maskprior

import (
	"context"
	"fmt"
	"time"

	"lacuna/pipeline/masks"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// likelihood scores held-out masks, the same cells in random order, and the
// masks of another region.
func (b *bench) likelihood(ctx context.Context, m *prior.Model) error {
	n := min(len(b.places), 256)
	real := masksOf(b.places[:n])
	sets := map[string][]prior.Mask{"held_out": real, "salt_and_pepper": shuffled(real)}
	if b.other != "" {
		other, err := b.otherMasks(n)
		if err != nil {
			return err
		}
		sets["other_region"] = other
	}
	if m.Reference() == nil { // an old file has no reference
		if err := m.Calibrate(ctx, b.trainingPatches(256), b.guide.Batch); err != nil {
			return err
		}
	}
	bits, scores := map[string][]float64{}, map[string][]float64{}
	for name, masks := range sets {
		got, err := m.MaskSurprises(ctx, masks, b.guide.Batch)
		if err != nil {
			return err
		}
		for _, s := range got {
			bits[name], scores[name] = append(bits[name], s.Bits), append(scores[name], s.Score)
		}
		b.report.BitsPerPixel[name], b.report.Surprise[name] = mean(bits[name]), mean(scores[name])
	}
	for name := range sets {
		if name != "held_out" {
			b.report.AUCBits[name] = skill.AUC(bits[name], bits["held_out"])
			b.report.AUC[name] = skill.AUC(scores[name], scores["held_out"])
		}
	}
	return nil
}

// shuffled returns masks of the same coverage with their cells in random order.
func shuffled(masks []prior.Mask) []prior.Mask {
	out := make([]prior.Mask, len(masks))
	for i, m := range masks {
		sea, values := []int(nil), []bool(nil)
		for c, s := range m.Sea {
			if s {
				sea, values = append(sea, c), append(values, m.Observed[c])
			}
		}
		out[i] = prior.Mask{Place: m.Place, Observed: make([]bool, len(m.Observed))}
		for k, from := range noise.New(1, "salt").Rand(uint64(i)).Perm(len(sea)) {
			out[i].Observed[sea[k]] = values[from]
		}
	}
	return out
}

func (b *bench) otherMasks(n int) ([]prior.Mask, error) {
	_, held, err := load(b.other)
	if err != nil {
		return nil, err
	}
	t := b.options.train
	refs := held.Refs(t.Side, t.Stride, t.MinObserved)
	order := noise.New(1, "other").Rand(0).Perm(len(refs))
	var patches []samples.Patch
	for i := range min(n, len(refs)) {
		patches = append(patches, held.Cut(refs[order[i]]))
	}
	return masksOf(patches), nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(len(x), 1))
}

// guided finds the strength for both anchors and draws with the default one.
func (b *bench) guided(ctx context.Context, m *prior.Model) error {
	for _, anchor := range []prior.Anchor{prior.AnchorCoherent, prior.AnchorPixel} {
		found, err := b.strength(ctx, m, anchor)
		if err != nil {
			return err
		}
		cfg := b.anchored(anchor)
		cfg.Weight = found.Weight
		began := time.Now()
		drawn, _, err := m.DrawGuided(ctx, b.places, cfg, noise.New(b.options.train.Seed, "guided"))
		if err != nil {
			return err
		}
		b.report.Seconds["draw guided "+string(anchor)] = time.Since(began).Seconds()
		b.report.ByDraw["guided "+string(anchor)] = b.compare(drawn)
	}
	return nil
}

// query estimates the lowest P(query) of a cell, patch by patch, of ours and of
// random selection.
func (b *bench) query(ctx context.Context, m *prior.Model) error {
	found, err := b.strength(ctx, m, prior.AnchorCoherent)
	if err != nil {
		return err
	}
	guide := b.guide
	guide.Weight = found.Weight
	guided, err := prior.NewGuided(m, guide)
	if err != nil {
		return err
	}
	free, err := prior.NewUnconditional(m, b.guide.SampleConfig)
	if err != nil {
		return err
	}
	const patches = 8
	some := b.places[:min(patches, len(b.places))]
	draws := max(partition.DrawsFor(b.least, len(some)*len(some[0].Sea)), partition.ClaimDraws)
	// The last two are the random selection that ours is held against.
	for _, by := range []partition.Strategy{guided, free, partition.Empirical(b.train), partition.Coherent(), partition.Pixel(0.3, 0.3), partition.Block(8, 0.5, 0.5)} {
		if b.report.LowestQry[by.Name()], err = partition.DrawLowest(ctx, by, some, draws, noise.New(1, "query")); err != nil {
			return fmt.Errorf("%s: %w", by.Name(), err)
		}
	}
	return nil
}

// share is one cell of the sensitivity table.
type share struct {
	Anchor       prior.Anchor  `json:"anchor"`
	Rho          float64       `json:"rho"`
	Weight       float64       `json:"weight"`
	Steps        int           `json:"steps"`
	GuidedSteps  int           `json:"guided_steps"`
	Spacing      prior.Spacing `json:"spacing"`
	ContextShare float64       `json:"context_share"`
	Roughness    float64       `json:"roughness"` // ratio of edges to those of real masks
	PixelSD      float64       `json:"pixel_sd"`  // mean over cells of the sd over 16 draws of one patch
}

// shares sweeps rho, weight, steps and guided steps.
func (b *bench) shares(ctx context.Context, m *prior.Model) error {
	found, err := b.strength(ctx, m, prior.AnchorCoherent)
	if err != nil {
		return err
	}
	base := b.guide
	base.Weight = found.Weight
	var cells []prior.GuideConfig
	add := func(edit func(*prior.GuideConfig)) {
		c := base
		edit(&c)
		cells = append(cells, c)
	}
	for _, anchor := range []prior.Anchor{prior.AnchorCoherent, prior.AnchorPixel} {
		found, err := b.strength(ctx, m, anchor)
		if err != nil {
			return err
		}
		for _, rho := range []float64{0.4, 0.6, 0.8, 1} {
			add(func(c *prior.GuideConfig) { c.Anchor, c.Rho, c.Weight = anchor, rho, found.Weight })
		}
	}
	for _, factor := range []float64{0.25, 0.5, 2, 4} {
		add(func(c *prior.GuideConfig) { c.Weight *= factor })
	}
	for _, steps := range []int{10, 40} {
		add(func(c *prior.GuideConfig) { c.Steps = steps })
	}
	for _, until := range []int{5, 10, 15} {
		add(func(c *prior.GuideConfig) { c.GuidedSteps = min(until, c.Steps) })
	}
	add(func(c *prior.GuideConfig) { *c = prior.PaperGuidance(); c.Batch = base.Batch })
	for _, c := range cells {
		s, err := b.shareOf(ctx, m, c)
		if err != nil {
			return err
		}
		b.report.Shares = append(b.report.Shares, s)
	}
	return nil
}

func (b *bench) shareOf(ctx context.Context, m *prior.Model, c prior.GuideConfig) (share, error) {
	const draws = 16 // draws of each patch
	n := min(max(c.Batch/draws, 1), len(b.places))
	var patches []samples.Patch
	for _, p := range b.places[:n] {
		for range draws {
			patches = append(patches, p)
		}
	}
	drawn, _, err := m.DrawGuided(ctx, patches, c, noise.New(1, "shares"))
	if err != nil {
		return share{}, err
	}
	s := share{Anchor: c.Anchor, Rho: c.Rho, Weight: c.Weight, Steps: c.Steps, GuidedSteps: c.GuidedSteps, Spacing: c.Spacing}
	s.Roughness = masks.Describe(replace(patches, drawn)).EdgeDensity / masks.Describe(masksOf(patches)).EdgeDensity
	for i, p := range patches {
		shared, seen := 0.0, 0.0
		for cell, o := range p.Observed() {
			if o {
				seen++
				if drawn[i][cell] {
					shared++
				}
			}
		}
		s.ContextShare += shared / seen / float64(len(patches))
	}
	s.PixelSD = spread(patches, drawn, draws)
	return s, nil
}
