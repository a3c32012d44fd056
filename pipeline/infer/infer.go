package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// Flags of an analysed cell. An observed cell has none.
const (
	Land               byte = 1 << iota // not sea; never filled
	Interpolated                        // the value comes from the method, not from the sensor
	NotReconstructible                  // sea, but nothing is known to fill it from
	Rejected                            // the sensor gave a value that quality control refused
)

// Scene is a granule with what is known around it.
type Scene struct {
	Frames    []field.Field // the granule's own fields, in physical units
	Rejected  []field.Mask  // per frame; nil: none
	History   []field.Field // fields of other granules on the same grid, in any order
	Sea       field.Mask
	Transform field.Transform
}

// Analysis is one frame, complete. Value is in physical units; Sigma, one
// standard deviation, in the space of the transform. Lower and Upper are the 5
// and 95 % quantiles in physical units, nil unless the transform is log10: for
// a symmetric error Sigma says it all. For log10 Value is the median.
// Where nothing was filled, all four are NaN except Value at observed cells.
type Analysis struct {
	Value, Sigma, Lower, Upper []float32
	Flags                      []byte
}

// Filler applies one method.
type Filler struct {
	cfg Config
}

// New returns the Filler that cfg describes.
func New(cfg Config) (*Filler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("fill config: %w", err)
	}
	return &Filler{cfg: cfg}, nil
}

// Name says which method fills, for the product's attributes.
func (f *Filler) Name() string { return f.cfg.Method }

// Fill analyses every frame of s. progress, if not nil, hears how many of all
// steps are done; ctx is looked at between steps.
func (f *Filler) Fill(ctx context.Context, s Scene, progress func(done, total int)) ([]Analysis, error) {
	if progress == nil {
		progress = func(int, int) {}
	}
	series, targets := assemble(s)
	oi, err := f.interpolator(series)
	if err != nil {
		return nil, err
	}
	out := make([]Analysis, len(s.Frames))
	for n, target := range targets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		const steps = 1000 // of a frame's progress; enough for a smooth bar
		within := func(done, total int) { progress(n*steps+done*steps/max(total, 1), len(targets)*steps) }
		window, at := series.Window(target, f.cfg.Past(), f.cfg.Future())
		estimate, err := f.estimate(oi, window, at, within)
		if err != nil && !errors.Is(err, classical.ErrNoObservations) {
			return nil, fmt.Errorf("fill %s: %w", s.Frames[n].Time.Format(time.DateOnly), err)
		}
		out[n] = compose(s, n, estimate)
		progress((n+1)*steps, len(targets)*steps)
	}
	return out, nil
}

// assemble puts the frames of the granule and their neighbours into one series
// in transformed space, and says where the granule's frames are in it. A
// neighbour with the time of one of the granule's own frames is an older
// version of it and is left out.
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

	series := classical.Series{Grid: s.Frames[0].Grid, Sea: s.Sea}
	targets := make([]int, len(s.Frames))
	for at, i := range order {
		values := make([]float32, len(all[i].Values))
		s.Transform.Forward(values, all[i].Values)
		series.Frames = append(series.Frames, classical.Frame{Time: all[i].Time, Values: values})
		if i < len(s.Frames) {
			targets[i] = at
		}
	}
	return series, targets
}

func (f *Filler) estimate(oi classical.OI, s classical.Series, target int, progress func(done, total int)) (classical.Estimate, error) {
	switch f.cfg.Method {
	case "climatology":
		return classical.Climatology(s, target), nil
	case "persistence":
		return classical.Persistence(s, target, f.cfg.Past()), nil
	}
	return oi.Fill(s, target, progress)
}

// quantile90 is the half width of the 90 % interval of a normal distribution
// in standard deviations.
const quantile90 = 1.6448536

// compose joins what was observed with what was estimated.
func compose(s Scene, frame int, e classical.Estimate) Analysis {
	observed := s.Frames[frame]
	n := len(observed.Values)
	a := Analysis{
		Value: make([]float32, n), Sigma: make([]float32, n), Flags: make([]byte, n),
	}
	if s.Transform.Log10 {
		a.Lower, a.Upper = make([]float32, n), make([]float32, n)
	}
	for i := range n {
		a.setGap(i)
		refused := s.Rejected != nil && s.Rejected[frame] != nil && s.Rejected[frame][i]
		switch {
		case observed.Observed(i):
			// Also where the mask says land: masks are coarser than coasts, and
			// what the sensor saw is never thrown away.
			a.Value[i] = observed.Values[i]
			continue
		case s.Sea != nil && !s.Sea[i]:
			a.Flags[i] = Land
			continue
		case refused:
			a.Flags[i] = Rejected
		}
		if e.Mean == nil || !finite(e.Mean[i]) || !finite(e.Sigma[i]) {
			a.Flags[i] |= NotReconstructible
			continue
		}
		a.Flags[i] |= Interpolated
		a.Value[i], a.Sigma[i] = e.Mean[i], e.Sigma[i]
		if s.Transform.Log10 {
			half := quantile90 * e.Sigma[i]
			back := [3]float32{e.Mean[i], e.Mean[i] - half, e.Mean[i] + half}
			s.Transform.Inverse(back[:], back[:])
			a.Value[i], a.Lower[i], a.Upper[i] = back[0], back[1], back[2]
		}
	}
	return a
}

func (a Analysis) setGap(i int) {
	a.Value[i], a.Sigma[i] = field.NaN(), field.NaN()
	if a.Lower != nil {
		a.Lower[i], a.Upper[i] = field.NaN(), field.NaN()
	}
}

func finite(v float32) bool { return v-v == 0 }
