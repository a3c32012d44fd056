package seas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"lacuna/internal/durable"
	"lacuna/pipeline/classical"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/version"
)

// tune gives each sea the constants of optimal interpolation that a service of it
// would have: tuned on its own learn days, where they are better on its own choose
// days beyond chance, else the defaults. Networks depart from analyses with them, and
// are judged against them.
func (l *lab) tune(ctx context.Context) error {
	for _, s := range l.seas {
		if !s.teaches() {
			continue
		}
		name, err := keyOf("constants", s.name, l.names[s], l.cfg.Side, l.choosing)
		if err != nil {
			return err
		}
		path := filepath.Join(l.work, "constants-"+name+".json")
		data, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if s.constants, err = l.tuned(ctx, s); err != nil {
				return fmt.Errorf("tune optimal interpolation on %s: %w", s.name, err)
			}
			if data, err = json.Marshal(s.constants); err == nil {
				err = durable.WriteFile(path, data, 0o644)
			}
		case err == nil:
			err = json.Unmarshal(data, &s.constants)
		}
		if err != nil {
			return err
		}
		l.log.Info("constants", "sea", s.name, "tuned", s.constants != nil, "constants", s.constants)
	}
	return l.analyse()
}

// tuned returns the constants of a sea, nil for the defaults.
func (l *lab) tuned(ctx context.Context, s *sea) (*parts.Constants, error) {
	place := slices.Index(l.train.Places(), s.place)
	oi, _, err := version.TuneInterpolation(ctx, l.train, place, s.refs, impute.Past, version.TuningWindows, noise.New(1, "interpolation"))
	if errors.Is(err, classical.ErrNoOverlays) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	overlays, err := overlaysOf(s.choose, l.cfg.Side, l.choosing)
	if errors.Is(err, samples.ErrNoOverlays) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	x, err := evaluate.NewExam(s.choose, impute.Surroundings{Days: s.choose}, overlays, impute.Past)
	if err != nil {
		return nil, err
	}
	x.Blocks(blocksOf(overlays).BlockDays)
	c := parts.Constants{LengthKM: oi.LengthKM, Days: oi.Days, Nugget: oi.Nugget}
	before, err := x.Judge(ctx, x.Interpolation(), nil, nil)
	if err != nil {
		return nil, err
	}
	after, err := x.Judge(ctx, x.InterpolationBy(func(_ int, oi classical.OI) classical.OI { return c.Of(oi) }), nil, nil)
	if err != nil {
		return nil, err
	}
	if d, _, err := after.Against(before); err != nil || d.Interval.High >= 0 {
		return nil, nil // too few days to tell, or no better
	}
	return &c, nil
}

// settings returns optimal interpolation with the constants of the sea.
func (s *sea) settings(oi classical.OI) classical.OI {
	if s.constants == nil {
		return oi
	}
	return s.constants.Of(oi)
}
