package pack

import (
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"io/fs"
	"os"

	"lacuna/internal/durable"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// Backgrounds are backgrounds of whole days, cached in a file because they take
// minutes to make and do not change.
type Backgrounds struct {
	kept maps
	cut  func(m []float32, w samples.Window) []float32
}

type maps struct{ Value, Sigma map[int][]float32 }

// Side is either side of a split.
type Side interface {
	Grid() field.Grid
	CutMap(m []float32, w samples.Window) []float32
	Backgrounds(ctx context.Context, days []int, cfg samples.BackgroundConfig, progress func(done, total int)) (samples.Backgrounds, error)
}

// KeepBackgrounds returns the backgrounds of days from the file at path, or
// makes them and writes the file. The name of the file must identify everything that
// they depend on.
func KeepBackgrounds(ctx context.Context, path string, from Side, days []int, cfg samples.BackgroundConfig, progress func(done, total int)) (Backgrounds, error) {
	m, err := readMaps(path)
	if errors.Is(err, fs.ErrNotExist) {
		if m, err = makeMaps(ctx, from, days, cfg, progress); err == nil {
			err = m.write(path)
		}
	}
	return Backgrounds{kept: m, cut: from.CutMap}, err
}

// Cut returns the background of the patch r and its standard deviation, 0 on
// land. It returns false if the day has none.
func (b Backgrounds) Cut(r samples.Ref) (value, sigma []float32, ok bool) {
	if b.kept.Value[r.Day] == nil {
		return nil, nil, false
	}
	value, sigma = b.cut(b.kept.Value[r.Day], r.Window), b.cut(b.kept.Sigma[r.Day], r.Window)
	for i, v := range value {
		if v != v { // NaN: beyond the grid
			value[i], sigma[i] = 0, 0
		}
	}
	return value, sigma, true
}

func makeMaps(ctx context.Context, from Side, days []int, cfg samples.BackgroundConfig, progress func(done, total int)) (maps, error) {
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
	defer func() { _ = f.Close() }() // read-only: a failed close loses nothing
	z, err := gzip.NewReader(f)
	if err != nil {
		return m, err
	}
	return m, gob.NewDecoder(z).Decode(&m)
}

func (m maps) write(path string) error {
	f, err := durable.Pending(path, 0o600)
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
