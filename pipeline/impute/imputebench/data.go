package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
)

// bench is what experiments share.
type bench struct {
	options
	log    *slog.Logger
	began  time.Time
	engine *engine.Engine
	shop   *impute.Workshop
	small  *impute.Workshop // for a few members at a time

	material impute.Material
	held     samples.HeldOut
	around   impute.Surroundings // of held-out days
	overlays []samples.Overlay
	oi       classical.OI
	perPatch int // of the experiment at hand
	priors   *prior.Model
	sea      *evaluate.GaussianSea // nil: the data are none
}

// load reads the series, lays the overlays and makes the backgrounds that any
// experiment asks for.
func (b *bench) load(ctx context.Context, list []experiment) error {
	series, err := b.series()
	if err != nil {
		return err
	}
	if b.material.Train, b.held, err = series.Split(samples.DefaultSplit()); err != nil {
		return err
	}
	cfg := samples.DefaultOverlays(b.side)
	cfg.Count = b.options.overlays
	if b.overlays, err = b.held.Overlays(cfg); err != nil {
		return err
	}
	b.oi = b.settings(series.Grid)
	b.material.Analyser = impute.OI{Days: b.material.Train, Settings: impute.QuickOI(b.oi)}
	b.around = impute.Surroundings{Days: b.held, Analyser: impute.OI{Days: b.held, Settings: impute.QuickOI(b.oi)}}
	if !slices.ContainsFunc(list, func(e experiment) bool { return e.Train.Design.Extras.Background && e.Method != "oi" }) {
		return nil
	}
	return b.loadBackgrounds(ctx)
}

// settings returns the optimal interpolation of all experiments: what the
// options say, else the default for the grid.
func (b *bench) settings(g field.Grid) classical.OI {
	oi := classical.DefaultOI(g)
	if b.oiKM > 0 {
		oi.LengthKM = b.oiKM
	}
	if b.oiDays > 0 {
		oi.Days = b.oiDays
	}
	if b.oiNugget > 0 {
		oi.Nugget = b.oiNugget
	}
	return oi
}

// series reads the data, or makes the Gaussian sea.
func (b *bench) series() (samples.Series, error) {
	if b.gaussianDays > 0 {
		b.sea = evaluate.NewGaussianSea(b.side)
		return b.sea.Series(b.gaussianDays)
	}
	f, err := os.Open(b.data)
	if err != nil {
		return samples.Series{}, err
	}
	defer func() { _ = f.Close() }() // only read
	s, err := pack.Read(f)
	if err != nil {
		return samples.Series{}, fmt.Errorf("read %s: %w", b.data, err)
	}
	return s, nil
}

// How many days the backgrounds look back and ahead; as far as the composites.
const (
	pastDays   = samples.LastDays
	futureDays = samples.NextDays
)

func (b *bench) loadBackgrounds(ctx context.Context) error {
	began := time.Now()
	oi := b.oi
	oi.Block, oi.Workers = b.oiBlock, 1
	trainDays := make([]int, b.material.Train.Days())
	for i := range trainDays {
		trainDays[i] = i
	}
	heldDays := map[int]bool{}
	for _, o := range b.overlays {
		heldDays[o.Day] = true
	}
	judged := slices.Sorted(maps.Keys(heldDays))
	for _, part := range []struct {
		name   string
		from   pack.Side
		days   []int
		future int
		to     *impute.Backgrounds
	}{
		{"train-past", b.material.Train, trainDays, 0, &b.material.Past},
		{"train-delayed", b.material.Train, trainDays, futureDays, &b.material.Delayed},
		{"held-past", b.held, judged, 0, &b.around.Past},
		{"held-delayed", b.held, judged, futureDays, &b.around.Delayed},
	} {
		days := fnv.New32a()
		fmt.Fprint(days, part.days)
		key := fmt.Sprintf("%s-%s-%d-%d-%x", filepath.Base(b.data), part.name, part.future, b.oiBlock, days.Sum32())
		cfg := samples.BackgroundConfig{PastDays: pastDays, FutureDays: part.future, OI: oi, Workers: b.workers}
		kept, err := pack.KeepBackgrounds(ctx, filepath.Join(b.work, key+".bg"), part.from, part.days, cfg, nil)
		if err != nil {
			return fmt.Errorf("backgrounds %s: %w", part.name, err)
		}
		*part.to = kept
	}
	b.log.Info("backgrounds ready", "days", len(trainDays)+len(judged), "seconds", time.Since(began).Seconds())
	return nil
}
