package sources

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/state"
	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/merge"
)

// part is a granule that a day is merged from.
type part struct {
	source int
	row    ledger.Granule
	looks  []look
}

// mergeDay makes the granule of a day from all granules that sources have of it, and
// records it; fresh is false where it has the bytes that it had.
func (m *Merger) mergeDay(ctx context.Context, day time.Time, lane ledger.Lane) (g fetch.Granule, fresh bool, err error) {
	parts, err := m.parts(ctx, day)
	if err != nil || len(parts) == 0 {
		return g, false, err
	}
	content, err := m.content(ctx, day, parts)
	if err != nil {
		return g, false, err
	}
	if g, err = m.spool(m.dataset+day.Format("_20060102")+".nc", content); err != nil {
		return g, false, err
	}
	for _, p := range parts {
		if p.row.ModTime.After(g.ModTime) {
			g.ModTime = p.row.ModTime
		}
	}
	_, fresh, err = m.Books.Arrive(ctx, ledger.Arrival{
		Object: ledger.Object{Dataset: m.dataset, Name: g.Name, Size: g.Size, ModTime: g.ModTime},
		SHA256: g.SHA256, SpoolPath: g.Path, Lane: lane,
	}, m.Now())
	return g, fresh, err
}

// parts returns the granules that sources have of a day, in the order of the sources
// and of a source the newest first. Of the same bytes those that came first count.
func (m *Merger) parts(ctx context.Context, day time.Time) ([]part, error) {
	var all []part
	for i, s := range m.sources {
		rows, err := m.Books.Window(ctx, Series(m.dataset, s.Name), day, day.Add(24*time.Hour-time.Nanosecond))
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(rows, func(a, b ledger.Granule) int {
			return cmp.Or(b.ModTime.Compare(a.ModTime), b.Recorded.Compare(a.Recorded), cmp.Compare(b.Name, a.Name))
		})
		if len(rows) > 1 && m.first("twice", s.Name, day) {
			m.Log.Info("a source has a day more than once; the newest granule goes before the others", "source", s.Name,
				"day", day.Format(time.DateOnly), "newest", rows[0].Name, "granules", len(rows))
		}
		for _, row := range rows {
			all = append(all, part{source: i, row: row})
		}
	}
	once := map[string]ledger.Granule{}
	for _, p := range all {
		if first, known := once[p.row.SHA256]; !known || p.row.ID < first.ID {
			once[p.row.SHA256] = p.row
		}
	}
	all = slices.DeleteFunc(all, func(p part) bool { return once[p.row.SHA256].ID != p.row.ID })
	var out []part
	for _, p := range all {
		granule, err := m.read(ctx, p.source, p.row)
		if err == nil {
			p.looks, err = m.suit(p.source, granule)
		}
		bad := (*ingest.BadGranule)(nil)
		switch {
		case errors.As(err, &bad) || errors.Is(err, fs.ErrNotExist):
			// Without it the day is poorer, but not wrong.
			m.Log.Warn("granule of a source left out", "granule", p.row.Name, "source", m.sources[p.source].Name, "err", err)
			continue
		case err != nil:
			return nil, err
		}
		p.looks = slices.DeleteFunc(p.looks, func(l look) bool { return !l.day.Equal(day) })
		out = append(out, p)
	}
	return out, nil
}

// content returns the bytes of the merged granule of a day.
func (m *Merger) content(ctx context.Context, day time.Time, parts []part) ([]byte, error) {
	var looks []look
	var fields []merge.Field
	for _, p := range parts {
		for _, l := range p.looks {
			looks = append(looks, l)
			fields = append(fields, merge.Field{Source: p.source, Values: l.values, Errors: l.errors})
		}
	}
	sources := make([]merge.Source, len(m.sources))
	for i, s := range m.sources {
		sources[i] = s.Source
	}
	grid := m.form.grid
	shape := merge.Shape{Height: grid.Height(), Width: grid.Width()}
	var record merge.Record
	file := m.State.Sources(m.dataset)
	if _, err := state.Load(file, &record); err != nil {
		return nil, err
	}
	background, err := m.background(ctx, day)
	if err != nil {
		return nil, err
	}
	record.Put(merge.Summarize(day, shape, sources, fields, background))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	if err := state.Save(file, record); err != nil {
		return nil, fmt.Errorf("keep the comparison of sources: %w", err)
	}
	fit := record.Fit(day, shape, sources)
	merged := merge.Merge(fit, fields)
	m.note(fit, sources)
	m.keep(day, merged.Values)
	return m.form.encode(m.dataset, day, sources, parts, looks, merged)
}

// note remembers what was fitted, for operators.
func (m *Merger) note(fit merge.Fit, sources []merge.Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quality = nil
	for i, s := range sources {
		q := fit.Overall(i)
		m.quality = append(m.quality, Quality{Source: s.Name, Bias: q.Bias, Sigma: q.Sigma, Days: q.Days})
	}
}

// backgroundDays is how far back the latest value of a cell may lie to be its
// background: the sea of a week ago says little of today's.
const backgroundDays = 4

// keep remembers the merged field of a day as background of those that follow.
func (m *Merger) keep(day time.Time, values []float32) {
	m.merged[day.Format(time.DateOnly)] = values
	for date := range m.merged {
		if date < day.AddDate(0, 0, -2*backgroundDays).Format(time.DateOnly) {
			delete(m.merged, date)
		}
	}
}

// background returns the latest values of the days before a day, in the space of the
// transform; nil where there are none.
func (m *Merger) background(ctx context.Context, day time.Time) ([]float32, error) {
	var earlier [][]float32
	for back := 1; back <= backgroundDays; back++ {
		before := day.AddDate(0, 0, -back)
		values, ok := m.merged[before.Format(time.DateOnly)]
		if !ok {
			var err error
			if values, err = m.mergedBefore(ctx, before); err != nil {
				return nil, err
			}
			m.merged[before.Format(time.DateOnly)] = values
		}
		if values != nil {
			earlier = append(earlier, values)
		}
	}
	return merge.Background(earlier...), nil
}

// mergedBefore reads the merged field of an earlier day; nil where there is none.
func (m *Merger) mergedBefore(ctx context.Context, day time.Time) ([]float32, error) {
	rows, err := m.Books.Window(ctx, m.dataset, day, day.Add(24*time.Hour-time.Nanosecond))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	granule, err := m.Reader.Read(ctx, rows[0].SpoolPath, ingest.Options{Variable: m.form.variable.Name})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || !granule.Fields[0].Grid.Same(m.form.grid) {
		return nil, nil //nolint:nilerr // the worker meets the same error and reports it
	}
	values := make([]float32, len(granule.Fields[0].Values))
	m.form.transform.Forward(values, granule.Fields[0].Values)
	return values, nil
}

// spool puts a granule of our own into the spool.
func (m *Merger) spool(name string, content []byte) (g fetch.Granule, err error) {
	sum := sha256.Sum256(content)
	g = fetch.Granule{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	temp, err := os.CreateTemp(string(m.State), ".merged-*")
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, os.Remove(temp.Name())) }()
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Sync(), temp.Close()); err != nil {
		return g, fmt.Errorf("write %s: %w", name, err)
	}
	g.Path, err = m.Spool.Adopt(temp.Name(), name, g.SHA256)
	return g, err
}

// look is what a source saw on a day, on the grid of the dataset.
type look struct {
	day      time.Time
	physical []float32 // in the units of the dataset
	values   []float32 // in the space of the transform
	errors   []float32 // likewise; nil: none came with it
	sea      field.Mask
}
