package daemon

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"lacuna/ops/ledger"
	"lacuna/pipeline/finetune"
)

// How drift is measured: of the last month, once a day, when a few days have
// come in. It reads the granules and asks the prior some seconds long.
const (
	driftDays    = 30
	driftApart   = 24 * time.Hour
	driftNewDays = 5
)

// measuredDrift is the last measurement, as it is kept.
type measuredDrift struct {
	At       time.Time `json:"at"`
	Granules int       `json:"granules"` // that were there
	Champion string    `json:"champion"` // that was measured against
	finetune.Drift
}

// drift returns how far recent days have moved from those of the champion: what
// is kept while it is fresh, else a new measurement. One that fails is told and
// is as good as none: the other triggers do not depend on it.
func (s *trainStage) drift(ctx context.Context, champion string, data []string) finetune.Drift {
	var kept measuredDrift
	known, err := loadJSON(s.path("drift.json"), &kept)
	fresh := known && err == nil && kept.Champion == champion
	if fresh && (s.now().Sub(kept.At) < driftApart || len(data) < kept.Granules+driftNewDays) {
		return kept.Drift
	}
	s.say("comparing recent days with those that the model was trained on")
	recent := data[max(0, len(data)-driftDays):]
	argv := slices.Concat(s.program, []string{"drift", "--store", s.cfg.Store, "--dataset", s.set.Name, "--engine", s.cfg.Engine}, s.reading(recent))
	last, err := s.child.run(ctx, argv, os.Stderr, nil)
	if ctx.Err() != nil {
		return kept.Drift
	}
	if err != nil {
		s.log.Warn("drift not measured", "err", err, "retry_in", driftApart)
	}
	kept = measuredDrift{At: s.now(), Granules: len(data), Champion: champion}
	if last.Drift != nil {
		kept.Drift = *last.Drift
		s.log.Info("drift measured", "masks", told(kept.Masks), "values", told(kept.Values))
	}
	if err := saveJSON(s.path("drift.json"), kept); err != nil {
		s.log.Warn("drift not kept", "err", err)
	}
	return kept.Drift
}

// told formats a number that may not be known.
func told(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// skillLoss returns what recent products have lost.
func (s *trainStage) skillLoss(ctx context.Context) (*float64, error) {
	days, err := s.book.Skills(ctx, ledger.SkillQuery{Dataset: s.set.Name, Kind: ledger.Overlay, Limit: recentDays + referenceDays})
	if err != nil {
		return nil, fmt.Errorf("skill of recent products: %w", err)
	}
	return skillLoss(days), nil
}

// skillLoss returns by how much the error of recent days lies above that of the
// days before, less one; nil where chance explains it, or nothing is known.
func skillLoss(days []ledger.Skill) *float64 {
	news := SkillDrift(days)
	if news.Sigmas <= driftSigmas || !(news.Before > 0) {
		return nil
	}
	loss := news.Recent/news.Before - 1
	return &loss
}

// reading returns the arguments that say how granules are read: as the dataset
// is filled, or a model would learn other values than it is to fill.
func (s *trainStage) reading(data []string) []string {
	args := []string{"--mask", s.set.SeaMask}
	for _, f := range []struct{ flag, value string }{
		{"--var", s.set.Variable}, {"--product", s.set.Product}, {"--transform", s.set.Transform},
	} {
		if f.value != "" {
			args = append(args, f.flag, f.value)
		}
	}
	if r := s.set.Range; r != nil {
		args = append(args, "--valid-range", fmt.Sprintf("%v,%v", r[0], r[1]))
	}
	for _, rule := range s.set.Quality {
		args = append(args, "--quality", rule)
	}
	for _, path := range data {
		args = append(args, "--data", path)
	}
	return args
}
