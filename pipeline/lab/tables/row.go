package tables

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lacuna/internal/faults"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/baselines"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/prior"
)

// By is the method of a row.
type By string

// The methods. The first six train nothing.
const (
	Climatology By = "climatology" // the mean map of the training days
	Persistence By = "persistence" // the last observation
	OI          By = "oi"          // optimal interpolation with the settings of the grid
	TunedOI     By = "oi-tuned"    // optimal interpolation tuned on the training days
	// CalibratedOI is OI with the calibration of networks, so that their CRPS compare.
	CalibratedOI By = "oi-calibrated"
	DINEOF       By = "dineof"     // empirical orthogonal functions of the window's days
	Kriging      By = "kriging"    // the exact solution, where the covariance is known
	Stored       By = "stored"     // a version of a model store or a starter, as it serves, followed all the way
	OneStep      By = "one-step"   // the prediction of a network
	Calibrated   By = "calibrated" // the same with calibrated sigmas
	Members      By = "members"    // residual members, as they are drawn
	Ensemble     By = "ensemble"   // residual members, moved to the prediction and calibrated
	Textured     By = "textured"   // the prediction with a share of the first member of the ensemble
	Sampled      By = "sampled"    // a sampler of the paper's appendix
	DINDiff      By = "dindiff"    // the baseline of that name
)

// A Row is a method of a table.
type Row struct {
	Name    string      `json:"name"`
	By      By          `json:"by"`
	Mode    impute.Mode `json:"mode,omitempty"` // empty: that of the run
	Network Network     `json:"network,omitzero"`
	Sampler Sampler     `json:"sampler,omitzero"`
	Texture float64     `json:"texture,omitempty"` // the share of a member, for Textured
	// Turns asks the network about the eight mirror images of a window, and
	// Seeds is how many networks of other seeds answer with it, where above 1.
	Turns bool `json:"turns,omitempty"`
	Seeds int  `json:"seeds,omitempty"`
}

// Network holds the settings in which the network of a row differs from its
// preset. Zero values are those of the preset.
type Network struct {
	Preset   string         `json:"preset,omitempty"`   // lacuna or paper; empty: no network
	Strategy string         `json:"strategy,omitempty"` // how observations are split: see Strategies
	Guidance *Guidance      `json:"guidance,omitempty"` // nil: that of the preset, with a tuned strength
	Backbone string         `json:"backbone,omitempty"`
	LossOn   learn.LossOn   `json:"loss_on,omitempty"`
	Extras   *impute.Extras `json:"extras,omitempty"`
	// File is a network of this kind that was trained elsewhere, to be used in
	// place of a new one, for every seed.
	File string `json:"file,omitempty"`
	// Start is a network of this kind whose weights the training begins with: one that
	// has learned from other seas, such as simulated ones.
	Start string `json:"start,omitempty"`
	// Supervised trains as DINCAE does: no noise on the context, all observed
	// cells scored by a Gaussian likelihood, anomalies rather than departures.
	Supervised bool `json:"supervised,omitempty"`
	// Teachers is how many networks, of this and the following seeds, the network
	// learns to answer like, and Distil the settings in which that training differs.
	Teachers int             `json:"teachers,omitempty"`
	Distil   json.RawMessage `json:"distil,omitempty"`
	// Recipe holds settings of the training, as in learn.Config, that differ from
	// those of the run.
	Recipe json.RawMessage `json:"recipe,omitempty"`
}

// Guidance holds the settings that a sensitivity study varies.
type Guidance struct {
	Anchor prior.Anchor `json:"anchor"`
	Rho    float64      `json:"rho"`
	Weight float64      `json:"weight,omitempty"` // 0: tuned
	Steps  int          `json:"steps,omitempty"`  // 0: the prior's default
}

// Sampler is a sampler of the paper's appendix with its constants.
type Sampler struct {
	Name   string                  `json:"name,omitempty"`
	Config baselines.SamplerConfig `json:"config,omitzero"`
}

// Strategies are the names of the ways to split observations; pixel takes a
// share, as in pixel:0.3. Those that begin with guided, and unconditional, need
// a mask prior.
func Strategies() []string {
	return []string{"guided", "unconditional", "empirical", "coherent", "pixel", "block8", "block3", "saliency", "everything"}
}

// trains reports whether the row needs a network of its own.
func (r Row) trains() bool { return r.Network.Preset != "" }

// drawsMembers reports whether the row needs residual members.
func (r Row) drawsMembers() bool { return r.By == Members || r.By == Ensemble || r.By == Textured }

// needsPrior reports whether the row draws from a mask prior.
func (r Row) needsPrior() bool {
	return r.Network.Strategy == "guided" || r.Network.Strategy == "unconditional"
}

