package retrain

import (
	"cmp"
	"errors"
	"fmt"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/version"
)

// PresetPaper is the published method; any other preset is that of Lacuna.
const PresetPaper = "paper"

// Options are an operator's settings of a training. An empty one is chosen by
// the engine, or taken from the version to begin with.
type Options struct {
	Size, Backbone string // design of the imputer
	Preset         string
	Strategy       string // how observations are split
	Only           string // version.OnlyPrior, version.OnlyImputer or version.OnlyCalibration
	RefitPrior     bool
	SpreadOnly     bool
	Budget         version.Budget
}

// OptionError says that options exclude one another.
type OptionError struct{ error }

// Unwrap returns the cause.
func (e OptionError) Unwrap() error { return e.error }

// settings returns the settings of the engine, overridden by the version to
// begin with and by the options.
func (t *Training) settings() (version.Settings, error) {
	o, gpu := t.req.Options, !t.onProcessor()
	size := nn.Small
	if gpu {
		size = nn.Base
	}
	s := version.DefaultSettings(cmp.Or(o.Size, size), gpu)
	if o.Backbone != "" {
		s.Imputer.Design.Backbone, s.Prior.Model.Backbone = o.Backbone, o.Backbone
	}
	if t.parent[version.PartImputer] != nil {
		if err := s.From(t.parent); err != nil {
			return s, err
		}
		if o.Size != "" && o.Size != s.Imputer.Design.Size || o.Backbone != "" && o.Backbone != s.Imputer.Design.Backbone {
			return s, OptionError{fmt.Errorf("--from %s is a %s %s; leave --size and --backbone out, or train without --from",
				t.parentID, s.Imputer.Design.Size, s.Imputer.Design.Backbone)}
		}
	}
	if o.Preset == PresetPaper {
		s = s.WithPaper()
	}
	if o.Only == version.OnlyCalibration && t.parent[version.PartImputer] == nil {
		return s, OptionError{errors.New("--only calibration is for a version that there is: say which with --from")}
	}
	if list := t.req.Data[0].Series.Covariates; o.Preset != PresetPaper && o.Only != version.OnlyCalibration {
		s = s.WithCovariates(list)
	}
	if s.Imputer.SpreadOnly = o.SpreadOnly; o.SpreadOnly {
		s.Teachers = 0
	}
	budget := o.Budget
	budget.Side = cmp.Or(budget.Side, patchSide(t.req.Data...))
	s = s.With(budget)
	s.Only, s.Strategy, s.RefitPrior = o.Only, cmp.Or(o.Strategy, s.Strategy), o.RefitPrior
	if err := s.Validate(); err != nil {
		return s, OptionError{err}
	}
	return s, nil
}

// patchSide returns the side of the windows that suit grids, in cells.
func patchSide(sets ...Data) int {
	for _, s := range sets {
		if g := s.Series.Grid; max(g.Height(), g.Width()) < 64 {
			return 32
		}
	}
	return 64
}
