package pages

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"lacuna/ops"
	"lacuna/pipeline/ingest"
	"lacuna/publish/netcdf"
)

// Map implements ops.Granules. It reads the file of the revision as granules
// are read, in a child process.
func (w granules) Map(ctx context.Context, id ops.GranuleID, field int) (ops.Map, error) {
	_, row, err := w.revision(ctx, id)
	if err != nil {
		return ops.Map{}, err
	}
	deliveries, err := w.book.Deliveries(ctx, id.Dataset, id.Name)
	if err != nil {
		return ops.Map{}, err
	}
	file := productFile(row, deliveries)
	if file == "" {
		return ops.Map{}, fmt.Errorf("product of %s: %w", id.Name, ops.ErrNotFound)
	}
	for _, d := range deliveries {
		if d.Publication.Revision == row.Revision {
			return readMap(ctx, w.reader, file, toldOf(d.Publication).Variable, field)
		}
	}
	return ops.Map{}, fmt.Errorf("product of %s: %w", id.Name, ops.ErrNotFound)
}

// readMap reads a field of a product, with its uncertainty and flags.
func readMap(ctx context.Context, reader Reader, file, variable string, field int) (ops.Map, error) {
	read := func(variable string) (ingest.Granule, ingest.Var, error) {
		g, err := reader.Read(ctx, file, ingest.Options{Variable: variable, Transform: "identity"})
		if err != nil {
			return g, ingest.Var{}, err
		}
		v, ok := g.Source.Var(variable)
		if !ok {
			return g, v, fmt.Errorf("%s has no variable %s", g.Name, variable)
		}
		return g, v, nil
	}
	g, value, err := read(variable)
	if err != nil {
		return ops.Map{}, err
	}
	if field >= len(g.Fields) {
		return ops.Map{}, fmt.Errorf("field %d of %s: %w", field+1, g.Name, ops.ErrNotFound)
	}
	companions := strings.Fields(attrText(value, "ancillary_variables"))
	names := netcdf.NamesIn(g.Source.Attrs, variable)
	_, sigma, err := read(companion(companions, names.Uncertainty))
	if err != nil {
		return ops.Map{}, err
	}
	_, flags, err := read(companion(companions, names.Flags))
	if err != nil {
		return ops.Map{}, err
	}
	f := g.Fields[field]
	n := f.Grid.Len()
	// The numbers are used as stored: a reader that knows the variable's name might
	// reject some.
	sigmas, log := netcdf.Sigma(sigma)
	if len(sigmas) != n*len(g.Fields) || len(flags.Raw) != n*len(g.Fields) {
		return ops.Map{}, fmt.Errorf("%s: %s or %s is not as large as %s", g.Name, sigma.Name, flags.Name, variable)
	}
	m := ops.Map{
		Variable: attrText(value, "long_name"), Units: attrText(value, "units"), Time: f.Time, Lat: f.Grid.Lat, Lon: f.Grid.Lon,
		Value: f.Values, Sigma: sigmas[n*field : n*(field+1)], Flags: flags.Raw[n*field : n*(field+1)],
	}
	if p := f.Grid.Plane; p != nil {
		for c := range n {
			m.Places[0], m.Places[1] = append(m.Places[0], float32(p.Lat[c])), append(m.Places[1], float32(p.Lon[c]))
		}
	}
	if m.SigmaUnits = attrText(sigma, "units"); log {
		m.Log, m.SigmaUnits = true, "of log10"
	}
	for i, flag := range m.Flags {
		if flag&netcdf.Land != 0 {
			m.Value[i] = float32(math.NaN())
		}
	}
	return m, nil
}

// companion returns the ancillary variable of that name, else the one whose name
// begins with it: earlier versions added a suffix where a name was taken.
func companion(all []string, name string) string {
	if slices.Contains(all, name) {
		return name
	}
	for _, c := range all {
		if strings.HasPrefix(c, name) {
			return c
		}
	}
	return name
}

func attrText(v ingest.Var, name string) string {
	for _, a := range v.Attrs {
		if s, ok := a.Value.(string); ok && a.Name == name {
			return s
		}
	}
	return ""
}
