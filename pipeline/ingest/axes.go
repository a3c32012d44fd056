package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lacuna/internal/cdl"
	"lacuna/internal/geo"
)

// axes are the variables that place a field in space and time.
type axes struct {
	lat, lon       int // variables
	time           int // variable, or -1
	latDim, lonDim int
	timeDim        int  // dimension, or -1 where time is a single number or absent
	plane          bool // lat and lon are maps themselves, lat(y, x) and lon(y, x)
	mapped         mapped
	notes          []string
}

// An axisKind is how CF lets one recognise a coordinate, surest first.
type axisKind struct {
	name         string
	standardName string
	units        func(string) bool
	axis         string
	names        []string // usual names in files without attributes
}

var (
	latKind = axisKind{
		name: "latitude", standardName: "latitude", axis: "Y",
		units: func(u string) bool { return degrees(u, "north", "n") },
		names: []string{"lat", "latitude", "nav_lat", "lats", "y"},
	}
	lonKind = axisKind{
		name: "longitude", standardName: "longitude", axis: "X",
		units: func(u string) bool { return degrees(u, "east", "e") },
		names: []string{"lon", "longitude", "nav_lon", "lons", "long", "x"},
	}
	timeKind = axisKind{
		name: "time", standardName: "time", axis: "T",
		units: func(u string) bool { return strings.Contains(u, " since ") },
		names: []string{"time", "t", "date"},
	}
)

// degrees reports whether u is a CF spelling of degrees in a direction, or
// one of the frequent misspellings with a space.
func degrees(u string, directions ...string) bool {
	u = strings.NewReplacer(" ", "", "_", "").Replace(strings.ToLower(u))
	rest, ok := strings.CutPrefix(u, "degree")
	if !ok {
		return false
	}
	return slices.Contains(directions, strings.TrimPrefix(rest, "s")) || slices.Contains(directions, rest)
}

// How surely a variable was recognised.
const (
	notRecognised = iota
	byName
	byAxis
	byUnits
	byStandardName
)

func (k axisKind) recognise(v *headerVar) int {
	units, axis := v.Text("units"), v.Text("axis")
	switch name := v.Text("standard_name"); {
	case name == k.standardName:
		return byStandardName
	case name != "":
		return notRecognised // its standard name is another
	case k.units(units):
		return byUnits
	case strings.EqualFold(axis, k.axis) && !projected(units):
		return byAxis
	case axis == "" && slices.Contains(k.names, strings.ToLower(v.Name)) && !projected(units):
		return byName
	}
	return notRecognised
}

// projected reports whether u is a length, so that an axis counts along a map
// projection.
func projected(u string) bool {
	switch strings.ToLower(u) {
	case "m", "metre", "meter", "metres", "meters", "km", "kilometre", "kilometer", "kilometres", "kilometers":
		return true
	}
	return false
}

// findAxes finds latitude, longitude and time.
func findAxes(h *header) (axes, error) {
	a := axes{timeDim: -1}
	if a.findPlane(h) {
		if err := a.findMapping(h); err != nil && !errors.Is(err, geo.ErrUnknown) {
			return axes{}, bad(err.Error(), "tell its producer, or leave the mapping out with: ncks -x -v NAME IN.nc OUT.nc")
		}
	} else if err := a.findLines(h); err != nil {
		found, why := a.findProjected(h)
		if why != nil {
			return axes{}, why
		}
		if !found {
			return axes{}, err
		}
	}
	a.time, _ = best(h, timeKind, func(dims []int) bool { // leaves out the time of each scan line
		return len(dims) == 0 || len(dims) == 1 && dims[0] != a.latDim && dims[0] != a.lonDim
	})
	if a.time >= 0 && len(h.Vars[a.time].Dims) == 1 {
		a.timeDim = h.Vars[a.time].Dims[0]
	}
	return a, nil
}

// findLines finds latitude and longitude that are axes.
func (a *axes) findLines(h *header) (err error) {
	if a.lat, err = a.find(h, latKind); err != nil {
		return err
	}
	if a.lon, err = a.find(h, lonKind); err != nil {
		return err
	}
	a.latDim, a.lonDim = h.Vars[a.lat].Dims[0], h.Vars[a.lon].Dims[0]
	if a.latDim == a.lonDim {
		return bad("its latitude and longitude share the dimension "+h.Dims[a.latDim].Name+", so it holds an unstructured grid, a track or a list of points, not a map",
			"map it to a regular grid first, for example with: cdo remapnn,r1440x720 IN.nc OUT.nc")
	}
	return nil
}

func (a *axes) find(h *header, k axisKind) (int, error) {
	v, how := best(h, k, func(dims []int) bool { return len(dims) == 1 })
	if v >= 0 {
		if how == byName {
			a.notes = append(a.notes, fmt.Sprintf("variable %s is taken for %s by its name only: it has no standard_name, units or axis that says so",
				h.Vars[v].Name, k.name))
		}
		return v, nil
	}
	if curved, _ := best(h, k, func(dims []int) bool { return len(dims) == 2 }); curved >= 0 {
		return -1, bad(fmt.Sprintf("its %s is two-dimensional, so the grid is curvilinear or a swath", h.Vars[curved].Name),
			regridding)
	}
	return -1, bad(fmt.Sprintf("it has no %s coordinate among its variables %s", k.name, list(names(h))),
		fmt.Sprintf("give the coordinate the attribute standard_name = %q", k.standardName))
}

// best returns the variable that most surely is of kind k, among those whose
// dimensions are accepted, or -1. A tie goes to a coordinate variable, which
// has the name of its dimension, and then to the first of the file.
func best(h *header, k axisKind, accept func(dims []int) bool) (v, how int) {
	v = -1
	score := 0
	for i := range h.Vars {
		x := &h.Vars[i]
		if !accept(x.Dims) || !numeric(x.Type) {
			continue
		}
		r := k.recognise(x)
		s := 2 * r
		if len(x.Dims) == 1 && h.Dims[x.Dims[0]].Name == x.Name {
			s++
		}
		if r != notRecognised && s > score {
			v, how, score = i, r, s
		}
	}
	return v, how
}

func numeric(typ string) bool { return typ != "char" && cdl.SizeOf(typ) > 0 }

func names(h *header) []string {
	out := make([]string, len(h.Vars))
	for i, v := range h.Vars {
		out[i] = v.Name
	}
	return out
}
