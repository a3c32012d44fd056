package infer

import (
	"context"
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
// the others are tuned if the series is long enough.
func (f *Filler) interpolator(ctx context.Context, s classical.Series) (classical.OI, error) {
	oi := classical.DefaultOI(s.Grid)
	if f.cfg.Method != "oi" {
		return oi, nil
	}
	set := f.cfg.OI
	if set.LengthKM == 0 && set.Days == 0 && set.Nugget == 0 && observedFrames(s) >= tuneFrames {
		t := classical.DefaultTuning()
		t.Start, t.Past, t.Future = oi, f.cfg.Past(), f.cfg.Future()
		t.Overlays = tuneOverlays
		tuned, _, err := classical.Tune(ctx, s, t)
		if err != nil {
			return oi, fmt.Errorf("tune optimal interpolation: %w", err)
		}
		oi = tuned
	}
	for dst, v := range map[*float64]float64{&oi.LengthKM: set.LengthKM, &oi.Days: set.Days, &oi.Nugget: set.Nugget} {
		if v != 0 {
			*dst = v
		}
	}
	if set.Neighbours != 0 {
		oi.Neighbours = set.Neighbours
	}
	return oi, nil
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
