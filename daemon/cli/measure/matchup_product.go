package measure

import (
	"context"
	"fmt"
	"image"
	"io"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/lab/chart"
	"lacuna/pipeline/matchup"
	"lacuna/publish/netcdf"
)

// product is a file of products: its maps, and what they are of.
type product struct {
	variable, units string
	names           []string // of what is measured
	transform       field.Transform
	maps            []matchup.Map
}

// readProduct reads the maps of a file, with uncertainty, quantiles and flags as
// far as it has them.
func readProduct(ctx context.Context, reader *ingest.Reader, path, variable string) (product, error) {
	g, err := reader.Read(ctx, path, ingest.Options{Variable: variable})
	if err != nil {
		return product{}, err
	}
	v, _ := g.Source.Var(g.Source.Variable)
	p := product{
		variable: g.Source.Variable, units: text(v, "units"), transform: g.Transform,
		names: []string{g.Source.Variable, text(v, "standard_name"), g.Product},
	}
	beside := func(name string) ([]field.Field, error) {
		if !slices.Contains(strings.Fields(text(v, "ancillary_variables")), name) {
			return make([]field.Field, len(g.Fields)), nil // not told
		}
		read, err := reader.Read(ctx, path, ingest.Options{Variable: name, Transform: "identity"})
		if err == nil && len(read.Fields) != len(g.Fields) {
			err = fmt.Errorf("%s: %s has %d fields, %s %d", g.Name, name, len(read.Fields), p.variable, len(g.Fields))
		}
		if v, _ := read.Source.Var(name); err == nil && text(v, "units") == "%" { // of a log-normal value, in the layout cmems
			sigma, _ := netcdf.Sigma(v)
			n := len(sigma) / len(read.Fields)
			for i := range read.Fields {
				read.Fields[i].Values = sigma[i*n : (i+1)*n]
			}
		}
		return read.Fields, err
	}
	names := netcdf.NamesIn(g.Source.Attrs, p.variable)
	var companions [4][]field.Field
	for i, name := range []string{names.Uncertainty, p.variable + "_lower", p.variable + "_upper", names.Flags} {
		if companions[i], err = beside(name); err != nil {
			return product{}, err
		}
	}
	for i, f := range g.Fields {
		p.maps = append(p.maps, matchup.Map{
			Grid: f.Grid, Time: middle(g, i), Values: f.Values, Sigma: companions[0][i].Values, Lower: companions[1][i].Values,
			Upper: companions[2][i].Values, Filled: filled(companions[3][i].Values),
		})
	}
	return p, nil
}

// middle is that of the time that a field stands for.
func middle(g ingest.Granule, i int) time.Time {
	if g.Bounds == nil || g.Bounds[i][1].Before(g.Bounds[i][0]) {
		return g.Fields[i].Time
	}
	begin, end := g.Bounds[i][0], g.Bounds[i][1]
	return begin.Add(end.Sub(begin) / 2)
}

// filled returns which cells of a product were filled, by its flags; nil: it has
// none.
func filled(flags []float32) []bool {
	if flags == nil {
		return nil
	}
	all := make([]bool, len(flags))
	for i, f := range flags {
		all[i] = f == f && !infer.Observed(byte(f))
	}
	return all
}

func text(v ingest.Var, name string) string {
	for _, a := range v.Attrs {
		if s, ok := a.Value.(string); ok && a.Name == name {
			return s
		}
	}
	return ""
}

// addProducts pairs measurements with the maps of all files, and returns how many
// there are. A file of another variable or other units is an error.
func addProducts(ctx context.Context, reader *ingest.Reader, paths []string, first product, m *matchup.Matcher, stderr io.Writer) (fields int, err error) {
	bar := cli.NewProgress(stderr, "products", len(paths))
	defer bar.Finish()
	p := first
	for i, path := range paths {
		if i > 0 {
			if p, err = readProduct(ctx, reader, path, first.variable); err != nil {
				return 0, err
			}
		}
		if p.units != first.units || p.transform.Log10 != first.transform.Log10 {
			return 0, fmt.Errorf("%s has %s in %q, %s in %q: score the products of one dataset at a time", path, p.variable, p.units, paths[0], first.units)
		}
		for _, one := range p.maps {
			m.Add(one)
			fields++
		}
		bar.Set(i+1, len(paths))
	}
	return fields, nil
}

// scatter draws the pairs, filled cells and observed ones apart.
func scatter(r matchupReport, pairs []matchup.Pair) image.Image {
	unit := r.Units
	if r.Space == "log10" {
		unit = "log10 of " + r.Units
	}
	s := r.Scores[0]
	d := chart.Diagram{
		Title:  fmt.Sprintf("%s: n %d, bias %s, RMSE %s, %s in the 90 %% interval", r.Variable, s.N, measured("%+.3f", s.Bias), measured("%.3f", s.RMSE), percent(s.Coverage90)),
		XLabel: fmt.Sprintf("measured, %s", unit), YLabel: fmt.Sprintf("product, %s", unit),
	}
	for _, kind := range []string{matchup.Filled, matchup.Observed, matchup.NotTold} {
		c := chart.Curve{Name: kind}
		for _, p := range pairs {
			if p.Cells == kind {
				c.X, c.Y = append(c.X, p.InSitu), append(c.Y, p.Product)
			}
		}
		if len(c.X) > 0 {
			d.Curves = append(d.Curves, c)
		}
	}
	return chart.Scatter(d)
}
