package zarr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/series"
	"lacuna/internal/bbox"
	"lacuna/internal/cdl"
	"lacuna/internal/cftime"
	"lacuna/internal/zarr"
)

// grid is the store as it was surveyed.
type grid struct {
	vars           []*zarr.Array // the variables that are wanted
	axes           []*zarr.Array // the coordinate of each dimension
	time, lat, lon int           // dimensions
	times          []time.Time
	rows           bbox.Span
	columns        []bbox.Span
	head           cdl.File
}

// axisBytes bounds a coordinate: a century of minutes.
const axisBytes = 512 << 20

// Survey returns the times, and the head of their files.
func (s *source) Survey(ctx context.Context, since time.Time) (series.Survey, error) {
	g, err := s.survey(ctx)
	if err != nil {
		return series.Survey{}, err
	}
	out := series.Survey{Head: g.head}
	for _, at := range g.times {
		if !at.Before(since.Truncate(24 * time.Hour)) {
			out.Times = append(out.Times, at)
		}
	}
	return out, nil
}

// survey reads the metadata and the coordinates anew.
func (s *source) survey(ctx context.Context) (*grid, error) {
	store, done, err := s.open()
	if err != nil {
		return nil, err
	}
	defer done()
	g := &grid{}
	if err := g.choose(ctx, store, s.cfg); err != nil {
		return nil, fmt.Errorf("store %s: %w", s.cfg.Place(), err)
	}
	if err := g.cut(ctx, s.cfg); err != nil {
		return nil, fmt.Errorf("store %s: %w", s.cfg.Place(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grid = g
	return g, nil
}

// refused marks what is wrong with a store and not with the way to it.
func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", fetch.ErrUnacceptable, fmt.Errorf(format, args...))
}

// choose finds the variables and their coordinates.
func (g *grid) choose(ctx context.Context, store zarr.Store, cfg Config) error {
	group, err := zarr.Open(ctx, store, cfg.Group, cfg.Variables...)
	if err != nil {
		return err
	}
	g.head.Attrs = zarr.Attributes(lasting(group.Attrs), "")
	for _, name := range cfg.Variables {
		a, err := find(group, cfg.Group, name)
		if err != nil {
			return err
		}
		g.vars = append(g.vars, a)
	}
	first := g.vars[0]
	for _, a := range g.vars {
		if len(a.Dims) != len(a.Shape) || slices.Contains(a.Dims, "") {
			return refused("array %s does not name its dimensions", a.Name)
		}
		if !slices.Equal(a.Dims, first.Dims) || !slices.Equal(a.Shape, first.Shape) {
			return refused("its arrays %s and %s are not on one grid; fetch them as two datasets", first.Name, a.Name)
		}
	}
	if group, err = zarr.Open(ctx, store, cfg.Group, first.Dims...); err != nil { // where nothing is consolidated
		return err
	}
	g.time, g.lat, g.lon = -1, -1, -1
	for i, name := range first.Dims {
		a, err := find(group, cfg.Group, name)
		if err != nil || !slices.Equal(a.Shape, first.Shape[i:i+1]) {
			return refused("dimension %s has no coordinate of its length %d", name, first.Shape[i])
		}
		g.axes = append(g.axes, a)
		switch kindOf(a, name) {
		case "time":
			g.time = i
		case "latitude":
			g.lat = i
		case "longitude":
			g.lon = i
		}
	}
	if g.time != 0 || g.lat < 0 || g.lon < g.lat {
		return refused("array %s has the dimensions %v, must be time, then latitude and longitude", first.Name, first.Dims)
	}
	return nil
}

func find(group *zarr.Group, at, name string) (*zarr.Array, error) {
	var there []string
	for _, a := range group.Arrays {
		if a.Name == path.Join(at, name) {
			if a.Unusable != "" {
				return nil, refused("array %s: %s", name, a.Unusable)
			}
			return a, nil
		}
		if len(a.Shape) > 1 {
			there = append(there, a.Name)
		}
	}
	return nil, refused("it has no array %q; set variables to some of %.300q, or group to one of %.200q", name, there, group.Groups)
}

// kindOf tells coordinates by CF: standard name, axis, or name.
func kindOf(a *zarr.Array, name string) string {
	standard := text(a, "standard_name")
	for _, k := range []struct{ kind, axis, short string }{{"time", "T", "time"}, {"latitude", "Y", "lat"}, {"longitude", "X", "lon"}} {
		if standard == k.kind || standard == "" && (strings.EqualFold(name, k.kind) || strings.EqualFold(name, k.short) || text(a, "axis") == k.axis) {
			return k.kind
		}
	}
	return ""
}

func text(a *zarr.Array, name string) string {
	var out string
	if json.Unmarshal(a.Attrs[name], &out) != nil {
		return ""
	}
	return out
}

// lasting leaves out the attributes that change from day to day: with them the
// same map would never have the same bytes.
func lasting(attrs map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, value := range attrs {
		switch lower := strings.ToLower(name); {
		case lower == "history", lower == "actual_range", lower == "valid_max" && attrs["axis"] != nil, lower == "valid_min" && attrs["axis"] != nil,
			strings.HasPrefix(lower, "date_"), strings.HasPrefix(lower, "time_coverage"), strings.HasPrefix(lower, "geospatial_"):
		default:
			out[name] = value
		}
	}
	return out
}

// axis reads a coordinate.
func axis(ctx context.Context, a *zarr.Array) (raw []byte, values []float64, err error) {
	raw, err = a.Read(ctx, []int{0}, a.Shape, axisBytes)
	return raw, cdl.Floats(a.Type, raw), err
}

// cut reads the coordinates, finds the rows and columns in the box and makes the
// head.
func (g *grid) cut(ctx context.Context, cfg Config) error {
	_, numbers, err := axis(ctx, g.axes[g.time])
	if err != nil {
		return err
	}
	clock, _, err := cftime.New(text(g.axes[g.time], "units"), text(g.axes[g.time], "calendar"))
	if err != nil {
		return refused("time: %w", err)
	}
	for _, n := range numbers {
		at, ok := clock.At(n)
		if !ok {
			return refused("time has %v, which is no date", n)
		}
		g.times = append(g.times, at.Truncate(time.Second))
	}
	latRaw, lat, err := axis(ctx, g.axes[g.lat])
	if err != nil {
		return err
	}
	lonRaw, lon, err := axis(ctx, g.axes[g.lon])
	if err != nil {
		return err
	}
	if g.rows, err = cfg.Box.Rows(lat); err != nil {
		return refused("%w", err)
	}
	if g.columns, err = cfg.Box.Columns(lon); err != nil {
		return refused("%w", err)
	}
	width := 0
	for _, c := range g.columns {
		width += c.Len
	}
	if bytes := float64(g.rows.Len) * float64(width) * 8 * float64(len(g.vars)); bytes > float64(cfg.MaxMiB)*(1<<20) {
		return refused("a map of %d by %d cells takes %.0f MiB, more than %d: set bbox, or raise max_mib", g.rows.Len, width, bytes/(1<<20), cfg.MaxMiB)
	}
	return g.makeHead(ctx, latRaw, lonRaw, width)
}

// makeHead describes the file of a time.
func (g *grid) makeHead(ctx context.Context, lat, lon []byte, width int) error {
	for i, a := range g.axes {
		name := path.Base(a.Name)
		v := cdl.Var{Name: name, Type: a.Type, Dims: []string{name}, Attrs: attributes(a)}
		size, n := cdl.SizeOf(a.Type), 1
		switch i {
		case g.time:
		case g.lat:
			n = g.rows.Len
			v.Raw = lat[g.rows.First*size : (g.rows.First+n)*size]
		case g.lon:
			n = width
			for _, c := range g.columns { // their jump at the edge is counted on by whoever reads the file
				v.Raw = append(v.Raw, lon[c.First*size:(c.First+c.Len)*size]...)
			}
		default:
			raw, err := a.Read(ctx, []int{0}, []int{1}, axisBytes)
			if err != nil {
				return err
			}
			v.Raw = raw
		}
		g.head.Dims = append(g.head.Dims, cdl.Dim{Name: name, Len: n})
		g.head.Vars = append(g.head.Vars, v)
	}
	for _, a := range g.vars {
		var dims []string
		for _, d := range g.head.Dims {
			dims = append(dims, d.Name)
		}
		g.head.Vars = append(g.head.Vars, cdl.Var{Name: path.Base(a.Name), Type: a.Type, Dims: dims, Attrs: attributes(a)})
	}
	return nil
}

func attributes(a *zarr.Array) []cdl.Attr {
	kept := *a
	kept.Attrs = lasting(a.Attrs)
	return kept.Attributes()
}

// Read reads the maps of a time and makes their file. The axis of a store may
// move while it is read, so the time is looked up again behind the numbers.
func (s *source) Read(ctx context.Context, at time.Time) (cdl.File, error) {
	s.mu.Lock()
	g := s.grid
	s.mu.Unlock()
	const attempts = 3
	for range attempts {
		var err error
		if g == nil {
			if g, err = s.survey(ctx); err != nil {
				return cdl.File{}, err
			}
		}
		i := slices.IndexFunc(g.times, at.Equal)
		if i < 0 {
			return cdl.File{}, fmt.Errorf("the store has no map of %s any more: %w", at.UTC().Format(time.RFC3339), fs.ErrNotExist)
		}
		file, err := s.read(ctx, g, i)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, errMoved) {
			return cdl.File{}, err
		}
		g = nil
	}
	return cdl.File{}, fmt.Errorf("%w: the times of the store move while they are read", fetch.ErrChanged)
}

// errMoved says that the surveyed times are out of date.
var errMoved = errors.New("the times have moved")

// read reads the maps of the i-th time.
func (s *source) read(ctx context.Context, g *grid, i int) (cdl.File, error) {
	store, done, err := s.open()
	if err != nil {
		return cdl.File{}, err
	}
	defer done()
	file := g.head
	file.Vars = slices.Clone(g.head.Vars)
	most := int64(s.cfg.MaxMiB) << 20
	for k, v := range g.vars {
		raw, err := g.maps(ctx, v.On(store), i, most)
		if err != nil {
			return cdl.File{}, err
		}
		file.Vars[len(g.axes)+k].Raw = raw
	}
	now, err := g.axes[g.time].On(store).Read(ctx, []int{i}, []int{1}, axisBytes)
	if err != nil {
		return cdl.File{}, err
	}
	clock, _, err := cftime.New(text(g.axes[g.time], "units"), text(g.axes[g.time], "calendar"))
	if err != nil {
		return cdl.File{}, err
	}
	if at, ok := clock.At(cdl.Floats(g.axes[g.time].Type, now)[0]); !ok || !at.Truncate(time.Second).Equal(g.times[i]) {
		return cdl.File{}, errMoved
	}
	file.Vars[g.time].Raw = now
	return file, nil
}

// maps reads the map of a variable at the i-th time, the spans of its columns
// beside one another.
func (g *grid) maps(ctx context.Context, a *zarr.Array, i int, most int64) ([]byte, error) {
	var parts [][]byte
	for _, span := range g.columns {
		start, count := make([]int, len(a.Shape)), make([]int, len(a.Shape))
		for d := range a.Shape {
			count[d] = 1
		}
		start[g.time] = i
		start[g.lat], count[g.lat] = g.rows.First, g.rows.Len
		start[g.lon], count[g.lon] = span.First, span.Len
		raw, err := a.Read(ctx, start, count, most)
		if err != nil {
			return nil, err
		}
		parts = append(parts, raw)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	var out []byte
	for y := range g.rows.Len {
		for _, p := range parts {
			row := len(p) / g.rows.Len
			out = append(out, p[y*row:(y+1)*row]...)
		}
	}
	return out, nil
}
