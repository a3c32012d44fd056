package erddap

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/series"
	"lacuna/internal/bbox"
	"lacuna/internal/cdl"
)

// grid is the dataset as it was surveyed: everything but times and maps.
type grid struct {
	vars       []declaration // the variables that are wanted
	attrs      attributes
	time       int // axes, by their place among the dimensions of the variables
	lat, lon   int
	rows       bbox.Span
	columns    []bbox.Span
	head       cdl.File
	lats, lons []byte // of the whole axes, as the server has them
}

// documentBytes bounds structures and attributes, which have some 20 kB.
const documentBytes = 4 << 20

// Survey returns the times since a day, and the head of their files.
func (s *source) Survey(ctx context.Context, since time.Time) (series.Survey, error) {
	das, err := s.get(ctx, ".das", "", documentBytes)
	if err != nil {
		return series.Survey{}, err
	}
	attrs, err := parseDAS(das)
	if err != nil {
		return series.Survey{}, err
	}
	dds, err := s.get(ctx, ".dds", "", documentBytes)
	if err != nil {
		return series.Survey{}, err
	}
	all, err := parseDDS(dds)
	if err != nil {
		return series.Survey{}, err
	}
	g := &grid{attrs: attrs}
	if err := g.choose(all, s.cfg.Variables); err != nil {
		return series.Survey{}, fmt.Errorf("dataset %s: %w: %w", s.cfg.Dataset, fetch.ErrUnacceptable, err)
	}
	times, err := s.axes(ctx, g, since)
	if err != nil {
		return series.Survey{}, err
	}
	s.mu.Lock()
	s.grid = g
	s.mu.Unlock()
	return series.Survey{Head: g.head, Times: times}, nil
}

// choose finds the variables and their axes.
func (g *grid) choose(all []declaration, names []string) error {
	for _, name := range names {
		i := slices.IndexFunc(all, func(d declaration) bool { return d.name == name && len(d.dims) > 1 })
		if i < 0 {
			var there []string
			for _, d := range all {
				if len(d.dims) > 1 {
					there = append(there, d.name)
				}
			}
			return fmt.Errorf("it has no gridded variable %q; set variables to some of %.300q", name, there)
		}
		g.vars = append(g.vars, all[i])
	}
	first := g.vars[0]
	for _, v := range g.vars[1:] {
		if !slices.Equal(v.dims, first.dims) || !slices.Equal(v.shape, first.shape) {
			return fmt.Errorf("its variables %s and %s are not on one grid; fetch them as two datasets", first.name, v.name)
		}
	}
	g.time, g.lat, g.lon = coordinate(first.dims, "time"), coordinate(first.dims, "latitude", "lat"), coordinate(first.dims, "longitude", "lon")
	if g.time != 0 || g.lat < 0 || g.lon < g.lat {
		return fmt.Errorf("variable %s has the axes %v, must be time, then latitude and longitude", first.name, first.dims)
	}
	return nil
}

// axes asks for the coordinates and makes the head of g of them.
func (s *source) axes(ctx context.Context, g *grid, since time.Time) ([]time.Time, error) {
	v := g.vars[0]
	constraint := []string{v.dims[g.lat], v.dims[g.lon]}
	if which := g.times(since); which != "" {
		constraint = append([]string{which}, constraint...)
	}
	for i, dim := range v.dims { // depth, altitude and the like
		if i != g.time && i != g.lat && i != g.lon {
			constraint = append(constraint, dim+"[0:1:0]")
		}
	}
	const most = 64 << 20 // a century of hours, and two axes
	text, err := s.get(ctx, ".dods", strings.Join(constraint, ","), most)
	if err != nil {
		return nil, err
	}
	arrays, err := parseDODS(text, most)
	if err != nil {
		return nil, fmt.Errorf("axes of %s: %w", s.cfg.Dataset, err)
	}
	byName := map[string]array{}
	for _, a := range arrays {
		byName[a.name] = a
	}
	if err := g.cut(s.cfg, byName); err != nil {
		return nil, fmt.Errorf("dataset %s: %w: %w", s.cfg.Dataset, fetch.ErrUnacceptable, err)
	}
	var times []time.Time
	for _, seconds := range floats(byName[v.dims[g.time]]) {
		if at := instant(seconds); !at.Before(since.Truncate(24 * time.Hour)) {
			times = append(times, at)
		}
	}
	return times, nil
}

// times returns the part of the time axis that is asked for, from a day on; ""
// where the axis ends before.
func (g *grid) times(since time.Time) string {
	v := g.vars[0]
	name := v.dims[g.time]
	if v.shape[g.time] == 0 {
		return ""
	}
	from := float64(since.Truncate(24 * time.Hour).Unix())
	extent, known := number(g.attrs[name], "actual_range")
	switch {
	case since.IsZero() || !known || len(extent) != 2 || from <= extent[0]:
		return name
	case from > extent[1]:
		return ""
	}
	return fmt.Sprintf("%s[(%s):1:(last)]", name, strconv.FormatFloat(from, 'f', -1, 64))
}

