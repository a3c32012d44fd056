package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Flags of an analysed cell. An observed cell has none of the first four.
const (
	Land               byte = 1 << iota // not sea; never filled
	Interpolated                        // the value comes from the method, not from the sensor
	NotReconstructible                  // sea, but nothing is known to fill it from
	Rejected                            // the sensor gave a value that quality control refused
	OwnError                            // observed, and sigma is the error that comes with the observation
)

// NeverObserved flags a cell of the sea that none of the known days shows: what
// fills it comes from other places only.
const NeverObserved byte = 1 << 5

// SeaIce flags a cell of the sea that is under ice. Where ice is not filled it has
// no value, and is flagged as NotReconstructible too.
const SeaIce byte = 1 << 6

// Observed reports whether a cell with these flags has the value of the sensor.
func Observed(flags byte) bool {
	return flags&(Land|Interpolated|NotReconstructible|Rejected) == 0
}

// Scene is a granule with its neighbouring days.
type Scene struct {
	Frames   []field.Field // the granule's own fields, in physical units
	Rejected []field.Mask  // per frame; nil: nothing was rejected
	Errors   [][]float32   // per frame: standard error of each observation in the space of Transform, NaN where unknown; nil: none is known
	History  []field.Field // fields of other granules on the same grid, in any order
	// Spend says that nobody reads History afterwards: it is worked on where it lies,
	// which spares a second one.
	Spend bool
	Sea   field.Mask
	// Seen are the cells that were observed on any day known of the dataset, beside
	// those of Frames and History; nil: too few days are known to tell, and no cell
	// is flagged as NeverObserved.
	Seen field.Mask
	// Ice are the cells under ice, per frame; nil: not known. With FillIce they are
	// only flagged; else they have no value, and no method sees water there.
	Ice       []field.Mask
	FillIce   bool
	Transform field.Transform
	// Scaling is that of the dataset, for a model that was trained elsewhere
	// (samples.LearnScaling); nil: the model's own. Other methods ignore it.
	Scaling *samples.Scaling
	// Widening comes from days of the dataset that were filled by the same method
	// and scored, all before this one. The zero value: from none.
	Widening skill.Widening
	// Constants are those of the dataset, for the method oi (Tune) and for the analysis
	// of a model that was trained elsewhere; nil: the defaults. Other methods, and a
	// model of the dataset's own, ignore them.
	Constants *Constants
	// Drift is the part of Frames and History that covariates explain, for optimal
	// interpolation wherever Constants are used; nil: there are no covariates, or none
	// that pays.
	Drift []Drift
	// Covariates are the maps of other variables for Frames, for a model that was trained
	// with them; those that it does not know are ignored, and those that are not there are
	// missing. In near real time none may be of a later date.
	Covariates []Covariate
	// Trust says how far a model is followed; nil: all the way.
	Trust *Trust
	// Centre is the mean to publish where the tier has two, by the scored days of
	// the dataset; empty: the one that scored better when the model was made.
	Centre impute.Centre
}

// A Drift is the part of the field of a time that covariates explain, on its grid and
// in the space of the transform.
type Drift struct {
	Time   time.Time
	Values []float32
}

// A Covariate is a map of another variable for the field of a time, on its grid; NaN where
// it is missing.
type Covariate struct {
	Time        time.Time
	Name, Units string
	Values      []float32
}

// driftOf returns the drift of a time; nil: it has none.
func (s Scene) driftOf(at time.Time) []float32 {
	for _, d := range s.Drift {
		if d.Time.Equal(at) {
			return d.Values
		}
	}
	return nil
}

// Analysis is one frame, complete. Value is in physical units; Sigma, one
// standard deviation, in the space of the transform. Lower and Upper are the 5
// and 95 % quantiles in physical units, nil unless the transform is log10: a
// symmetric error is fully described by Sigma. For log10 Value is the median.
// At an observed cell Sigma is the error that comes with the observation, or
// else the noise that the method fitted. Where there is no value, all four are
// NaN.
type Analysis struct {
	Value, Sigma, Lower, Upper []float32
	Flags                      []byte

	// Own is Sigma as the method has it by itself, before the scene's widening, for
	// scoring; nil: it is Sigma.
	Own []float32
	// Apart is what Trust.Apart asks for; else nil.
	Apart *Apart

	// Members are equally likely complete fields in physical units, with the
	// observations where there are any, NaN where Value is. Nil if none were
	// drawn.
	Members [][]float32
	Details *Details // nil: not requested
	Note    string   // why the analysis is poorer than it could be, for people; empty: it is not

	// Set by the method model only.
	Sampling Sampling
	Took     Timing // time by stage
	Means    *Means // both, to be scored; nil: there is one only
}

// Filler applies one method.
type Filler struct {
	cfg   Config
	model *Model // nil unless the method is model
	now   func() time.Time
}

