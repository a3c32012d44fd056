package retrain

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"lacuna/daemon/state"
	"lacuna/pipeline/version"
)

// Drift is measured over the last month, once a day, after a few new days. That
// reads the granules and runs the prior for some seconds.
const (
	driftDays    = 30
	driftApart   = 24 * time.Hour
	driftNewDays = 5
)

// measuredDrift is the last measurement, as it is kept.
type measuredDrift struct {
	At       time.Time `json:"at"`
	Granules int       `json:"granules"` // granules at the time
	Champion string    `json:"champion"` // version that days were compared with
	version.Drift
}

// drift returns the drift of recent days from those of the champion: the kept
// measurement while it is fresh, else a new one. One that fails is logged and
// counts as unknown: the other triggers do not depend on it.
func (s *Scheduler) drift(ctx context.Context, champion string, data []string) version.Drift {
	var kept measuredDrift
	known, err := state.Load(s.path(driftFile), &kept)
	fresh := known && err == nil && kept.Champion == champion
	if fresh && (s.Now().Sub(kept.At) < driftApart || len(data) < kept.Granules+driftNewDays) {
		return kept.Drift
	}
	recent := data[max(0, len(data)-driftDays):]
	argv := slices.Concat(s.Program, []string{"drift", "--store", s.Config.Store, "--dataset", s.Dataset.Name, "--engine", s.Config.Engine}, s.reading(recent))
	last, err := s.child.Run(ctx, argv, os.Stderr, nil)
	if ctx.Err() != nil {
		return kept.Drift
	}
	if err != nil {
		s.Log.Warn("drift not measured", "err", err, "retry_in", driftApart)
	}
	kept = measuredDrift{At: s.Now(), Granules: len(data), Champion: champion}
	if last.Drift != nil {
		kept.Drift = *last.Drift
		s.Log.Info("drift measured", "masks", orUnknown(kept.Masks), "values", orUnknown(kept.Values))
	}
	if err := state.Save(s.path(driftFile), kept); err != nil {
		s.Log.Warn("drift not kept", "err", err)
	}
	return kept.Drift
}

// orUnknown formats a number that may not be known.
func orUnknown(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// reading returns the arguments for reading granules: the same as for filling,
// or a model would learn other values than it fills.
func (s *Scheduler) reading(data []string) []string {
	args := []string{"--mask", s.Dataset.SeaMask}
	for _, f := range []struct{ flag, value string }{
		{"--var", s.Dataset.Variable}, {"--product", s.Dataset.Product}, {"--transform", s.Dataset.Transform}, {"--tests", s.Dataset.Tests.String()},
	} {
		if f.value != "" {
			args = append(args, f.flag, f.value)
		}
	}
	if r := s.Dataset.Range; r != nil {
		args = append(args, "--valid-range", fmt.Sprintf("%v,%v", r[0], r[1]))
	}
	if ice := s.Dataset.SeaIce; ice.Any() && !ice.Fill {
		args = append(args, "--sea-ice", ice.From, "--sea-ice-above", fmt.Sprint(ice.Above))
		if ice.Variable != "" {
			args = append(args, "--sea-ice-var", ice.Variable)
		}
	}
	for _, rule := range s.Dataset.Quality {
		args = append(args, "--quality", rule)
	}
	for _, path := range data {
		args = append(args, "--data", path)
	}
	return args
}
