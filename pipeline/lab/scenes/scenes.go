// Package scenes scores whole scenes at their native resolution: by distance to
// the nearest observation, up to hundreds of kilometres, and with the published
// intervals.
//
// The protocol is that of the tables, on whole grids instead of windows: the
// real gaps of one held-out day are laid over another, and the hidden cells are
// filled from the visible ones and the days around, and compared. Every scene is
// filled a second time by optimal interpolation. Calibrated scores are of scenes
// that the calibration has not seen: one half of the scenes corrects the other.
//
// Package scenes trains nothing, reads no file and opens no engine. Hidden cells
// lay under a clear sky: the scores hold for true gaps as far as clear and
// cloudy sea are alike.
package scenes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// Config holds the choice of scenes and the classes of distance.
type Config struct {
	Scenes    int  // most scenes, spread evenly over the days; 0: all
	AllDays   bool // judge all days: none was used for training
	MinCells  int  // least number of visible and of hidden cells
	ApartDays int  // least distance between a day and the day that lends its gaps
	Seed      uint64
	EdgesKM   []float64 // upper ends of the classes of distance

	Calendar samples.Calendar // roles of dates; empty: made of the days
	Seen     []samples.Seen   // days that the model knows: it is not judged on them
}

// DefaultConfig returns a judgement of some minutes on two cores where a scene
// has a hundred thousand cells.
func DefaultConfig() Config {
	return Config{
		Scenes: 40, MinCells: 200, ApartDays: 2, Seed: 1,
		EdgesKM: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500},
	}
}

// A Subject is a method on a series, to be judged.
type Subject struct {
	Series samples.Series
	Fill   infer.Config
	Model  *infer.Model // nil unless the method is model
}

// A scene is a day under the gaps of another.
type scene struct {
	infer.Scene
	truth  []float32 // true values in the space of the transform
	scored []bool
	number int
}

// ErrNoScenes marks a series of which no scene can be made.
var ErrNoScenes = errors.New("no day has enough cells both visible and hidden under the gaps of another")

// Judge fills scenes of the series and scores them.
func (c Config) Judge(ctx context.Context, sub Subject, progress func(done, total int)) (Report, error) {
	sub.Fill.Details = true // has the distances
	by, err := infer.New(sub.Fill, sub.Model)
	if err != nil {
		return Report{}, err
	}
	interpolation, err := infer.New(interpolate(sub.Series.Grid, sub.Fill), nil)
	if err != nil {
		return Report{}, err
	}
	list, unit, err := c.scenes(sub)
	if err != nil {
		return Report{}, err
	}
	r := newReport(c, sub.Series, unit)
	for i, sc := range list {
		if err := r.add(ctx, sc, by, interpolation); err != nil {
			return Report{}, err
		}
		progress(i+1, len(list))
	}
	return r.finish()
}

// scenes returns the scenes with the days around them, and the standard
// deviation that errors are measured in.
func (c Config) scenes(sub Subject) ([]scene, float64, error) {
	s := sub.Series
	targets, scaling, err := c.targets(s)
	if err != nil {
		return nil, 0, err
	}
	list := c.lay(s, targets)
	if len(list) == 0 {
		return nil, 0, fmt.Errorf("%w: %d days were tried", ErrNoScenes, len(targets))
	}
	unit := spreadOf(s)
	if scaling != nil {
		unit = scaling.Std
	}
	for i := range list {
		list[i].surround(sub, scaling)
	}
	return list, unit, nil
}

// surround adds the days of the window and the scaling.
func (sc *scene) surround(sub Subject, scaling *samples.Scaling) {
	now := sc.Frames[0].Time
	for _, d := range sub.Series.Days {
		if after := d.Time.Sub(now); after != 0 && after >= -sub.Fill.Past() && after <= sub.Fill.Future() {
			sc.History = append(sc.History, physicalField(sub.Series, d))
		}
	}
	if sub.Model != nil {
		sc.Scaling = scaling
	}
}

