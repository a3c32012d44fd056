package infer

import (
	"context"
	"errors"
	"fmt"

	"lacuna/pipeline/classical"
)

// tuneFrames is the number of observed days from which on tuned scales are
// better than the defaults: fewer give overlays of one weather.
const tuneFrames = 15

// tuneOverlays is half the number that settles a comparison of methods: enough
// to place three scales, in half the time.
const tuneOverlays = 60

// interpolator returns the OI of f for a series. Settings of the config win;
// the others are tuned if the series is long enough. Where it cannot be tuned
// the defaults serve, and note says why: an hourly series, or a small sea under
// clouds, may never have two days that fit over one another.
func (f *Filler) interpolator(ctx context.Context, s classical.Series) (oi classical.OI, note string, err error) {
	oi = classical.DefaultOI(s.Grid)
	if f.cfg.Method != "oi" {
		return oi, "", nil
	}
	set := f.cfg.OI
	if set.LengthKM == 0 && set.Days == 0 && set.Nugget == 0 && observedFrames(s) >= tuneFrames {
		t := classical.DefaultTuning()
		t.Start, t.Past, t.Future = oi, f.cfg.Past(), f.cfg.Future()
		t.Overlays = tuneOverlays
		tuned, _, err := classical.Tune(ctx, s, t)
		switch {
		case errors.Is(err, classical.ErrNoOverlays):
			note = fmt.Sprintf("optimal interpolation has its default scales: %v", err)
		case err != nil:
			return oi, "", fmt.Errorf("tune optimal interpolation: %w", err)
		default:
			oi = tuned
		}
	}
	for dst, v := range map[*float64]float64{&oi.LengthKM: set.LengthKM, &oi.Days: set.Days, &oi.Nugget: set.Nugget} {
		if v != 0 {
			*dst = v
		}
	}
	if set.Neighbours != 0 {
		oi.Neighbours = set.Neighbours
	}
	return oi, note, nil
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
