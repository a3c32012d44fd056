package covariates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"lacuna/pipeline/covariate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// Reader decodes files.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}

// A Source is a file that may have maps, and how it is read.
type Source struct {
	Path    string
	Options ingest.Options
}

// Granules returns the files of a dataset from one time to another. Where ahead is false
// none may know of a later day than its own.
type Granules func(ctx context.Context, dataset string, from, to time.Time, ahead bool) ([]Source, error)

// Covariates are those of one dataset. It keeps the maps of the last request.
type Covariates struct {
	List     []covariate.Config
	Reader   Reader
	Granules Granules // nil: none is a dataset
	// Files are those of covariates by name, in place of where their settings say that they
	// are: for a training, which learns from the maps that were there when it was due.
	Files map[string][]string
	Log   func(say string) // called with each sentence once; nil: they are dropped

	kept       map[string]file
	regridders map[string]*covariate.Regridder
	said       map[string]bool
}

// Any reports whether there are covariates.
func (c *Covariates) Any() bool { return c != nil && len(c.List) > 0 }

// Request is what covariates are asked for.
type Request struct {
	Grid  field.Grid
	Sea   field.Mask
	Times []time.Time // of the fields, in order
	Ahead bool        // maps of later days may be used, as in delayed mode
	// Units returns the units that a covariate is wanted in; empty, or nil: those of the
	// first map that is read.
	Units func(name string) string
}

// Input is a file that had a part in the maps of a time.
type Input struct {
	Covariate    string // by the name of its settings
	Name, SHA256 string
	Times        []time.Time // of the request
}

// Answer is what there is of covariates.
type Answer struct {
	Terms  []covariate.Term
	Inputs []Input
}

// Terms returns the maps of all covariates for the times of a request. An error says that
// the context is done; whatever else is wrong is said and left out.
func (c *Covariates) Terms(ctx context.Context, r Request) (Answer, error) {
	c.begin()
	used := map[string]bool{}
	var a Answer
	for _, cfg := range c.List {
		if err := ctx.Err(); err != nil {
			return a, err
		}
		switch cfg.Static {
		case covariate.DayOfYear:
			a.Terms = append(a.Terms, season(cfg.Name, r)...)
			continue
		case covariate.DistanceToCoast:
			a.Terms = append(a.Terms, c.withGradient(cfg, r.Grid, always(cfg.Name, "", coast(r), len(r.Times)))...)
			continue
		}
		term, inputs, err := c.read(ctx, cfg, r, used)
		if err != nil {
			return a, err
		}
		a.Terms = append(a.Terms, c.withGradient(cfg, r.Grid, term)...)
		a.Inputs = append(a.Inputs, inputs...)
	}
	maps.DeleteFunc(c.kept, func(path string, _ file) bool { return !used[path] })
	return a, nil
}

func (c *Covariates) begin() {
	if c.regridders == nil {
		c.kept, c.regridders, c.said = map[string]file{}, map[string]*covariate.Regridder{}, map[string]bool{}
	}
}

// Names returns the names of the terms of covariates.
func Names(list []covariate.Config) []string {
	var names []string
	for _, cfg := range list {
		switch {
		case cfg.Static == covariate.DayOfYear:
			names = append(names, cfg.Name+".cos", cfg.Name+".sin")
		case cfg.Gradient:
			names = append(names, cfg.Name, cfg.Name+gradient)
		default:
			names = append(names, cfg.Name)
		}
	}
	return names
}

const gradient = ".gradient"

// withGradient returns a term and, where it is wanted, that of its gradient.
func (c *Covariates) withGradient(cfg covariate.Config, g field.Grid, t covariate.Term) []covariate.Term {
	if !cfg.Gradient {
		return []covariate.Term{t}
	}
	slope := covariate.Term{Name: cfg.Name + gradient, Units: t.Units, Stays: t.Stays, Maps: make([][]float32, len(t.Maps))}
	for i, m := range t.Maps {
		switch {
		case m == nil:
		case i > 0 && t.Maps[i-1] != nil && &m[0] == &t.Maps[i-1][0]: // a map that stays
			slope.Maps[i] = slope.Maps[i-1]
		default:
			slope.Maps[i] = covariate.Gradient(m, g)
		}
	}
	return []covariate.Term{t, slope}
}

// say says a sentence once.
func (c *Covariates) say(cfg covariate.Config, format string, args ...any) {
	text := "covariate " + cfg.Name + ": " + fmt.Sprintf(format, args...)
	if !c.said[text] && c.Log != nil {
		c.Log(text)
	}
	c.said[text] = true
}

// A dated map is one of a covariate.
type dated struct {
	time   time.Time
	path   string
	field  int
	values []float32 // on the grid of the request
}