// targets returns the days that may be judged, and the scaling of the days
// of the training.
func (c Config) targets(s samples.Series) ([]int, *samples.Scaling, error) {
	if c.AllDays {
		days := make([]int, len(s.Days))
		for i := range days {
			days[i] = i
		}
		return days, nil, nil
	}
	calendar := samples.Extend(c.Calendar, s.Days, samples.DefaultSplit())
	sides, err := samples.Assign([]samples.Series{s}, []samples.Calendar{calendar}, c.Seen)
	if err != nil {
		return nil, nil, err
	}
	scaling := sides.Train.Scaling()
	side := max(s.Grid.Height(), s.Grid.Width())
	var days []int
	for _, r := range sides.Judge.Refs(side, side, 2*c.MinCells) {
		days = append(days, r.Day)
	}
	return days, &scaling, nil
}

// lay returns the scenes, one a day where another day's gaps leave enough.
func (c Config) lay(s samples.Series, targets []int) []scene {
	stream := noise.New(c.Seed, "scenes")
	var out []scene
	for n, day := range targets {
		for _, k := range stream.Rand(uint64(n)).Perm(len(targets)) {
			apart := s.Days[day].Time.Sub(s.Days[targets[k]].Time).Hours() / 24
			if math.Abs(apart) < float64(c.ApartDays) {
				continue
			}
			if sc, ok := c.overlay(s, day, targets[k]); ok {
				sc.number = len(out)
				out = append(out, sc)
				break
			}
		}
	}
	if c.Scenes == 0 || len(out) <= c.Scenes {
		return out
	}
	some := make([]scene, c.Scenes)
	for i := range some {
		some[i] = out[i*len(out)/c.Scenes]
		some[i].number = i
	}
	return some
}

// overlay lays the gaps of one day over another.
func (c Config) overlay(s samples.Series, day, gapsOf int) (scene, bool) {
	truth := s.Days[day].Values
	visible := samples.Day{Time: s.Days[day].Time, Values: slices.Repeat([]float32{field.NaN()}, len(truth))}
	sc := scene{truth: truth, scored: make([]bool, len(truth))}
	seen, hidden := 0, 0
	for i, v := range truth {
		other := s.Days[gapsOf].Values[i]
		switch {
		case v != v: // NaN
		case other == other:
			visible.Values[i] = v
			seen++
		default:
			sc.scored[i] = true
			hidden++
		}
	}
	sc.Scene = infer.Scene{Frames: []field.Field{physicalField(s, visible)}, Sea: s.Sea, Transform: s.Transform}
	return sc, seen >= c.MinCells && hidden >= c.MinCells
}

// physicalField returns a day as a scene takes it.
func physicalField(s samples.Series, d samples.Day) field.Field {
	values := make([]float32, len(d.Values))
	s.Transform.Inverse(values, d.Values)
	return field.Field{Grid: s.Grid, Time: d.Time, Values: values, Sea: s.Sea}
}

// interpolate returns the config of optimal interpolation with the same days
// and the default scales of the grid, which are not tuned.
func interpolate(g field.Grid, fill infer.Config) infer.Config {
	oi := classical.DefaultOI(g)
	fill.Method, fill.Network, fill.Details = "oi", infer.Network{}, true
	fill.OI = infer.OI{LengthKM: oi.LengthKM, Days: oi.Days, Nugget: oi.Nugget}
	return fill
}

func spreadOf(s samples.Series) float64 {
	values := make([][]float32, len(s.Days))
	for i, d := range s.Days {
		values[i] = d.Values
	}
	return field.Summarise(values...).Std
}

// caseOf returns a scored cell as a case for calibration.
func caseOf(miss, sigma float32, km, stepKM float64) impute.Case {
	return impute.Case{Error: miss, Sigma: sigma, DistanceCells: float32(km / stepKM)}
}
