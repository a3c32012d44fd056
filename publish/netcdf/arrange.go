package netcdf

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// arrange returns f, a file of p in the layout Plain, in the layout of p: the product
// or its members.
func (p *Product) arrange(f File) (File, error) {
	if p.Layout == "" || p.Layout == Plain {
		return f, nil
	}
	if err := p.CheckLayout(); err != nil {
		return File{}, err
	}
	found, err := findAxes(f, p.Variable)
	if err != nil {
		return File{}, err
	}
	f = File{Dims: slices.Clone(f.Dims), Vars: slices.Clone(f.Vars), Attrs: f.Attrs}
	if f, err = p.store(f); err != nil {
		return File{}, err
	}
	f = p.timesSince1981(f, found)
	f = p.renamed(f, found)
	names := p.Names()
	if names.Value == "analysed_sst" {
		if f, err = p.addMask(f); err != nil {
			return File{}, err
		}
	}
	globals := p.cmemsGlobals
	if p.Layout == GHRSST {
		globals = p.ghrsstGlobals
	}
	f.Attrs = append(globals(f), Attr{Name: layoutAttr, Value: string(p.Layout)},
		Attr{Name: namesAttr, Value: strings.Join([]string{names.Value, names.Uncertainty, names.Flags}, " ")})
	return f, p.needGrid(f)
}

// store returns f with the analysis and its uncertainty in the forms of the layout.
func (p *Product) store(f File) (File, error) {
	filled, _ := f.variable(p.Variable)
	for i, v := range f.Vars {
		to := p.valueForm()
		switch v.Name {
		case p.Variable:
		case p.Variable + uncertaintyEnding:
			if to = p.sigmaForm(); to != nil && to.percent {
				to.attrs = append(to.attrs, Attr{Name: "long_name", Value: text(filled.Attrs, "long_name") + " - Uncertainty estimation"})
			}
		default:
			continue
		}
		if to == nil {
			continue
		}
		var err error
		if f.Vars[i], err = to.stored(v); err != nil {
			return File{}, err
		}
	}
	return f, nil
}

// since1981 are the units of time of GHRSST, and of most of the catalogue. They are
// whole seconds in 32 bits, until 2049.
const since1981 = "seconds since 1981-01-01 00:00:00"

// timesSince1981 returns f with its times, and their bounds, in these units.
func (p *Product) timesSince1981(f File, found axes) File {
	epoch := time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC)
	count := func(t time.Time) float64 { return t.Sub(epoch).Round(time.Second).Seconds() }
	axis, _ := f.variable(found[timeAxis])
	for i, v := range f.Vars {
		switch v.Name {
		case axis.Name:
			v.Type, v.Raw = "int", nil
			for _, t := range p.Times {
				v.Raw = appendNumber(v.Raw, v.Type, count(t))
			}
			v.Attrs = without(v.Attrs, "scale_factor", "add_offset", "valid_min", "valid_max", "valid_range", "comment")
			v.Attrs = with(with(v.Attrs, "units", since1981), "calendar", "standard")
		case text(axis.Attrs, "bounds"):
			v.Type, v.Raw, v.Attrs = "double", nil, without(v.Attrs, "units", "calendar", "scale_factor", "add_offset")
			for _, b := range p.bounds() {
				v.Raw = appendNumber(appendNumber(v.Raw, v.Type, count(b[0])), v.Type, count(b[1]))
			}
		}
		f.Vars[i] = v
	}
	return f
}

// renamed returns f with the names of the layout: those of the analysis and of what
// accompanies it, and time, lat and lon for the coordinates and their dimensions. A
// variable of the input that has one of these names gets another.
func (p *Product) renamed(f File, found axes) File {
	names := p.Names()
	to := map[string]string{}
	for which, name := range map[axis]string{timeAxis: "time", latitude: "lat", longitude: "lon"} {
		to[found[which]] = name
	}
	to[p.Variable], to[p.Variable+uncertaintyEnding] = names.Value, names.Uncertainty
	ending := []string{"lower", "upper"}
	for _, x := range p.Extras {
		ending = append(ending, x.Suffix)
	}
	for _, e := range ending {
		to[p.Variable+"_"+e] = names.Value + "_" + e
	}
	taken := map[string]bool{"mask": true}
	for _, name := range to {
		taken[name] = true
	}
	rename := func(name string) string {
		if next, ok := to[name]; ok {
			return next
		}
		if taken[name] {
			return name + "_input"
		}
		return name
	}
	for i, d := range f.Dims {
		if next, ok := to[d.Name]; ok && found.has(d.Name) {
			f.Dims[i].Name = next
		}
	}
	for i, v := range f.Vars {
		v.Name, v.Dims = rename(v.Name), slices.Clone(v.Dims)
		for j, d := range v.Dims {
			if next, ok := to[d]; ok && found.has(d) {
				v.Dims[j] = next
			}
		}
		for _, attr := range []string{"ancillary_variables", "coordinates", "bounds", "grid_mapping", "cell_measures", "formula_terms"} {
			words := strings.Fields(text(v.Attrs, attr))
			for j, w := range words {
				bare := strings.TrimSuffix(w, ":")
				words[j] = rename(bare) + strings.TrimPrefix(w, bare)
			}
			if len(words) > 0 {
				v.Attrs = with(v.Attrs, attr, strings.Join(words, " "))
			}
		}
		f.Vars[i] = v
	}
	return f
}

// needGrid returns why the analysis does not run along time, lat and lon, which is
// what readers of the layout rely on, or nil.
func (p *Product) needGrid(f File) error {
	v, _ := f.variable(p.Names().Value)
	if n := len(v.Dims); p.Layout == GHRSST && !slices.Equal(v.Dims[max(0, n-3):], []string{"time", "lat", "lon"}) {
		return &LayoutError{p.Layout, fmt.Sprintf("%s runs along %v, not along time, lat and lon", p.Variable, v.Dims)}
	}
	return nil
}
