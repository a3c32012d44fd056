package sources

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/products"
)

// form is what all merged granules of a dataset have in common: grid, coordinates,
// variable and units. It is that of the first granule that was merged.
type form struct {
	from      string // name of a granule of it
	grid      field.Grid
	transform field.Transform
	product   string
	variable  ingest.Var // without numbers
	dims      []ingest.Dim
	coords    []ingest.Var
}

// suit returns the fields of a granule in the units and on the grid of the dataset,
// or a *ingest.BadGranule that says why it cannot be.
func (m *Merger) suit(source int, g ingest.Granule) ([]look, error) {
	if m.form == nil {
		f, err := m.findForm(g)
		if err != nil {
			return nil, err
		}
		m.form = f
	}
	own, _ := g.Source.Var(g.Source.Variable)
	units, want := textOf(own, "units"), textOf(m.form.variable, "units")
	scale, zero, ok := products.Between(units, want)
	if !ok {
		return nil, &ingest.BadGranule{
			File:    g.Name,
			Problem: fmt.Sprintf("its %s is in %q, but dataset %s is in %q, and no conversion is known", own.Name, units, m.dataset, want),
			Remedy:  fmt.Sprintf("convert the files of source %s, or make it a dataset of its own", m.sources[source].Name),
		}
	}
	if (scale != 1 || zero != 0) && m.first("units", source, units, want) {
		m.Log.Info("units of a source are converted", "source", m.sources[source].Name, "from", units, "to", want)
	}
	var looks []look
	for i, f := range g.Fields {
		order, ok := alike(f.Grid, m.form.grid)
		if !ok {
			return nil, &ingest.BadGranule{
				File:    g.Name,
				Problem: fmt.Sprintf("its grid is %v, that of dataset %s is %v%s", f.Grid, m.dataset, m.form.grid, shifted(f.Grid, m.form.grid)),
				Remedy:  m.form.regrid(m.sources[source].Name),
			}
		}
		l := look{day: f.Time.UTC().Truncate(24 * time.Hour), physical: order(f.Values)}
		if scale != 1 || zero != 0 {
			for c, v := range l.physical {
				l.physical[c] = float32(scale*float64(v) + zero)
			}
		}
		l.values = make([]float32, len(l.physical))
		m.form.transform.Forward(l.values, l.physical)
		if g.Errors != nil && g.Transform.Log10 == m.form.transform.Log10 {
			l.errors = order(g.Errors[i])
			if !m.form.transform.Log10 {
				for c := range l.errors {
					l.errors[c] *= float32(math.Abs(scale))
				}
			}
		}
		if f.Sea != nil {
			sea := order(asNumbers(f.Sea))
			l.sea = make(field.Mask, len(sea))
			for c, v := range sea {
				l.sea[c] = v == 1
			}
		}
		looks = append(looks, l)
	}
	return looks, nil
}

// regrid says how the files of a source come to the grid of the dataset.
func (f *form) regrid(source string) string {
	command := "lacuna grid DIR -o OTHER --like " + f.from
	if f.grid.Plane != nil {
		command = "cdo remapnn," + f.from + " IN.nc OUT.nc"
	}
	return fmt.Sprintf("bring the files of source %s to that grid with %s, and name that folder as its archive, or make it a dataset of its own", source, command)
}

func asNumbers(mask field.Mask) []float32 {
	out := make([]float32, len(mask))
	for i, b := range mask {
		if b {
			out[i] = 1
		}
	}
	return out
}

// alike returns the function that puts the cells of a grid into the order of
// another, and false where they have not the same cells: an axis may run the other
// way.
func alike(from, to field.Grid) (order func([]float32) []float32, ok bool) {
	if from.Same(to) {
		return slices.Clone[[]float32], true
	}
	for turn := 1; turn < 4; turn++ {
		lat, lon := slices.Clone(from.Lat), slices.Clone(from.Lon)
		if turn&1 != 0 {
			slices.Reverse(lat)
		}
		if turn&2 != 0 {
			slices.Reverse(lon)
		}
		if !(field.Grid{Lat: lat, Lon: lon}).Same(to) {
			continue
		}
		width, height := len(lon), len(lat)
		return func(values []float32) []float32 {
			out := make([]float32, len(values))
			for i := range out {
				y, x := i/width, i%width
				if turn&1 != 0 {
					y = height - 1 - y
				}
				if turn&2 != 0 {
					x = width - 1 - x
				}
				out[i] = values[y*width+x]
			}
			return out
		}, true
	}
	return nil, false
}

