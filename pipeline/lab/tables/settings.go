package tables

import (
	"errors"
	"fmt"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/version"
)

// Settings are the settings of all rows of a run. Results depend on them, and on
// nothing else but the data, the rows and the engine.
type Settings struct {
	Mode  impute.Mode         `json:"mode"`
	Seeds int                 `json:"seeds"` // seeds of every network
	Split samples.SplitConfig `json:"split"`
	// Choosing scores on the days that choose, for a table that settings are found
	// by. Those that judge are for figures that are published.
	Choosing bool                  `json:"choosing,omitempty"`
	Overlays samples.OverlayConfig `json:"overlays"`
	// BlockDays is how many consecutive days the bootstrap draws together.
	BlockDays int `json:"block_days"`

	Train   learn.Config         `json:"train"`   // the budget, before the changes of a row
	Members learn.Config         `json:"members"` // training of residual members
	Prior   learn.PriorConfig    `json:"prior"`
	Target  masks.Target         `json:"target"` // target of guidance whose strength is tuned
	Pool    partition.PoolConfig `json:"pool"`
	// PerPatch is how many partitions of each patch a network with an analysis
	// learns from, so that analyses can be cached; 0: always new ones.
	PerPatch int                 `json:"per_patch"`
	Runner   impute.RunnerConfig `json:"workshop"`

	Drawing      evaluate.Drawing `json:"drawing"`       // number and sampler of members
	DINDiffDraws int              `json:"dindiff_draws"` // members of that baseline
	DINDiffSteps int              `json:"dindiff_steps"`
	MaskPatches  int              `json:"mask_patches"` // patches on which guided masks are described
	MaskDraws    int              `json:"mask_draws"`   // draws of each patch; the paper has 16
	QueryPatches int              `json:"query_patches"`
	QueryDraws   int              `json:"query_draws"` // draws of each patch for the map of P(query)
}

// Budget holds the settings of the command line; zero leaves a setting as it is.
type Budget struct {
	Seeds, Steps, PriorSteps, Batch int
	Side                            int // cells
	Overlays                        int
	Mode                            impute.Mode
	// For a series of few days.
	HeldOut            float64 // share
	GapDays, BlockDays int
}

// Default returns the settings for a size of network and an engine, in the mode
// of a table.
func Default(size string, gpu bool) Settings {
	f := version.DefaultSettings(size, gpu)
	s := Settings{
		Mode: impute.Single, Seeds: 1, Split: f.Split, Overlays: samples.DefaultOverlays(f.Imputer.Side),
		Train: f.Imputer, Prior: f.Prior, Target: f.Target, Pool: f.Pool, Runner: f.Runner,
		BlockDays:    skill.DefaultBootstrap().BlockDays,
		Drawing:      evaluate.Drawing{Members: 8, ODE: impute.DefaultODE()},
		PerPatch:     4, // 1 % better than two on real chlorophyll; analyses of more take longer than the training
		DINDiffDraws: 8, DINDiffSteps: 20, MaskPatches: 8, MaskDraws: 16, QueryPatches: 16, QueryDraws: 16,
	}
	s.Pool.Uses = 16       // a count, so that results do not depend on the speed of a machine
	s.Overlays.Count = 200 // fits a processor; means are then known to some per cent
	if gpu {
		s.Seeds, s.Overlays.Count = 3, 0
		s.Train.Workers, s.QueryPatches = 8, 64
	}
	return s.With(Budget{})
}

// With returns s with the settings of b.
func (s Settings) With(b Budget) Settings {
	set := func(to *int, v int) {
		if v > 0 {
			*to = v
		}
	}
	set(&s.Seeds, b.Seeds)
	set(&s.Overlays.Count, b.Overlays)
	set(&s.Train.Batch, b.Batch)
	set(&s.Train.Steps, b.Steps)
	set(&s.Prior.Step.Steps, b.PriorSteps)
	set(&s.Split.GapDays, b.GapDays)
	set(&s.BlockDays, b.BlockDays)
	if b.HeldOut > 0 {
		s.Split.HeldOut = b.HeldOut
	}
	if b.GapDays > 0 {
		s.Split.Blocks = 1 // days are too few for more
	}
	if b.Side > 0 {
		s.Train.Side, s.Overlays.Side = b.Side, b.Side
		s.Prior.Side, s.Prior.Stride = b.Side, max(b.Side/2, 1)
		s.Pool = s.Pool.ForSide(b.Side)
	}
	s.Train.WarmupSteps = min(s.Train.WarmupSteps, s.Train.Steps/10)
	s.Prior.Step.WarmupSteps = min(s.Prior.Step.WarmupSteps, s.Prior.Step.Steps/10)
	s.Prior.EvaluateEvery = min(s.Prior.EvaluateEvery, max(s.Prior.Step.Steps/3, 1))
	if b.Mode != "" {
		s.Mode = b.Mode
	}
	s.Members = learn.MembersConfig(s.Train)
	return s
}

// Validate reports everything wrong with s.
func (s Settings) Validate() error {
	_, err := impute.ParseMode(string(s.Mode))
	errs := []error{err, s.Split.Validate(), s.Train.Validate(), s.Members.Validate(), s.Drawing.ODE.Validate(), s.Pool.Validate(), s.Prior.Validate()}
	for _, positive := range []struct {
		name  string
		value int
	}{
		{"seeds", s.Seeds},
		{"block_days", s.BlockDays},
		{"drawing.members", s.Drawing.Members - 1},
		{"dindiff_draws", s.DINDiffDraws},
		{"dindiff_steps", s.DINDiffSteps},
		{"mask_patches", s.MaskPatches},
		{"mask_draws", s.MaskDraws - 1},
		{"query_patches", s.QueryPatches},
		{"query_draws", s.QueryDraws},
	} {
		if positive.value < 1 {
			errs = append(errs, fmt.Errorf("%s is too small", positive.name))
		}
	}
	return errors.Join(errs...)
}
