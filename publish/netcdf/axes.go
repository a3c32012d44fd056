package netcdf

import (
	"fmt"
	"slices"
	"strings"
)

// axis is the kind of a coordinate.
type axis int

const (
	noAxis axis = iota
	latitude
	longitude
	timeAxis
	vertical
)

// axes are the coordinate variables of a file, by name; "" where there is
// none.
type axes map[axis]string

// findAxes looks for the coordinates of a variable. Latitude and longitude
// must be there.
func findAxes(f File, variable string) (axes, error) {
	found := axes{}
	bounds := boundsOf(f)
	data, _ := f.variable(variable)
	for _, identify := range []func(Var) axis{byStandardName, byUnits, byAxis, byName} {
		for _, v := range f.Vars {
			plane := isPlane(v, data)
			if v.Name == variable || bounds[v.Name] || len(v.Dims) > 1 && !plane || alongProjection(v) {
				continue
			}
			if a := identify(v); a != noAxis && (!plane || a == latitude || a == longitude) && found[a] == "" && !found.has(v.Name) {
				found[a] = v.Name
			}
		}
	}
	if found[latitude] == "" || found[longitude] == "" {
		return nil, fmt.Errorf("source has no coordinate variables for latitude and longitude")
	}
	return found, nil
}

// isPlane reports whether v may be a coordinate of every cell of the data.
func isPlane(v, data Var) bool {
	n, m := len(v.Dims), len(data.Dims)
	return n >= 2 && m >= 2 && slices.Equal(v.Dims[n-2:], data.Dims[m-2:]) && (byStandardName(v) != noAxis || byUnits(v) != noAxis)
}

// alongProjection reports whether v counts along a map projection, or along the
// circles of a rotated pole.
func alongProjection(v Var) bool {
	name := text(v.Attrs, "standard_name")
	return strings.HasPrefix(name, "projection_") || strings.HasPrefix(name, "grid_l") ||
		slices.Contains([]string{"m", "km", "meters", "metres", "kilometers", "kilometres"}, text(v.Attrs, "units")) && (byAxis(v) == latitude || byAxis(v) == longitude)
}

func (a axes) has(name string) bool {
	for _, n := range a {
		if n == name {
			return true
		}
	}
	return false
}

// of returns the axis that a variable is.
func (a axes) of(name string) axis {
	for which, n := range a {
		if n == name {
			return which
		}
	}
	return noAxis
}

func boundsOf(f File) map[string]bool {
	names := map[string]bool{}
	for _, v := range f.Vars {
		for _, attr := range []string{"bounds", "climatology", "grid_mapping"} {
			names[text(v.Attrs, attr)] = true
		}
	}
	return names
}

func byStandardName(v Var) axis {
	switch text(v.Attrs, "standard_name") {
	case "latitude":
		return latitude
	case "longitude":
		return longitude
	case "time":
		return timeAxis
	case "depth", "height", "altitude":
		return vertical
	}
	return noAxis
}

func byUnits(v Var) axis {
	units := strings.ToLower(text(v.Attrs, "units"))
	switch joined := strings.NewReplacer(" ", "", "_", "").Replace(units); {
	case slices.Contains([]string{"degreesnorth", "degreenorth", "degreen", "degreesn"}, joined):
		return latitude
	case slices.Contains([]string{"degreeseast", "degreeeast", "degreee", "degreese"}, joined):
		return longitude
	case strings.Contains(units, " since "):
		return timeAxis
	}
	return noAxis
}

func byAxis(v Var) axis {
	switch text(v.Attrs, "axis") {
	case "Y":
		return latitude
	case "X":
		return longitude
	case "T":
		return timeAxis
	case "Z":
		return vertical
	}
	return noAxis
}

func byName(v Var) axis {
	switch strings.ToLower(v.Name) {
	case "lat", "latitude", "nav_lat", "y":
		return latitude
	case "lon", "longitude", "nav_lon", "x":
		return longitude
	case "time", "t":
		return timeAxis
	case "depth", "height", "altitude", "lev", "z":
		return vertical
	}
	return noAxis
}
