package main

import (
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"

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
		from   analyser
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
		m, err := readMaps(filepath.Join(b.work, key+".bg"))
		if errors.Is(err, fs.ErrNotExist) {
			m, err = analyse(ctx, part.from, part.days, samples.BackgroundConfig{PastDays: pastDays, FutureDays: part.future, OI: oi, Workers: b.workers})
			if err == nil {
				err = m.write(filepath.Join(b.work, key+".bg"))
			}
		}
		if err != nil {
			return fmt.Errorf("backgrounds %s: %w", part.name, err)
		}
		m.cutMap = part.from.CutMap
		*part.to = m
	}
	b.log.Info("backgrounds ready", "days", len(trainDays)+len(judged), "seconds", time.Since(began).Seconds())
	return nil
}

// analyser is either side of a split.
type analyser interface {
	Grid() field.Grid
	CutMap(m []float32, w samples.Window) []float32
	Backgrounds(ctx context.Context, days []int, cfg samples.BackgroundConfig, progress func(done, total int)) (samples.Backgrounds, error)
}

// bgMaps are backgrounds of whole maps that can be kept in a file.
type bgMaps struct {
	Value, Sigma map[int][]float32

	cutMap func(m []float32, w samples.Window) []float32
}

// Cut implements impute.Backgrounds.
func (m bgMaps) Cut(r samples.Ref) (value, sigma []float32, ok bool) {
	if m.Value[r.Day] == nil {
		return nil, nil, false
	}
	value, sigma = m.cutMap(m.Value[r.Day], r.Window), m.cutMap(m.Sigma[r.Day], r.Window)
	for i, v := range value {
		if v != v { // NaN: beyond the grid
			value[i], sigma[i] = 0, 0
		}
	}
	return value, sigma, true
}

func analyse(ctx context.Context, from analyser, days []int, cfg samples.BackgroundConfig) (bgMaps, error) {
	all, err := from.Backgrounds(ctx, days, cfg, nil)
	if err != nil {
		return bgMaps{}, err
	}
	g := from.Grid()
	m := bgMaps{Value: map[int][]float32{}, Sigma: map[int][]float32{}}
	for _, day := range days {
		r := samples.Ref{Day: day, Window: samples.Window{Height: g.Height(), Width: g.Width()}}
		m.Value[day], m.Sigma[day], _ = all.Cut(r)
	}
	return m, nil
}

func readMaps(path string) (bgMaps, error) {
	var m bgMaps
	f, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer func() { _ = f.Close() }() // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return m, err
	}
	return m, gob.NewDecoder(z).Decode(&m)
}

func (m bgMaps) write(path string) error {
	f, err := renameio.NewPendingFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }() // nothing to do after a replacement
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := errors.Join(gob.NewEncoder(z).Encode(m), z.Close()); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
