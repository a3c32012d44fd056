package netcdf

import (
	"fmt"
	"regexp"
	"strings"

	"lacuna/internal/cdl"
)

// coordinates returns f with its coordinates as CF wants them: attributes
// mended, never the numbers; a depth added where the input has none. It returns
// the names of scalar coordinates too, which a field must point at.
func (p *Product) coordinates(f File, found axes) (File, []string) {
	for i, v := range f.Vars {
		if which := found.of(v.Name); which != noAxis {
			f.Vars[i].Attrs = mendAxis(v, which)
		}
	}
	if found[vertical] == "" {
		v := Var{Name: f.freeName("depth"), Type: "float", Attrs: mendAxis(Var{}, vertical), Raw: rawFloats([]float32{0}, 0)}
		f.Vars = append([]Var{v}, f.Vars...)
		found[vertical] = v.Name
	}
	var scalars []string
	for _, v := range f.Vars {
		if found.has(v.Name) && len(v.Dims) != 1 { // a single place, or one for each cell
			scalars = append(scalars, v.Name)
		}
	}
	return f, scalars
}

// cells returns how many numbers a variable has.
func cells(f File, name string) int {
	v, _ := f.variable(name)
	return len(v.Raw) / max(1, cdl.SizeOf(v.Type))
}

// mendAxis returns the attributes of a coordinate variable with those that CF
// asks for. A coordinate has no missing values, so it names none.
func mendAxis(v Var, which axis) []Attr {
	attrs := without(v.Attrs, "_FillValue", "missing_value")
	for _, name := range []string{"valid_min", "valid_max", "valid_range", "actual_range"} {
		if old := value(attrs, name); old != nil && retype(old, v.Type) == nil {
			attrs = without(attrs, name)
		} else if old != nil {
			attrs = with(attrs, name, retype(old, v.Type))
		}
	}
	switch which {
	case latitude:
		attrs = with(with(attrs, "standard_name", "latitude"), "units", "degrees_north")
		attrs = withDefault(axisOf(attrs, v, "Y"), "long_name", "latitude")
	case longitude:
		attrs = with(with(attrs, "standard_name", "longitude"), "units", "degrees_east")
		attrs = withDefault(axisOf(attrs, v, "X"), "long_name", "longitude")
	case timeAxis:
		attrs = mendTime(with(with(attrs, "standard_name", "time"), "axis", "T"))
		attrs = withDefault(attrs, "long_name", "time")
	case vertical:
		attrs = withDefault(withDefault(attrs, "standard_name", "depth"), "units", "m")
		positive := "down"
		if text(attrs, "standard_name") != "depth" {
			positive = "up"
		}
		attrs = withDefault(with(attrs, "axis", "Z"), "positive", positive)
		attrs = withDefault(attrs, "long_name", "nominal depth of the sea surface")
	}
	return with(attrs, "coverage_content_type", "coordinate")
}

// axisOf returns the attributes of a coordinate with the axis that it is: none
// where it has a number for each cell.
func axisOf(attrs []Attr, v Var, axis string) []Attr {
	if len(v.Dims) > 1 {
		return without(attrs, "axis")
	}
	return with(attrs, "axis", axis)
}

// datedUnits are units of time with a date to count from, after CF.
var datedUnits = regexp.MustCompile(`^\s*[A-Za-z]+\s+since\s+[-+]?\d{1,4}-\d{1,2}-\d{1,2}([ T].*)?$`)

// mendTime gives a time coordinate units that can be decoded.
func mendTime(attrs []Attr) []Attr {
	units := text(attrs, "units")
	if !datedUnits.MatchString(units) {
		word, _, ok := strings.Cut(units, " since ")
		if !ok {
			word = "days"
		}
		attrs = with(attrs, "units", word+" since 1970-01-01")
		note := fmt.Sprintf("the input counts %q, which names no date; 1970-01-01 stands in for it", units)
		attrs = with(attrs, "comment", join("; ", text(attrs, "comment"), note))
	}
	calendar := strings.ToLower(text(attrs, "calendar"))
	if calendar == "" {
		calendar = "standard"
	}
	// A month or a year has a definite length in one calendar only; readers
	// refuse the unit in others. On its days of the year the dates come out
	// as those of the real calendar.
	if word := strings.ToLower(units); strings.HasPrefix(word, "month") || strings.HasPrefix(word, "year") {
		calendar = "360_day"
		attrs = with(attrs, "comment", join("; ", text(attrs, "comment"),
			"calendar months or years, as in the input; calendar 360_day makes readers count them so"))
	}
	return with(attrs, "calendar", calendar)
}

// freeName returns a name for a new variable that is neither that of a
// variable nor of a dimension.
func (f File) freeName(name string) string {
	for {
		_, taken := f.variable(name)
		for _, d := range f.Dims {
			taken = taken || d.Name == name
		}
		if !taken {
			return name
		}
		name += "_l4"
	}
}

// join joins the texts that are not empty.
func join(sep string, parts ...string) string {
	var said []string
	for _, s := range parts {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, sep)
}