// shifted says how far a grid of the same size lies beside another; empty where it
// does not.
func shifted(a, b field.Grid) string {
	if a.Height() != b.Height() || a.Width() != b.Width() {
		return ""
	}
	lat, lon := a.Place(0, 0)
	wantLat, wantLon := b.Place(0, 0)
	return fmt.Sprintf(", from which it is shifted by %.4g° in latitude and %.4g° in longitude", lat-wantLat, field.Wrap(lon-wantLon))
}

// findForm returns the form of the dataset: that of its newest merged granule, else
// that of the granule in hand.
func (m *Merger) findForm(g ingest.Granule) (*form, error) {
	ctx := context.Background() // a single file of our own
	newest, known, err := m.Books.Newest(ctx, m.dataset)
	if err != nil {
		return nil, err
	}
	if known {
		if before, err := m.Reader.Read(ctx, newest.SpoolPath, ingest.Options{}); err == nil {
			return formOf(before), nil
		}
		m.Log.Warn("the newest merged granule cannot be read; the next one has the form of its first source", "granule", newest.Name)
	}
	return formOf(g), nil
}

// formOf returns the form of a granule.
func formOf(g ingest.Granule) *form {
	own, _ := g.Source.Var(g.Source.Variable)
	f := &form{from: g.Name, grid: g.Fields[0].Grid, transform: g.Transform, product: g.Product}
	plane := own.Dims[len(own.Dims)-2:]
	f.variable = ingest.Var{Name: own.Name, Type: "float", Dims: append([]string{"time"}, plane...)}
	for _, a := range own.Attrs {
		if slices.Contains([]string{"standard_name", "long_name", "units", "grid_mapping", "coordinates", "cell_methods"}, a.Name) {
			f.variable.Attrs = append(f.variable.Attrs, a)
		}
	}
	lengths := map[string]ingest.Dim{}
	for _, d := range g.Source.Dims {
		lengths[d.Name] = d
	}
	used := map[string]bool{"time": true}
	f.dims = []ingest.Dim{{Name: "time", Len: 1}}
	for _, v := range g.Source.Vars {
		if v.Name == own.Name || v.Name == "time" || !ofPlane(v, own, plane) {
			continue
		}
		f.coords = append(f.coords, v)
	}
	for _, v := range append(slices.Clone(f.coords), f.variable) {
		for _, d := range v.Dims {
			if !used[d] {
				used[d] = true
				f.dims = append(f.dims, ingest.Dim{Name: d, Len: lengths[d].Len})
			}
		}
	}
	return f
}

// ofPlane reports whether v describes the plane of the variable: an axis, its
// bounds, a map of coordinates or a grid mapping, and neither a time nor a map beside
// the variable.
func ofPlane(v, own ingest.Var, plane []string) bool {
	for _, d := range v.Dims {
		if slices.Contains(own.Dims, d) && !slices.Contains(plane, d) {
			return false
		}
	}
	if len(v.Dims) == 0 {
		return v.Name == textOf(own, "grid_mapping")
	}
	if v.Dims[0] == v.Name && !slices.Contains(plane, v.Name) {
		return false // an axis of something else
	}
	const degrees = "degree"
	units := textOf(v, "units")
	isMap := len(v.Dims) >= 2 && slices.Equal(v.Dims[len(v.Dims)-2:], plane)
	return !isMap || len(units) >= len(degrees) && units[:len(degrees)] == degrees
}

func textOf(v ingest.Var, attr string) string {
	for _, a := range v.Attrs {
		if words, ok := a.Value.(string); ok && a.Name == attr {
			return words
		}
	}
	return ""
}
