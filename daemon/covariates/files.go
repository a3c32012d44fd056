package covariates

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/pipeline/covariate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/products"
	"lacuna/pipeline/skill"
)

// A file is a decoded one with its maps on the grid of the last request.
type file struct {
	changed time.Time
	grid    field.Grid
	sha256  string
	units   string
	times   []time.Time
	maps    [][]float32

	scale, zero float64 // to the units of the term; set by suit
}

func baseName(path string) string { return filepath.Base(path) }

// files returns the files that may have maps for the times of a request, and how they are
// read.
func (c *Covariates) files(ctx context.Context, cfg covariate.Config, r Request) ([]Source, error) {
	opt := ingest.Options{Variable: cfg.Variable}
	if cfg.Static == covariate.Bathymetry {
		opt.Transform = field.Transform{}.String()
	}
	if len(r.Times) == 0 {
		return nil, nil
	}
	from, to := r.Times[0].Add(-cfg.MaxAge()), r.Times[len(r.Times)-1]
	if r.Ahead {
		to = to.Add(cfg.MaxAge())
	}
	if list, ok := c.Files[cfg.Name]; ok {
		return read(list, opt), nil
	}
	if cfg.Dataset != "" {
		if c.Granules == nil {
			return nil, nil
		}
		all, err := c.Granules(ctx, cfg.Dataset, day(from), day(to).Add(24*time.Hour-time.Nanosecond), r.Ahead)
		if err != nil && ctx.Err() == nil {
			c.say(cfg, "the granules of dataset %s are not known: %v", cfg.Dataset, err)
			return nil, nil
		}
		return all, ctx.Err()
	}
	if cfg.Daily() {
		return read(c.daily(cfg, r, from, to), opt), nil
	}
	info, err := os.Stat(cfg.File)
	if err != nil {
		c.say(cfg, "%v: it is left out", err)
		return nil, nil
	}
	if !info.IsDir() {
		return read([]string{cfg.File}, opt), nil
	}
	paths, err := filepath.Glob(filepath.Join(cfg.File, "*.nc"))
	slices.Sort(paths)
	return read(paths, opt), err
}

// read returns files that are all read the same way.
func read(paths []string, opt ingest.Options) []Source {
	var all []Source
	for _, path := range paths {
		all = append(all, Source{Path: path, Options: opt})
	}
	return all
}

// daily returns the files of a template that are there, for the days around the times.
func (c *Covariates) daily(cfg covariate.Config, r Request, from, to time.Time) []string {
	var paths []string
	for at := day(from); !at.After(to); at = at.Add(24 * time.Hour) {
		near := slices.ContainsFunc(r.Times, func(t time.Time) bool { return at.Sub(day(t)).Abs() <= cfg.MaxAge() })
		path := cfg.FileOf(at)
		if !near || slices.Contains(paths, path) {
			continue
		}
		_, err := os.Stat(path)
		switch {
		case err == nil:
			paths = append(paths, path)
		case !errors.Is(err, fs.ErrNotExist):
			c.say(cfg, "%v: it is left out", err)
		}
	}
	return paths
}

func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// file decodes a file, unless it is the one that was decoded before, and brings its maps
// to a grid.
func (c *Covariates) file(ctx context.Context, of Source, grid field.Grid) (file, error) {
	path := of.Path
	info, err := os.Stat(path)
	if err != nil {
		return file{}, err
	}
	if f, ok := c.kept[path]; ok && f.changed.Equal(info.ModTime()) && f.grid.Same(grid) {
		return f, nil
	}
	g, err := c.Reader.Read(ctx, path, of.Options)
	if err != nil {
		return file{}, err
	}
	f := file{changed: info.ModTime(), grid: grid, sha256: g.SHA256, times: field.Times(g.Fields)}
	if v, ok := g.Source.Var(g.Source.Variable); ok {
		for _, a := range v.Attrs {
			if text, isText := a.Value.(string); isText && a.Name == "units" {
				f.units = text
			}
		}
	}
	if g.Transform.Log10 {
		f.units = "log10 " + f.units
	}
	bring, err := c.regridder(g.Fields[0].Grid, grid)
	if err != nil {
		return file{}, err
	}
	for _, own := range g.Fields {
		values := make([]float32, len(own.Values))
		g.Transform.Forward(values, own.Values)
		if bring != nil {
			values = bring.Apply(values)
		}
		f.maps = append(f.maps, values)
	}
	c.kept[path] = f
	return f, nil
}

// regridder returns the one between two grids, nil where they are the same.
func (c *Covariates) regridder(from, to field.Grid) (*covariate.Regridder, error) {
	if from.Same(to) {
		return nil, nil
	}
	key := fmt.Sprint(from, to)
	if known, ok := c.regridders[key]; ok {
		return known, nil
	}
	made, err := covariate.NewRegridder(from, to)
	if err == nil {
		c.regridders[key] = made
	}
	return made, err
}

// suit finds out how the units of a file become those that are wanted; where none are
// wanted yet, they are those of the file.
func (f *file) suit(want *string) error {
	f.scale, f.zero = 1, 0
	switch {
	case *want == "":
		*want = f.units
		return nil
	case f.units == *want:
		return nil
	}
	scale, zero, ok := products.Between(f.units, *want)
	if !ok {
		return fmt.Errorf("it is in %q, and the others are in %q, and no conversion is known: give files of one unit", f.units, *want)
	}
	f.scale, f.zero = scale, zero
	return nil
}

// in returns a map in the units that suit found.
func (f file) in(i int) []float32 {
	if f.scale == 1 && f.zero == 0 {
		return f.maps[i]
	}
	out := make([]float32, len(f.maps[i]))
	for k, v := range f.maps[i] {
		out[k] = float32(float64(v)*f.scale + f.zero)
	}
	return out
}

// always returns the term of a map that stays.
func always(name, units string, values []float32, times int) covariate.Term {
	return covariate.Term{Name: name, Units: units, Stays: true, Maps: slices.Repeat([][]float32{values}, times)}
}

// season returns the terms of the day of the year.
func season(name string, r Request) []covariate.Term {
	cos, sin := covariate.Term{Name: name + ".cos", Uniform: true}, covariate.Term{Name: name + ".sin", Uniform: true}
	for _, at := range r.Times {
		c, s := covariate.Season(at, r.Grid.Len())
		cos.Maps, sin.Maps = append(cos.Maps, c), append(sin.Maps, s)
	}
	return []covariate.Term{cos, sin}
}

// coast returns the distance of every cell to the nearest land of the grid, as the decimal
// logarithm of kilometres: a kilometre counts near the coast. Without land it is the same
// everywhere.
func coast(r Request) []float32 {
	out := make([]float32, r.Grid.Len())
	if r.Sea == nil {
		return out
	}
	land := make(field.Mask, len(r.Sea))
	for i, sea := range r.Sea {
		land[i] = !sea
	}
	if land.Count() == 0 {
		return out
	}
	for i, cells := range skill.Distances(land, r.Grid.Height(), r.Grid.Width()) {
		out[i] = float32(math.Log10(1 + cells*r.Grid.StepKM()))
	}
	return out
}
