package netcdf

import (
	"cmp"
	"slices"
	"strings"

	"lacuna/internal/cdl"
)

// passOn returns f with the maps that the input has beside the variable, its
// quality and its errors, as a product carries them: their numbers as they are,
// their attributes as CF wants them, and another name where a variable of the
// product has theirs.
func (p *Product) passOn(f File, found axes) File {
	if value(p.Source.Attrs, "lacuna_revision") != nil { // a product of ours: its facts are not those of this one
		f.Vars = slices.DeleteFunc(f.Vars, func(v Var) bool { return slices.Contains(factNames(), v.Name) && !p.Source.isMap(v, p.Variable) })
	}
	data := slices.IndexFunc(f.Vars, func(v Var) bool { return v.Name == p.Variable })
	own := append(factNames(), "flags")
	for _, suffix := range []string{"uncertainty", "lower", "upper"} {
		own = append(own, p.Variable+"_"+suffix)
	}
	for _, x := range p.Extras {
		own = append(own, p.Variable+"_"+x.Suffix)
	}
	ancillary := strings.Fields(text(f.Vars[data].Attrs, "ancillary_variables"))
	for i, v := range f.Vars {
		if !f.isMap(v, p.Variable) || found.has(v.Name) {
			continue
		}
		if slices.Contains(own, v.Name) {
			f.Vars[i].Name = f.freeName(v.Name + "_input")
			if at := slices.Index(ancillary, v.Name); at >= 0 {
				ancillary[at] = f.Vars[i].Name
			}
		}
		f.Vars[i].Attrs = mendInput(v)
		if units := cmp.Or(text(f.Vars[data].Attrs, "units"), p.Units); v.Name == p.Variable+"_uncertainty" && units != "" {
			f.Vars[i].Attrs = withDefault(f.Vars[i].Attrs, "units", units) // those of the variable, where a producer takes that for granted
		}
	}
	if len(ancillary) > 0 {
		f.Vars[data].Attrs = with(f.Vars[data].Attrs, "ancillary_variables", strings.Join(ancillary, " "))
	}
	return f
}

// isMap reports whether v is a map, or a stack of them, on the grid of a
// variable beside it and no coordinate of it.
func (f File) isMap(v Var, variable string) bool {
	data, _ := f.variable(variable)
	n, m := len(v.Dims), len(data.Dims)
	return v.Name != variable && n >= 2 && m >= 2 && slices.Equal(v.Dims[n-2:], data.Dims[m-2:]) &&
		!slices.Contains(strings.Fields(text(data.Attrs, "coordinates")), v.Name)
}

// mendInput returns the attributes of a map of the input. Those that CF wants in
// the type of the variable are put into it, or left out where that cannot be.
func mendInput(v Var) []Attr {
	attrs := v.Attrs
	for _, name := range []string{"_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "actual_range", "flag_values", "flag_masks"} {
		old := value(attrs, name)
		if old == nil || cdl.TypeOf(old) == v.Type {
			continue
		}
		if mended := retype(old, v.Type); mended != nil && cdl.TypeOf(old) != "char" {
			attrs = with(attrs, name, mended)
		} else {
			attrs = without(attrs, name)
		}
	}
	attrs = withDefault(attrs, "long_name", strings.ReplaceAll(v.Name, "_", " ")+" of the input")
	if text(attrs, "units") != "" {
		attrs = mendUnits(attrs)
	}
	return with(attrs, "coverage_content_type", "qualityInformation")
}
