package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/field"
)

// Constants are the scales of optimal interpolation that were tuned for a
// dataset, with their evidence. They hold for every field of the dataset: what is
// tuned on a scene of its own follows the weather of that scene, and takes longer
// than the analysis.
type Constants struct {
	LengthKM   float64  `json:"length_km,omitempty"` // 0: nothing was tuned, and the defaults serve
	Days       float64  `json:"days,omitempty"`
	Nugget     float64  `json:"nugget,omitempty"`
	SigmaScale float64  `json:"sigma_scale,omitempty"`
	Note       string   `json:"note,omitempty"` // why the defaults serve, for people
	Evidence   Evidence `json:"evidence"`
	// Covariates are what other variables say of the dataset; nil: it has none.
	Covariates *covariate.Regression `json:"covariates,omitempty"`
}

// Covariates returns the maps of the covariates of a dataset for times, in order: of the
// same day or nearest to it and, where Config.Future is 0, not later.
type Covariates func(ctx context.Context, times []time.Time) ([]covariate.Term, error)

// Evidence is what constants were tuned on.
type Evidence struct {
	Fields     int       `json:"fields"`             // fields with an observation
	From       time.Time `json:"from"`               // time of the first of them
	To         time.Time `json:"to"`                 // time of the last
	Overlays   int       `json:"overlays,omitempty"` // days that were hidden under the gaps of another day
	Pixels     int       `json:"pixels,omitempty"`   // hidden cells that were compared
	MSE        float64   `json:"mse,omitempty"`      // on them, in squared units of the transform
	Coverage90 float64   `json:"coverage_90,omitempty"`
}

// Tuned reports whether the constants are others than the defaults.
func (c Constants) Tuned() bool { return c.LengthKM > 0 }

// TuneFields is the number of observed fields from which on tuned scales are
// better than the defaults: fewer give overlays of one weather.
const TuneFields = 15

// tuneOverlays is half the number that settles a comparison of methods: enough
// to place three scales, in half the time.
const tuneOverlays = 60

// TuningFields returns the most fields of a grid that are worth tuning on: a
// season of daily ones, and fewer where they would take more memory than the
// analysis itself.
func TuningFields(grid field.Grid) int {
	const season, window, values = 90, 21, 32 << 20
	return min(max(values/max(grid.Len(), 1), window), season)
}

// Tune returns the constants of a dataset from fields of it in physical units, in
// any order, of which it takes the latest TuningFields. It is a function of its
// arguments alone: for a field that is filled in near real time, or scored, fields
// must be of the days before it. Where nothing can be tuned, or cfg has scales of
// its own, the scales are zero and the note says why. With covariates, nil for none, it
// finds out too which of them pay, and tunes the scales of what they leave.
func Tune(ctx context.Context, fields []field.Field, sea field.Mask, tr field.Transform, cfg Config, covariates Covariates) (Constants, error) {
	if cfg.OI.Scaled() && covariates == nil {
		return Constants{}, nil
	}
	fields = slices.SortedStableFunc(slices.Values(fields), func(a, b field.Field) int { return a.Time.Compare(b.Time) })
	if len(fields) > 0 {
		fields = fields[max(len(fields)-TuningFields(fields[0].Grid), 0):]
	}
	fields = slices.DeleteFunc(fields, func(f field.Field) bool { return f.ObservedMask().Count() == 0 })
	if len(fields) < TuneFields {
		// The count is left out: the reason would change, and be logged, with every granule.
		return Constants{Note: fmt.Sprintf("%s: fewer than %d fields are there to tune them on", untuned, TuneFields)}, nil
	}
	series, _ := assemble(Scene{Frames: fields, Sea: sea, Transform: tr})
	c := Constants{Evidence: Evidence{Fields: len(fields), From: fields[0].Time, To: fields[len(fields)-1].Time}}
	t := classical.DefaultTuning().OfStep(cfg.Step)
	t.Start, t.Past, t.Future = classical.DefaultOI(series.Grid).OfStep(cfg.Step), cfg.Past(), cfg.Future()
	t.Overlays = tuneOverlays
	if err := c.tune(ctx, series, t, cfg); err != nil || covariates == nil {
		return c, err
	}
	if err := c.explain(ctx, series, t, cfg, covariates); err != nil || !c.Covariates.Any() {
		return c, err
	}
	return c, c.tune(ctx, series, t, cfg)
}