// Validate reports everything wrong with r.
func (r Row) Validate() error {
	var errs faults.List
	check := checkRow(&errs, r.Name)
	check(r.Name != "", "it has no name")
	switch r.By {
	case Climatology, Persistence, OI, TunedOI, CalibratedOI, DINEOF, Kriging, Stored:
		check(!r.trains(), "%s has no network", r.By)
	case OneStep, Calibrated, Members, Ensemble, Textured, Sampled, DINDiff:
		check(r.trains(), "%s needs a network", r.By)
		errs.Add(r.Network.validate(r.Name))
	default:
		check(false, "by is %q", r.By)
	}
	if r.Mode != "" {
		_, err := impute.ParseMode(string(r.Mode))
		errs.Add(err)
	}
	if r.By == Sampled {
		_, err := baselines.SamplerOf(r.Sampler.Name)
		errs.Add(err, r.Sampler.Config.Validate())
	}
	check(r.Texture >= 0 && r.Texture <= 1, "texture is %g, must be in 0..1", r.Texture)
	if r.By == Calibrated || r.drawsMembers() {
		check(r.Network.Preset == presetLacuna, "%s needs a network with a variance, that is preset %s", r.By, presetLacuna)
	}
	return errs.Err()
}

// checkRow returns a check whose faults name the row and go to errs.
func checkRow(errs *faults.List, row string) func(ok bool, format string, args ...any) {
	return func(ok bool, format string, args ...any) { errs.Check(ok, "row "+row+": "+format, args...) }
}

// The presets.
const (
	presetLacuna = "lacuna"
	presetPaper  = "paper"
)

func (n Network) validate(name string) error {
	if n.Preset == "" {
		return nil
	}
	var errs faults.List
	check := checkRow(&errs, name)
	check(n.Preset == presetLacuna || n.Preset == presetPaper, "preset is %q, must be %q or %q", n.Preset, presetLacuna, presetPaper)
	kind, argument, _ := strings.Cut(n.Strategy, ":")
	check(slices.Contains(Strategies(), kind), "strategy is %q, must be one of %v", n.Strategy, Strategies())
	if argument != "" {
		_, err := shareOf(n.Strategy)
		errs.Add(err)
	}
	check(n.Backbone == "" || n.Backbone == nn.BackboneUNet || n.Backbone == nn.BackboneViT, "backbone is %q", n.Backbone)
	if len(n.Recipe) > 0 {
		var c learn.Config
		d := json.NewDecoder(bytes.NewReader(n.Recipe))
		d.DisallowUnknownFields()
		errs.Add(d.Decode(&c))
	}
	if g := n.Guidance; g != nil {
		check(kind == "guided", "strategy %s is not guided", kind)
		errs.Add(n.guidance().Validate())
	}
	return errs.Err()
}

// shareOf returns the share in pixel:0.3.
func shareOf(strategy string) (float64, error) {
	kind, argument, _ := strings.Cut(strategy, ":")
	share := 0.3 // the best share of the paper
	if argument == "" {
		return share, nil
	}
	if _, err := fmt.Sscan(argument, &share); err != nil || kind != "pixel" || !(share > 0 && share < 1) {
		return 0, fmt.Errorf("strategy is %q; a share is for pixel, and lies between 0 and 1", strategy)
	}
	return share, nil
}

// guidance returns the settings of guided draws.
func (n Network) guidance() prior.GuideConfig {
	c := prior.DefaultGuidance()
	g := n.Guidance
	if g == nil {
		return c
	}
	if g.Anchor == prior.AnchorPixel {
		c = prior.PaperGuidance()
	}
	c.Rho = g.Rho
	if g.Weight > 0 {
		c.Weight = g.Weight
	}
	if g.Steps > 0 {
		c.Steps = g.Steps
	}
	return c
}

// config returns the training settings of the network within a budget: size, side,
// steps, batch and seed.
func (n Network) config(budget learn.Config) learn.Config {
	c := budget
	if n.Preset == presetPaper {
		c = c.AsPaper()
	}
	if n.Backbone != "" {
		c.Design.Backbone = n.Backbone
	}
	if n.LossOn != "" {
		c.LossOn = n.LossOn
	}
	if n.Strategy == "everything" { // context and query are the same: a clean context would be copied
		c.LossOn, c.Clean = learn.OnObserved, 0
	}
	if n.Extras != nil {
		c.Design.Extras = *n.Extras
		based := n.Extras.Background || n.Extras.Analysis
		c.Design.Departure = c.Design.Departure && based
		if *n.Extras != (impute.Extras{}) {
			d := learn.DefaultConfig()
			c.DropTemporal, c.DropFuture, c.Thin = d.DropTemporal, d.DropFuture, d.Thin
		}
	}
	if n.Supervised {
		c.Design.Departure, c.Design.Variance = false, true
		c.Beta, c.Clean, c.LossOn = 0, 1, learn.OnObserved
	}
	if len(n.Recipe) > 0 {
		_ = json.Unmarshal(n.Recipe, &c) // validate has read it
	}
	return c
}
