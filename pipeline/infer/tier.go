package infer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lacuna/internal/faults"
	"lacuna/pipeline/impute"
)

// A Tier says how much work goes into an analysis.
type Tier string

// The tiers, from the least work to the most.
const (
	// Fast runs the imputer once: mean and sigma are its output.
	Fast Tier = "fast"
	// Standard also draws a few members, ten steps each.
	Standard Tier = "standard"
	// Full draws enough members for their spread to be the uncertainty, each
	// by recursive jump.
	Full Tier = "full"
)

// Tiers returns the names of the tiers.
func Tiers() []Tier { return []Tier{Fast, Standard, Full} }

// Network tunes the method model. Zero means the default.
type Network struct {
	Tier    Tier   `yaml:"tier,omitempty"`    // fast, standard or full; empty: the best within the deadline
	Members int    `yaml:"members,omitempty"` // 0: 4 for standard, 16 for full
	Seed    uint64 `yaml:"seed,omitempty"`    // seed of the members' noise
	// WindowCells is the side of the largest square that goes through a network
	// at once; a grid of no more cells goes through whole. 0: 512 on a
	// processor, 1024 on a GPU.
	WindowCells int `yaml:"window_cells,omitempty"`
	// OverlapCells is how far neighbouring windows reach into each other. 0: a
	// quarter of the window.
	OverlapCells int `yaml:"overlap_cells,omitempty"`
	Batch        int `yaml:"batch,omitempty"` // windows or members at a time; 0: 1 on a processor, 8 on a GPU
	// Deadline picks the tier where none is set: the best that this machine
	// makes of a field in this time, by what it measured. 0: in the service a
	// 24th of the time from one field to the next, an hour for daily ones.
	Deadline time.Duration `yaml:"deadline,omitempty"`
	// Prompt is the longest that a live product waits for a better tier than
	// fast. Where that would take longer, the tier fast is published first, and
	// superseded when the better one is done. 0: a minute.
	Prompt time.Duration `yaml:"prompt,omitempty"`
}

// Rhythm returns the settings with the deadline of a series of a step, where
// none is given: a 24th of the step.
func (n Network) Rhythm(step time.Duration) Network {
	const share = 24
	if n.Tier == "" && n.Deadline == 0 {
		n.Deadline = step / share
	}
	return n
}

// Validate reports everything wrong with n. Each message begins with the key.
func (n Network) Validate() error {
	var errs faults.List
	names := make([]string, 0, len(Tiers()))
	for _, t := range Tiers() {
		names = append(names, string(t))
	}
	errs.Check(n.Tier == "" || slices.Contains(Tiers(), n.Tier), "network.tier is %q, must be one of %s", n.Tier, strings.Join(names, ", "))
	errs.Check(n.Members >= 0 && n.Members <= mostMembers, "network.members is %d, must be 0..%d", n.Members, mostMembers)
	errs.Check(n.WindowCells == 0 || n.WindowCells >= leastWindow, "network.window_cells is %d, must be at least %d", n.WindowCells, leastWindow)
	errs.Check(n.OverlapCells >= 0 && (n.OverlapCells == 0 || 2*n.OverlapCells <= max(n.WindowCells, leastWindow)),
		"network.overlap_cells is %d, must be 0 to half of window_cells", n.OverlapCells)
	errs.Check(n.Batch >= 0 && n.Batch <= 1024, "network.batch is %d, must be 0..1024", n.Batch)
	errs.Check(n.Deadline >= 0, "network.deadline is %v, must not be negative", n.Deadline)
	errs.Check(n.Prompt >= 0, "network.prompt is %v, must not be negative", n.Prompt)
	return errs.Err()
}

// A Recipe is the sampling that a tier stands for.
type Recipe struct {
	Members int // 0: no members are drawn
	ODE     impute.ODE
}

// Recipe returns the recipe of a tier with a number of members; 0: the tier's
// own number.
func (t Tier) Recipe(members int) Recipe {
	switch t {
	case Standard:
		return Recipe{Members: orDefault(members, 4), ODE: impute.ODE{Steps: 10, Jumps: 1, SecondOrder: true}}
	case Full:
		return Recipe{Members: orDefault(members, 16), ODE: impute.ODE{Steps: 20, Jumps: 3, SecondOrder: true}}
	}
	return Recipe{}
}

// Sampler returns how members are drawn, for people; empty: none are.
func (r Recipe) Sampler() string {
	switch {
	case r.Members == 0:
		return ""
	case r.ODE.Jumps > 1:
		return fmt.Sprintf("recursive jump, %d stages, %d steps", r.ODE.Jumps, r.ODE.Calls())
	}
	return fmt.Sprintf("probability flow, %d steps", r.ODE.Calls())
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// Speed is the measured time of a machine per million cells, with fields of one
// size: small ones cost more by the cell. Zero: not measured.
type Speed struct {
	Analysis time.Duration `json:"analysis_ns"` // optimal interpolation and everything else on the processor
	Look     time.Duration `json:"look_ns"`     // one prediction of the imputer
	Step     time.Duration `json:"step_ns"`     // one sampler step of one member
}

// Estimate returns the expected time of a tier for a number of cells.
func (s Speed) Estimate(r Recipe, cells int) time.Duration {
	per := s.Analysis + s.Look + time.Duration(r.Members*r.ODE.Calls())*s.Step
	return time.Duration(float64(per) * float64(cells) / 1e6)
}

// PickTier returns the best tier that is done by the deadline, or Fast: a
// poorer product in time is better than none. A model without members has only
// Fast.
func PickTier(deadline time.Duration, s Speed, cells, members int) Tier {
	for _, t := range []Tier{Full, Standard} {
		if s.Estimate(t.Recipe(members), cells) <= deadline {
			return t
		}
	}
	return Fast
}