// read returns the term of a covariate that has files.
func (c *Covariates) read(ctx context.Context, cfg covariate.Config, r Request, used map[string]bool) (covariate.Term, []Input, error) {
	t := covariate.Term{Name: cfg.Name, Maps: make([][]float32, len(r.Times))}
	if r.Units != nil {
		t.Units = r.Units(cfg.Name)
	}
	sources, err := c.files(ctx, cfg, r)
	if err != nil {
		return t, nil, err
	}
	var all []dated
	sums := map[string]string{}
	for _, source := range sources {
		path := source.Path
		f, err := c.file(ctx, source, r.Grid)
		if ctx.Err() != nil {
			return t, nil, ctx.Err()
		}
		if err == nil {
			err = f.suit(&t.Units)
		}
		if err != nil {
			text := err.Error()
			if bad := (*ingest.BadGranule)(nil); errors.As(err, &bad) {
				text = bad.Problem + "; " + bad.Remedy
			}
			c.say(cfg, "%s is left out: %s", baseName(path), text)
			continue
		}
		used[path], sums[path] = true, f.sha256
		for i, at := range f.times {
			all = c.add(cfg, all, dated{time: at, path: path, field: i, values: f.in(i)})
		}
	}
	if cfg.Static == covariate.Bathymetry {
		return c.standing(cfg, t, all, r, sums)
	}
	parts := map[string]*Input{}
	for i, at := range r.Times {
		t.Maps[i] = c.of(cfg, all, at, r, func(d dated) {
			in, ok := parts[d.path]
			if !ok {
				in = &Input{Covariate: cfg.Name, Name: baseName(d.path), SHA256: sums[d.path]}
				parts[d.path] = in
			}
			in.Times = append(in.Times, at)
		})
	}
	var inputs []Input
	for _, path := range slices.Sorted(maps.Keys(parts)) {
		inputs = append(inputs, *parts[path])
	}
	return t, inputs, nil
}

// add adds a map, unless the covariate has one of its time: of two that differ the first
// counts.
func (c *Covariates) add(cfg covariate.Config, all []dated, d dated) []dated {
	for _, o := range all {
		if !o.time.Equal(d.time) || cfg.Static != "" {
			continue
		}
		if !sameMap(o.values, d.values) {
			c.say(cfg, "it has %s twice, in %s and in %s, and they differ: the first is used", d.time.UTC().Format(time.RFC3339), baseName(o.path), baseName(d.path))
		}
		return all
	}
	return append(all, d)
}

func sameMap(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return x == y || x != x && y != y })
}

// standing returns the term of a map that stays.
func (c *Covariates) standing(cfg covariate.Config, t covariate.Term, all []dated, r Request, sums map[string]string) (covariate.Term, []Input, error) {
	if len(all) == 0 {
		return t, nil, nil
	}
	if len(all) > 1 {
		c.say(cfg, "%s has %d times, and a map that stays has one: the first is used", baseName(all[0].path), len(all))
	}
	return always(cfg.Name, t.Units, covariate.Shallow(all[0].values), len(r.Times)),
		[]Input{{Covariate: cfg.Name, Name: baseName(all[0].path), SHA256: sums[all[0].path], Times: r.Times}}, nil
}

// of returns the map for a time: that of the nearest day and, where it has gaps in the
// sea, of the next nearest; nil where there is none. use is called with each that has a
// part in it.
func (c *Covariates) of(cfg covariate.Config, all []dated, at time.Time, r Request, use func(dated)) []float32 {
	left := slices.Clone(all)
	var out []float32
	for len(left) > 0 {
		times := make([]time.Time, len(left))
		for i, d := range left {
			times[i] = d.time
		}
		k := covariate.Nearest(times, at, cfg.MaxAge(), r.Ahead)
		if k < 0 {
			break
		}
		missing, added := 0, 0
		if out == nil {
			out = slices.Repeat([]float32{field.NaN()}, len(left[k].values))
		}
		for i, v := range left[k].values {
			if out[i] != out[i] && (r.Sea == nil || r.Sea[i]) {
				if out[i] = v; v == v {
					added++
				} else {
					missing++
				}
			}
		}
		if added > 0 {
			use(left[k])
		}
		if missing == 0 {
			break
		}
		left = slices.Delete(left, k, k+1)
	}
	if out == nil && len(all) > 0 && !r.Ahead {
		c.sayFuture(cfg, all, at)
	}
	if !slices.ContainsFunc(out, func(v float32) bool { return v == v }) {
		return nil
	}
	return out
}

// sayFuture says that all there is of a covariate is of later days.
func (c *Covariates) sayFuture(cfg covariate.Config, all []dated, at time.Time) {
	first := slices.MinFunc(all, func(a, b dated) int { return a.time.Compare(b.time) })
	if first.time.After(at) {
		c.say(cfg, "its first map is of %s, later than days that are asked for, and a near-real-time product must not know of the future: it is refused; give earlier maps, or fill in delayed mode",
			first.time.UTC().Format(time.DateOnly))
	}
}
