package prior

import (
	"lacuna/internal/faults"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
)

// Anchor says how an observation is thinned before a mask is pulled to it.
type Anchor string

// The anchors.
const (
	// AnchorCoherent keeps the cells that lie high in a smooth random field:
	// whole regions lose their anchor, as under a cloud.
	AnchorCoherent Anchor = "coherent"
	// AnchorPixel keeps each cell with probability Rho, as Ma, Zhou and Yu do.
	// The guided mask is then salt and pepper: context surrounds every query
	// cell.
	AnchorPixel Anchor = "pixel"
)

// SampleConfig says how masks are drawn.
type SampleConfig struct {
	Steps   int     `json:"steps" yaml:"steps"` // each runs the network once
	Spacing Spacing `json:"spacing" yaml:"spacing"`
	Order   Order   `json:"order" yaml:"order"`
	Batch   int     `json:"batch" yaml:"batch"` // masks at a time; fewer cost as much
}

// DefaultSampling returns the settings that hold where a file is silent.
func DefaultSampling() SampleConfig {
	return SampleConfig{Steps: 20, Spacing: LogSNR, Order: SecondOrder, Batch: 32}
}

// Validate reports everything wrong with c.
func (c SampleConfig) Validate() error {
	var errs faults.List
	errs.Check(c.Steps > 0, "steps is %d, must be positive", c.Steps)
	errs.Check(c.Batch > 0, "batch is %d, must be positive", c.Batch)
	errs.Add(c.Spacing.validate(), c.Order.validate())
	return errs.Err()
}

// GuideConfig says how masks are pulled towards observations.
type GuideConfig struct {
	SampleConfig `yaml:",inline"`

	Anchor Anchor  `json:"anchor" yaml:"anchor"`
	Weight float64 `json:"weight" yaml:"weight"` // w_g on 64×64 cells; scaled with their number
	// Rho is how much of the observation is kept as anchor: for pixel anchors
	// the probability of each cell; for coherent ones the share, and 0 draws it
	// anew for each mask, uniform in 0.1..0.9.
	Rho         float64 `json:"rho" yaml:"rho"`
	GuidedSteps int     `json:"guided_steps" yaml:"guided_steps"` // how many steps are guided, from the first; 0: all
}

// DefaultGuidance returns the settings that hold where a file is silent.
func DefaultGuidance() GuideConfig {
	return GuideConfig{SampleConfig: DefaultSampling(), Anchor: AnchorCoherent, Weight: 100}
}

// PaperGuidance returns the settings of Ma, Zhou and Yu, for comparison. They
// name a weight of 80 to 200 and 10 to 20 steps: it has the middle of the one
// and, as more steps follow the prior more closely, the end of the other.
func PaperGuidance() GuideConfig {
	c := DefaultGuidance()
	c.Anchor, c.Rho, c.Spacing, c.Order = AnchorPixel, 0.8, Even, FirstOrder
	c.Weight, c.Steps = 140, 20
	return c
}

// Validate reports everything wrong with c.
func (c GuideConfig) Validate() error {
	errs := faults.Of(c.SampleConfig.Validate())
	errs.Check(c.Anchor == AnchorCoherent || c.Anchor == AnchorPixel, "anchor is %q, must be %q or %q", c.Anchor, AnchorCoherent, AnchorPixel)
	errs.Check(c.Weight >= 0, "weight is %g, must not be negative", c.Weight)
	errs.Check(c.Rho >= 0 && c.Rho <= 1, "rho is %g, must be in 0..1", c.Rho)
	errs.Check(c.Anchor != AnchorPixel || c.Rho > 0, "rho is %g, must be positive for pixel anchors", c.Rho)
	errs.Check(c.GuidedSteps >= 0, "guided_steps is %d, must not be negative", c.GuidedSteps)
	return errs.Err()
}

// weightFor returns the weight for masks of d cells: the loss is a mean over
// cells, so the pull on one of them falls as their number grows.
func (c GuideConfig) weightFor(cells int) float64 {
	return c.Weight * float64(cells) / cells64
}

// anchors stores the thinned observation of a patch in dst as 0 and 1.
func (c GuideConfig) anchors(dst []float32, p samples.Patch, stream noise.Stream) {
	observed := p.Observed()
	r := stream.Sub(anchorDraws).Rand(0)
	kept := make([]bool, len(observed))
	switch {
	case c.Anchor == AnchorPixel:
		for i, o := range observed {
			kept[i] = o && r.Float64() < c.Rho
		}
	case c.Rho == 1:
		copy(kept, observed)
	default:
		share := c.Rho
		if share == 0 {
			share = partition.Retention(r)
		}
		kept = partition.CoherentCut(p.Window, observed, share, stream.Sub(anchorField))
	}
	for i, k := range kept {
		dst[i] = 0
		if k {
			dst[i] = 1
		}
	}
}

// Streams below the one of a draw.
const (
	drawNoise   = iota // noise of the walk
	anchorDraws        // numbers that thin cell by cell, or choose a share
	anchorField
)

// logitLimit keeps probabilities away from 0 and 1, by 1e-6, where a wrong and
// certain cell still has a finite loss.
const logitLimit = 13.8155
