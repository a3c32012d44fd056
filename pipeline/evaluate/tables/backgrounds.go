package tables

import (
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/google/renameio/v2"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/finetune"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// surround makes what any entry that is not done needs of the days around:
// backgrounds, and an analysis.
func (r *run) surround(ctx context.Context) error {
	extras, err := r.extras()
	if err != nil {
		return err
	}
	oi := classical.DefaultOI(r.train.Grid())
	oi.Workers = 1 // windows and days run side by side instead
	if extras.Analysis && r.around.Analyser == nil {
		quick := impute.QuickOI(oi)
		r.material.Analyser = impute.OI{Days: r.train, Settings: quick}
		r.around.Analyser = impute.OI{Days: r.held, Settings: quick}
		clear(r.exams) // those show no analysis
	}
	if !extras.Background || r.around.Past != nil {
		return nil
	}
	clear(r.exams)
	return r.makeBackgrounds(ctx, oi)
}

// extras returns what the networks of all entries are given that has to be
// made beforehand.
func (r *run) extras() (impute.Extras, error) {
	var out impute.Extras
	for _, e := range r.entries {
		var x impute.Extras
		switch {
		case e.done:
		case e.row.trains():
			x = e.row.Network.config(r.s.Train).Design.Extras
		case e.row.By == Champion:
			m, err := impute.Load(r.job.Champion[finetune.ImputerFile], r.shop)
			if err != nil {
				return out, fmt.Errorf("read the champion: %w", err)
			}
			x = m.Design().Extras
		}
		out.Background, out.Analysis = out.Background || x.Background, out.Analysis || x.Analysis
	}
	return out, nil
}

func (r *run) makeBackgrounds(ctx context.Context, oi classical.OI) error {
	var learn, ask []int
	for _, ref := range r.refs(r.s.Train.Side) {
		learn = append(learn, ref.Day)
	}
	for _, o := range r.overlays {
		ask = append(ask, o.Day)
	}
	for _, part := range []struct {
		name   string
		from   analyser
		days   []int
		future int
		to     *impute.Backgrounds
	}{
		{"train-past", r.train, learn, 0, &r.material.Past},
		{"train-delayed", r.train, learn, samples.NextDays, &r.material.Delayed},
		{"held-past", r.held, ask, 0, &r.around.Past},
		{"held-delayed", r.held, ask, samples.NextDays, &r.around.Delayed},
	} {
		slices.Sort(part.days)
		days := slices.Compact(part.days)
		cfg := samples.BackgroundConfig{PastDays: samples.LastDays, FutureDays: part.future, OI: oi, Workers: r.s.Train.Workers}
		key, err := keyOf(r.dataKey, part.name, days, oi)
		if err != nil {
			return err
		}
		path := r.folder.path(networksFolder, "background-"+key+".gob.gz")
		m, err := readMaps(path)
		if errors.Is(err, fs.ErrNotExist) {
			m, err = analyse(ctx, part.from, days, cfg, r.telling("analysing the days around"))
			if err == nil {
				err = m.write(path)
			}
		}
		if err != nil {
			return fmt.Errorf("backgrounds %s: %w", part.name, err)
		}
		m.cutMap = part.from.CutMap
		*part.to = m
	}
	return nil
}

// analyser is either side of a split.
type analyser interface {
	Grid() field.Grid
	CutMap(m []float32, w samples.Window) []float32
	Backgrounds(ctx context.Context, days []int, cfg samples.BackgroundConfig, progress func(done, total int)) (samples.Backgrounds, error)
}

// maps are backgrounds of whole days that can be kept in a file.
type maps struct {
	Value, Sigma map[int][]float32

	cutMap func(m []float32, w samples.Window) []float32
}

// Cut implements impute.Backgrounds.
func (m maps) Cut(r samples.Ref) (value, sigma []float32, ok bool) {
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

func analyse(ctx context.Context, from analyser, days []int, cfg samples.BackgroundConfig, progress func(done, total int)) (maps, error) {
	all, err := from.Backgrounds(ctx, days, cfg, progress)
	if err != nil {
		return maps{}, err
	}
	g := from.Grid()
	m := maps{Value: map[int][]float32{}, Sigma: map[int][]float32{}}
	for _, day := range days {
		r := samples.Ref{Day: day, Window: samples.Window{Height: g.Height(), Width: g.Width()}}
		m.Value[day], m.Sigma[day], _ = all.Cut(r)
	}
	return m, nil
}

func readMaps(path string) (maps, error) {
	var m maps
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

func (m maps) write(path string) error {
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