// New returns the Filler that cfg describes. The method model needs a model,
// the others take none.
func New(cfg Config, model *Model) (*Filler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("fill config: %w", err)
	}
	if cfg.Method == MethodAuto {
		return nil, fmt.Errorf("fill config: method is %q: choose the method before making a Filler", MethodAuto)
	}
	if (cfg.Method == MethodModel) != (model != nil) {
		return nil, fmt.Errorf("fill config: method is %q: pass a model exactly if the method is %q", cfg.Method, MethodModel)
	}
	return &Filler{cfg: cfg, model: model, now: time.Now}, nil
}

// Fill analyses every frame of s. progress, if not nil, is called with the
// steps done and their total; ctx is checked between steps.
func (f *Filler) Fill(ctx context.Context, s Scene, progress func(done, total int)) ([]Analysis, error) {
	if progress == nil {
		progress = func(int, int) {}
	}
	if f.model != nil {
		if err := f.model.fits(s); err != nil {
			return nil, err
		}
	}
	s.Seen = f.seen(s)
	series, targets := assemble(s)
	s.History = nil // series has it: where the caller lets go of it too, its memory is free
	oi, note := f.interpolator(series.Grid, s.Constants), ""
	if (f.cfg.Method == "oi" || s.Trust != nil) && s.Constants != nil {
		note = s.Constants.Note
	}
	out := make([]Analysis, len(s.Frames))
	for n, target := range targets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		const steps = 1000 // progress steps of a frame; enough for a smooth bar
		within := func(done, total int) { progress(n*steps+done*steps/max(total, 1), len(targets)*steps) }
		window, at := f.cfg.window(series, target)
		window.Sea = s.openSea(n, window.Sea)
		again := f.cfg.Quality.Observed == Blend || f.cfg.Quality.Observed == Denoise
		weak := f.weak(window, at)
		last := n == len(targets)-1 && !again && weak == nil && f.cfg.Members == 0 && !f.cfg.Details
		if last {
			series.Frames = nil // window has what is left to look at, and may let go of it
		}
		seen := view{Series: window, target: at, oi: oi, scale: s.Scaling, tuned: s.Constants, wide: s.Widening, trust: s.Trust, centre: s.Centre, covariates: s.Covariates, last: last}
		filled, err := f.withMembers(ctx, seen, within)
		if err != nil && !errors.Is(err, classical.ErrNoObservations) {
			return nil, fmt.Errorf("fill %s: %w", s.Frames[n].Time.Format(time.DateOnly), err)
		}
		out[n] = compose(s, n, filled)
		out[n].Sampling, out[n].Took, out[n].Note, out[n].Own = filled.sampling, filled.took, note, filled.own
		out[n].Apart, out[n].Means = filled.apart, filled.means
		out[n].Members = physical(s, out[n], filled.members)
		if f.cfg.Details {
			out[n].Details = detail(window, at, f.cfg.Step)
			out[n].Details.Reliability = filled.reliability
		}
		if err == nil && (again || weak != nil) {
			if err := f.reconsider(ctx, seen, s, n, weak, &out[n]); err != nil {
				return nil, fmt.Errorf("reconsider the observations of %s: %w", s.Frames[n].Time.Format(time.DateOnly), err)
			}
		}
		progress((n+1)*steps, len(targets)*steps)
	}
	return out, nil
}

// assemble puts the frames of the granule and their neighbours into one series
// in transformed space, and returns the indices of the granule's frames. A
// neighbour with the time of one of the granule's own frames is an older
// version of it and is left out. The values of a history that may be spent become those
// of the series.
func assemble(s Scene) (classical.Series, []int) {
	all := slices.Clone(s.Frames)
	for _, h := range s.History {
		same := func(f field.Field) bool { return f.Time.Equal(h.Time) }
		if !slices.ContainsFunc(s.Frames, same) {
			all = append(all, h)
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return all[a].Time.Compare(all[b].Time) })

	series := classical.Series{Grid: s.Frames[0].Grid, Sea: s.Sea, Frames: make([]classical.Frame, len(all))}
	targets := make([]int, len(s.Frames))
	each(len(order), func(at int) {
		i := order[at]
		values := all[i].Values
		if own := i < len(s.Frames); own || !s.Spend {
			values = make([]float32, len(values))
		}
		s.Transform.Forward(values, all[i].Values)
		series.Frames[at] = classical.Frame{Time: all[i].Time, Values: values, Errors: all[i].Errors, Drift: s.driftOf(all[i].Time)}
		if i < len(s.Frames) {
			targets[i] = at
		}
	})
	return series, targets
}

// A view is a frame of a series with the neighbours of its window.
type view struct {
	classical.Series
	target int
	oi     classical.OI // settings of the method oi
	scale  *samples.Scaling
	tuned  *Constants // of the dataset
	wide   skill.Widening
	trust  *Trust
	centre impute.Centre
	// covariates are those of the scene.
	covariates []Covariate
	last       bool // the series is not used afterwards but for the target: it may be overwritten and let go of
}

// fill applies the method and the widening to a frame.
func (f *Filler) fill(ctx context.Context, v view, progress func(done, total int)) (filling, error) {
	if f.cfg.Method == MethodModel && !v.trust.full() {
		return f.follow(ctx, v, progress)
	}
	return f.widened(ctx, v, f.cfg.Method, v.wide, progress)
}

