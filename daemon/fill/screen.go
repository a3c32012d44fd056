package fill

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/quality"
)

// Reader decodes files of maps.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}

// Screening takes observations out that tests refuse, before anything is filled,
// learned or scored by them. It remembers the files that it has read, and is not
// safe for concurrent use.
type Screening struct {
	Tests  quality.Tests
	Ice    quality.Ice
	Reader Reader

	climatology *climatology
	iceMaps     *iceMaps
}

// Screened says what was taken out of a granule; the zero value: nothing was
// looked for.
type Screened struct {
	Tests  quality.Tests
	Counts quality.Counts // by test, and of observations under ice that were taken out
	// Taken are the cells that were taken out, of all fields one after the other.
	Taken field.Mask
	// History is the same of the neighbours, of those that were screened with it.
	History []field.Mask

	SeaIce string       // where the share of ice comes from, as a phrase; empty: it was not looked for
	Ice    []field.Mask // cells under ice, of each field; nil: it was not looked for, or is not known
	// IcePercent is the share of ice of the cells of all fields, one after the other;
	// netcdf.NoIce where it is not known; nil as Ice.
	IcePercent []byte
	FillIce    bool // such cells are filled and used as others
}

// String returns what was taken out in words.
func (s Screened) String() string {
	var parts []string
	for _, name := range s.Counts.Names() {
		parts = append(parts, fmt.Sprintf("%d by %s", s.Counts[name], name))
	}
	return "observations refused: " + strings.Join(parts, ", ")
}

// Any reports whether anything is looked for.
func (s *Screening) Any() bool { return s.Tests.Any() || s.Ice.Any() }

// Granule screens a granule with its neighbours, all of which are judged: a bad
// neighbour spoils the day that is filled from it. It returns copies; neighbours on
// another grid stay as they are.
func (s *Screening) Granule(ctx context.Context, g ingest.Granule, history []ingest.Granule, sea field.Mask) (ingest.Granule, []ingest.Granule, Screened, error) {
	if !s.Any() {
		return g, history, Screened{}, nil
	}
	known := slices.ContainsFunc(history, func(h ingest.Granule) bool { return h.SHA256 == g.SHA256 })
	all := slices.Clone(history)
	if !known {
		all = append(all, g)
	}
	found, err := s.Series(ctx, g, all, sea)
	if err != nil {
		return g, history, Screened{}, err
	}
	at := slices.IndexFunc(all, func(h ingest.Granule) bool { return h.SHA256 == g.SHA256 })
	out := found[at]
	for _, f := range found[:len(history)] {
		out.History = append(out.History, f.Taken)
	}
	return all[at], all[:len(history)], out, nil
}

// Series screens the granules of a series, replaces each by its screened copy and
// returns what was refused in it. Those on another grid than one of them, like, stay
// as they are.
func (s *Screening) Series(ctx context.Context, like ingest.Granule, all []ingest.Granule, sea field.Mask) ([]Screened, error) {
	out := make([]Screened, len(all))
	if !s.Any() {
		return out, nil
	}
	scene := quality.Scene{Grid: like.Fields[0].Grid, Sea: sea}
	if err := s.readClimatology(ctx, &scene); err != nil {
		return nil, err
	}
	raw := slices.Clone(all)
	type place struct{ granule, field int }
	var places []place
	for n, g := range all {
		if !g.Fields[0].Grid.Same(scene.Grid) {
			continue
		}
		all[n], out[n] = ownCopy(g), Screened{Tests: s.Tests, Counts: s.Tests.Counts()}
		if err := s.thaw(ctx, &all[n], &out[n]); err != nil {
			return nil, err
		}
		g = all[n]
		for i, f := range g.Fields {
			values := make([]float32, len(f.Values))
			like.Transform.Forward(values, f.Values)
			scene.Frames, places = append(scene.Frames, quality.Frame{Time: f.Time, Values: values}), append(places, place{n, i})
		}
	}
	if s.Tests.Any() {
		s.Tests.ScreenSeries(scene, func(frame int, v quality.Verdict) {
			at := places[frame]
			v.Count(out[at.granule].Counts)
			v.Refuse(all[at.granule].Fields[at.field].Values, all[at.granule].Rejected[at.field])
		})
	}
	for i, g := range all {
		if out[i].Counts != nil {
			out[i].Taken = taken(raw[i], g)
		}
	}
	return out, nil
}