// cut finds the rows and columns in the box and makes the head.
func (g *grid) cut(cfg Config, axes map[string]array) error {
	v := g.vars[0]
	lat, lon := axes[v.dims[g.lat]], axes[v.dims[g.lon]]
	g.lats, g.lons = lat.raw, lon.raw
	rows, err := cfg.Box.Rows(floats(lat))
	if err != nil {
		return err
	}
	columns, err := cfg.Box.Columns(floats(lon))
	if err != nil {
		return err
	}
	g.rows, g.columns = rows, columns
	width := 0
	for _, c := range columns {
		width += c.Len
	}
	if bytes := float64(rows.Len) * float64(width) * 8 * float64(len(g.vars)); bytes > float64(cfg.MaxMiB<<20) {
		return fmt.Errorf("a map of %d by %d cells takes %.0f MiB, more than %d: set bbox, or raise max_mib", rows.Len, width, bytes/(1<<20), cfg.MaxMiB)
	}
	g.head = cdl.File{Attrs: lasting(g.attrs[globals])}
	for i, name := range v.dims {
		n := 1
		switch i {
		case g.lat:
			n = rows.Len
		case g.lon:
			n = width
		}
		g.head.Dims = append(g.head.Dims, cdl.Dim{Name: name, Len: n})
		axis := cdl.Var{Name: name, Type: "double", Dims: []string{name}, Attrs: lasting(g.attrs[name])}
		switch a, there := axes[name]; {
		case i == g.lat:
			axis.Type, axis.Raw = a.typ, part(a, rows)
		case i == g.lon:
			axis.Type, axis.Raw = a.typ, turned(a, columns)
		case i != g.time && there:
			axis.Type, axis.Raw = a.typ, a.raw
		}
		g.head.Vars = append(g.head.Vars, axis)
	}
	for _, v := range g.vars {
		typ := v.typ
		if typ == "ubyte" && text(g.attrs[v.name], "_Unsigned") == "false" {
			typ = "byte"
		}
		g.head.Vars = append(g.head.Vars, cdl.Var{Name: v.name, Type: typ, Dims: v.dims, Attrs: lasting(g.attrs[v.name])})
	}
	return nil
}

// Read asks for the maps of a time and makes their file.
func (s *source) Read(ctx context.Context, at time.Time) (cdl.File, error) {
	s.mu.Lock()
	g := s.grid
	s.mu.Unlock()
	if g == nil {
		if _, err := s.Survey(ctx, at); err != nil {
			return cdl.File{}, err
		}
		s.mu.Lock()
		g = s.grid
		s.mu.Unlock()
	}
	file := g.head
	file.Vars = slices.Clone(g.head.Vars)
	file.Vars[g.time].Raw = binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(at.UnixMilli())/1000))
	maps := make([][]array, len(g.vars)) // of each variable, those of each span of columns
	for _, span := range g.columns {
		arrays, err := s.maps(ctx, g, at, span)
		if err != nil {
			return cdl.File{}, err
		}
		for i := range g.vars {
			maps[i] = append(maps[i], arrays[i])
		}
	}
	for i := range g.vars {
		file.Vars[len(g.vars[0].dims)+i].Raw = beside(maps[i], g.rows.Len)
	}
	return file, nil
}

// maps asks for the variables of a time in a span of columns. The server finds
// the nearest time: another one means that this one is gone.
func (s *source) maps(ctx context.Context, g *grid, at time.Time, span bbox.Span) ([]array, error) {
	v := g.vars[0]
	box := ""
	for i := range v.dims {
		switch i {
		case g.time:
			seconds := strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', -1, 64)
			box += fmt.Sprintf("[(%s):1:(%s)]", seconds, seconds)
		case g.lat:
			box += fmt.Sprintf("[%d:1:%d]", g.rows.First, g.rows.First+g.rows.Len-1)
		case g.lon:
			box += fmt.Sprintf("[%d:1:%d]", span.First, span.First+span.Len-1)
		default:
			box += "[0:1:0]"
		}
	}
	var constraint []string
	for _, v := range g.vars {
		constraint = append(constraint, v.name+box)
	}
	most := int64(s.cfg.MaxMiB)<<20 + documentBytes
	text, err := s.get(ctx, ".dods", strings.Join(constraint, ","), most)
	if err != nil {
		return nil, err
	}
	arrays, err := parseDODS(text, most)
	if err != nil {
		return nil, err
	}
	var out []array
	for _, a := range arrays {
		if err := g.check(a, at, span); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(g.vars, func(v declaration) bool { return v.name == a.name && v.typ == a.typ }) && len(a.dims) == len(v.dims) {
			out = append(out, a)
		}
	}
	if len(out) != len(g.vars) {
		return nil, fmt.Errorf("%w: the server sent %d of %d variables", fetch.ErrChanged, len(out), len(g.vars))
	}
	for i, a := range out {
		want := 1
		for j := range a.dims {
			switch j {
			case g.lat:
				want *= g.rows.Len
			case g.lon:
				want *= span.Len
			}
		}
		if a.name != g.vars[i].name || a.elements(len(a.raw)+1) != want {
			return nil, fmt.Errorf("%w: variable %s has the shape %v", fetch.ErrChanged, a.name, a.shape)
		}
	}
	return out, nil
}

// check compares the coordinates that come with a map with the surveyed ones.
func (g *grid) check(a array, at time.Time, span bbox.Span) error {
	v := g.vars[0]
	if len(a.dims) != 1 {
		return nil
	}
	size := cdl.SizeOf(a.typ)
	switch a.name {
	case v.dims[g.time]:
		if t := floats(a); len(t) != 1 || math.Abs(t[0]-float64(at.UnixMilli())/1000) > 0.5 {
			return fmt.Errorf("the dataset has no map of %s any more: %w", at.UTC().Format(time.RFC3339), fs.ErrNotExist)
		}
	case v.dims[g.lat]:
		if !bytes.Equal(a.raw, within(g.lats, g.rows, size)) {
			return fmt.Errorf("%w: the latitudes of the dataset are others", fetch.ErrChanged)
		}
	case v.dims[g.lon]:
		if !bytes.Equal(a.raw, within(g.lons, span, size)) {
			return fmt.Errorf("%w: the longitudes of the dataset are others", fetch.ErrChanged)
		}
	}
	return nil
}