// tune finds the scales for a series, unless the configuration has some.
func (c *Constants) tune(ctx context.Context, series classical.Series, t classical.Tuning, cfg Config) error {
	if cfg.OI.Scaled() {
		return nil
	}
	oi, score, err := classical.Tune(ctx, series, t)
	switch {
	case errors.Is(err, classical.ErrNoOverlays):
		c.Note = fmt.Sprintf("%s: %v", untuned, err)
		return nil
	case err != nil:
		return fmt.Errorf("tune optimal interpolation: %w", err)
	}
	c.LengthKM, c.Days, c.Nugget, c.SigmaScale = oi.LengthKM, oi.Days, oi.Nugget, oi.SigmaScale
	c.Evidence.Overlays, c.Evidence.Pixels, c.Evidence.MSE, c.Evidence.Coverage90 = score.Overlays, score.Pixels, score.MSE, score.Coverage90
	return nil
}

// explain finds out which covariates pay with the scales as they are, and puts the
// drift by them into the series.
func (c *Constants) explain(ctx context.Context, series classical.Series, t classical.Tuning, cfg Config, covariates Covariates) error {
	times := make([]time.Time, len(series.Frames))
	for i, f := range series.Frames {
		times[i] = f.Time
	}
	terms, err := covariates(ctx, times)
	if err != nil {
		return fmt.Errorf("read covariates: %w", err)
	}
	with := covariate.Setting{OI: (&Filler{cfg: cfg}).interpolator(series.Grid, c), Tuning: t}
	found, err := covariate.Choose(ctx, series, terms, covariate.Halves(times, max(cfg.Past(), cfg.Future())), with)
	if err != nil {
		return err
	}
	c.Covariates = &found
	for f, drift := range found.Drift(series, terms) {
		series.Frames[f].Drift = drift
	}
	return nil
}

const untuned = "optimal interpolation has its default scales"

// TunedLater is the note of a field in near real time that is older than every
// tuning of its dataset.
const TunedLater = untuned + ": those of the dataset were tuned on later days, which a near-real-time product must not know of"

// Scaled reports whether the configuration sets a scale, so that nothing is
// tuned: the scales belong together.
func (o OI) Scaled() bool { return o.LengthKM != 0 || o.Days != 0 || o.Nugget != 0 }

// interpolator returns the OI of f for a scene: the defaults for its grid and
// step, the constants of the dataset, and the settings of the config, which win.
func (f *Filler) interpolator(grid field.Grid, c *Constants) classical.OI {
	oi := classical.DefaultOI(grid).OfStep(f.cfg.Step)
	set := f.cfg.OI
	if c != nil && c.Tuned() && !set.Scaled() {
		oi.LengthKM, oi.Days, oi.Nugget, oi.SigmaScale = c.LengthKM, c.Days, c.Nugget, c.SigmaScale
	}
	for dst, v := range map[*float64]float64{&oi.LengthKM: set.LengthKM, &oi.Days: set.Days, &oi.Nugget: set.Nugget} {
		if v != 0 {
			*dst = v
		}
	}
	if set.Neighbours != 0 {
		oi.Neighbours = set.Neighbours
	}
	return oi
}

func observedFrames(s classical.Series) int {
	n := 0
	for _, f := range s.Frames {
		for _, v := range f.Values {
			if v == v {
				n++
				break
			}
		}
	}
	return n
}