// taken returns the cells that were observed in a granule and are not any more, of
// all its fields.
func taken(before, after ingest.Granule) field.Mask {
	var out field.Mask
	for i, f := range before.Fields {
		for c := range f.Values {
			out = append(out, f.Observed(c) && !after.Fields[i].Observed(c))
		}
	}
	return out
}

// TakeOut returns a granule without the cells that a screening took out of it.
func TakeOut(g ingest.Granule, taken field.Mask) ingest.Granule {
	if taken == nil {
		return g
	}
	g = ownCopy(g)
	for i, f := range g.Fields {
		n := min(len(f.Values), len(taken))
		for c, out := range taken[:n] {
			if out {
				f.Values[c], g.Rejected[i][c] = field.NaN(), true
			}
		}
		taken = taken[n:]
	}
	return g
}

// ownCopy returns a granule whose values and refusals can be changed.
func ownCopy(g ingest.Granule) ingest.Granule {
	fields, rejected := slices.Clone(g.Fields), make([]field.Mask, len(g.Fields))
	for i, f := range fields {
		fields[i].Values = slices.Clone(f.Values)
		rejected[i] = make(field.Mask, len(f.Values))
		if i < len(g.Rejected) {
			copy(rejected[i], g.Rejected[i])
		}
	}
	g.Fields, g.Rejected = fields, rejected
	return g
}

// climatology are the maps of a file on a grid.
type climatology struct {
	grid  field.Grid
	times []time.Time
	maps  []quality.Climatology
}

// readClimatology gives a scene the climatology of the file, where there is one.
// Of a file that cannot be used the configuration is at fault, and no granule.
func (s *Screening) readClimatology(ctx context.Context, scene *quality.Scene) error {
	r := s.Tests.Range
	if !r.On || r.File == "" {
		return nil
	}
	if s.climatology == nil || !s.climatology.grid.Same(scene.Grid) {
		var maps [2][]field.Field
		for i, variable := range []string{r.Mean, r.Std} {
			g, err := s.Reader.Read(ctx, r.File, ingest.Options{Variable: variable, Transform: "identity"})
			if err != nil {
				return fmt.Errorf("climatology for the test of the range: %v", err) //nolint:errorlint // a *BadGranule would set the granule in hand aside
			}
			if !g.Fields[0].Grid.Same(scene.Grid) {
				return fmt.Errorf("the climatology %s is on another grid (%v) than the dataset (%v): give range.file on its grid", filepath.Base(r.File), g.Fields[0].Grid, scene.Grid)
			}
			maps[i] = g.Fields
		}
		kept := &climatology{grid: scene.Grid, times: field.Times(maps[0])}
		for i, mean := range maps[0] {
			kept.maps = append(kept.maps, quality.Climatology{Mean: mean.Values, Std: maps[1][min(i, len(maps[1])-1)].Values})
		}
		s.climatology = kept
	}
	scene.Climatology = s.climatology.at
	return nil
}

// at returns the map whose day of the year is nearest to a time.
func (c *climatology) at(t time.Time) quality.Climatology {
	const year = 365.25
	best, least := 0, math.Inf(1)
	for i, of := range c.times {
		apart := math.Abs(float64(t.UTC().YearDay() - of.UTC().YearDay()))
		if apart = min(apart, year-apart); apart < least {
			best, least = i, apart
		}
	}
	return c.maps[best]
}