// widened applies a method with its widening.
func (f *Filler) widened(ctx context.Context, v view, method string, wide skill.Widening, progress func(done, total int)) (filling, error) {
	out, err := f.apply(ctx, v, method, progress)
	if err == nil && (out.familiar != nil || wide.Days > 0) {
		out.widen(wide, distancesFrom(v.Series, v.target))
	}
	return out, err
}

func (f *Filler) apply(ctx context.Context, v view, method string, progress func(done, total int)) (out filling, err error) {
	switch method {
	case MethodModel:
		return f.model.fill(ctx, v.Series, v.target, fillOptions{cfg: f.cfg, now: f.now, progress: progress, scaling: v.scale, constants: v.tuned, centre: v.centre, covariates: v.covariates, last: v.last})
	case "climatology":
		out.estimate = classical.Climatology(v.Series, v.target)
		return out, nil // its sigma is the spread of the variable, and says nothing of the noise
	case "persistence":
		out.estimate = classical.Persistence(v.Series, v.target, f.cfg.Past())
	default:
		out.estimate, err = v.oi.FillContext(ctx, v.Series, v.target, progress)
	}
	out.noise = out.estimate.Sigma
	if out.estimate.Expected != nil { // gaps say how far estimates are off, and nothing of observations
		out.noise = out.estimate.Expected
	}
	return out, err
}

// openSea returns a sea mask less the ice of a frame that is not filled.
func (s Scene) openSea(frame int, sea field.Mask) field.Mask {
	if s.Ice == nil || s.FillIce {
		return sea
	}
	open := make(field.Mask, len(s.Ice[frame]))
	for i, ice := range s.Ice[frame] {
		open[i] = !ice && (sea == nil || sea[i])
	}
	return open
}

// physical returns members in physical units: the observation where there is
// one, NaN where the analysis has no value.
func physical(s Scene, a Analysis, members [][]float32) [][]float32 {
	each(len(members), func(k int) {
		x := members[k]
		s.Transform.Inverse(x, x)
		for i, flags := range a.Flags {
			if flags&Interpolated == 0 {
				x[i] = a.Value[i]
			}
		}
	})
	return members
}

// quantile90 is the half width of the 90 % interval of a normal distribution
// in standard deviations.
const quantile90 = 1.6448536

// compose joins observations and estimates into an analysis.
func compose(s Scene, frame int, filled filling) Analysis {
	observed, e := s.Frames[frame], filled.estimate
	n := len(observed.Values)
	a := Analysis{
		Value: make([]float32, n), Sigma: make([]float32, n), Flags: make([]byte, n),
	}
	if s.Transform.Log10 {
		a.Lower, a.Upper = make([]float32, n), make([]float32, n)
	}
	errorOf := observationError(s, frame, filled.noise)
	eachCell(n, func(i int) {
		a.setGap(i)
		ice := s.Ice != nil && s.Ice[frame][i]
		refused := s.Rejected != nil && s.Rejected[frame] != nil && s.Rejected[frame][i]
		switch {
		case observed.Observed(i):
			// Also where the mask says land: masks are coarser than coasts, and
			// an observation is never thrown away.
			sigma, own := errorOf(i)
			a.setObserved(i, s.Transform, observed.Values[i], sigma)
			if own {
				a.Flags[i] = OwnError
			}
			if ice {
				a.Flags[i] |= SeaIce
			}
			return
		case s.Sea != nil && !s.Sea[i]:
			a.Flags[i] = Land
			return
		case refused:
			a.Flags[i] = Rejected
		}
		if s.Seen != nil && !s.Seen[i] {
			a.Flags[i] |= NeverObserved
		}
		if ice {
			a.Flags[i] |= SeaIce
		}
		if ice && !s.FillIce || e.Mean == nil || !finite(e.Mean[i]) || !finite(e.Sigma[i]) {
			a.Flags[i] |= NotReconstructible
			return
		}
		a.Flags[i] |= Interpolated
		a.set(i, s.Transform, e.Mean[i], e.Sigma[i])
	})
	return a
}

// set fills a cell with an estimate in the space of the transform, whose mean
// becomes the median in physical units.
func (a Analysis) set(i int, tr field.Transform, mean, sigma float32) {
	a.Value[i], a.Sigma[i] = mean, sigma
	if !tr.Log10 {
		return
	}
	half := quantile90 * sigma
	back := [3]float32{mean, mean - half, mean + half}
	tr.Inverse(back[:], back[:])
	a.Value[i], a.Lower[i], a.Upper[i] = back[0], back[1], back[2]
}

func (a Analysis) setGap(i int) {
	a.Value[i], a.Sigma[i] = field.NaN(), field.NaN()
	if a.Lower != nil {
		a.Lower[i], a.Upper[i] = field.NaN(), field.NaN()
	}
}

func finite(v float32) bool { return v-v == 0 }
