package ingest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"lacuna/internal/cdl"
	"lacuna/pipeline/ingest/places"
)

// squeezed returns dims without leading dimensions of length 1, down to two.
func squeezed(h *header, dims []int) []int {
	for len(dims) > 2 && h.Dims[dims[0]].Len == 1 {
		dims = dims[1:]
	}
	return dims
}

// findPlane finds latitude and longitude that are maps themselves, lat(y, x) and
// lon(y, x), where the file has no axes that are as sure: an index or a name
// alone says less than units. Whether they belong to a regular grid is seen from
// their numbers.
func (a *axes) findPlane(h *header) bool {
	plane := func(dims []int) bool { d := squeezed(h, dims); return len(d) == 2 && d[0] != d[1] }
	line := func(dims []int) bool { return len(dims) == 1 }
	lat, latHow := best(h, latKind, plane)
	lon, lonHow := best(h, lonKind, plane)
	if lat < 0 || lon < 0 || !slices.Equal(squeezed(h, h.Vars[lat].Dims), squeezed(h, h.Vars[lon].Dims)) {
		return false
	}
	lat1, lat1How := best(h, latKind, line)
	lon1, lon1How := best(h, lonKind, line)
	if lat1 >= 0 && lon1 >= 0 && (min(lat1How, lon1How) >= byUnits || min(latHow, lonHow) < byUnits) {
		return false
	}
	dims := squeezed(h, h.Vars[lat].Dims)
	a.lat, a.lon, a.latDim, a.lonDim, a.plane = lat, lon, dims[0], dims[1], true
	return true
}

// axesOfPlane returns the axes of coordinates that are maps of height by width
// cells, and nil where these are not those of a regular grid.
func (x *extract) axesOfPlane(lat, lon []float64) (rows, cols []float64, err error) {
	h, a := x.header, x.plan.axes
	height, width := h.Dims[a.latDim].Len, h.Dims[a.lonDim].Len
	if len(lat) != height*width || len(lon) != height*width {
		return nil, nil, fmt.Errorf("the decoding child sent %d and %d coordinates for %d cells", len(lat), len(lon), height*width)
	}
	rows, cols, swapped := places.Axes(lat, lon, height, width)
	if swapped {
		y, name := h.Dims[a.latDim].Name, h.Dims[a.lonDim].Name
		return nil, nil, bad(fmt.Sprintf("its latitude runs along %s, its last dimension, and its longitude along %s", name, y),
			fmt.Sprintf("swap them with: ncpdq -a %s,%s IN.nc OUT.nc", name, y))
	}
	return rows, cols, nil
}

// An axisVar is a coordinate of the source whose stored numbers are not the axis
// of the grid: a map, or longitudes that jump at the date line. A product has
// the axis in its place.
type axisVar struct {
	numbers []float64
	dim     int // dimension of the axis
}

// made returns a coordinate variable of the axis, in the precision of the source.
func (r axisVar) made(h *header, v *headerVar) Var {
	out := Var{Name: v.Name, Type: "double", Dims: []string{h.Dims[r.dim].Name}}
	if v.Type == "float" {
		out.Type = "float"
	}
	// Packing, and limits that the counted-on longitudes may pass.
	gone := []string{"scale_factor", "add_offset", "_Unsigned", "_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "actual_range"}
	for _, a := range typed(v.Attrs) {
		if !slices.Contains(gone, a.Name) {
			out.Attrs = append(out.Attrs, a)
		}
	}
	out.Raw = rawFloats(out.Type, r.numbers)
	return out
}

func rawFloats(typ string, x []float64) []byte {
	var raw []byte
	for _, v := range x {
		if typ == "float" {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		} else {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		}
	}
	return raw
}

// bounds returns the bounds of the axis, from the stored ones: those of a map are
// left out, and so are packed ones, which may have no room for the turn.
func (r axisVar) bounds(h *header, v *headerVar, raw []byte) (Var, bool) {
	if len(v.Dims) != 2 || v.Dims[0] != r.dim || !isFloat(v.Type) || v.Attr("scale_factor") != nil || v.Attr("add_offset") != nil {
		return Var{}, false
	}
	x := cdl.Floats(v.Type, raw)
	each := h.Dims[v.Dims[1]].Len
	if each == 0 || len(x) != each*len(r.numbers) {
		return Var{}, false
	}
	for i := range x {
		x[i] += 360 * math.Round((r.numbers[i/each]-x[i])/360)
	}
	return Var{Name: v.Name, Type: v.Type, Dims: dimNames(h, v.Dims), Attrs: typed(v.Attrs), Raw: rawFloats(v.Type, x)}, true
}

// place makes the axis that a map was reduced to the coordinate of its dimension:
// the dimension takes the name of the variable, as CF and xarray want it. Where
// either name is in use for something else, the variable is listed among the
// coordinates of the data instead.
func (s *Source) place(dim, axis string) {
	_, taken := s.Var(dim)
	taken = taken || slices.ContainsFunc(s.Dims, func(d Dim) bool { return d.Name == axis })
	for i := range s.Vars {
		v := &s.Vars[i]
		words := slices.DeleteFunc(strings.Fields(textIn(v.Attrs, "coordinates")), func(w string) bool { return w == axis })
		if taken && v.Name == s.Variable {
			words = append(words, axis)
		}
		if v.Name == s.Variable || textIn(v.Attrs, "coordinates") != "" {
			v.Attrs = withText(v.Attrs, "coordinates", strings.Join(words, " "))
		}
		if at := slices.Index(v.Dims, dim); at >= 0 && !taken {
			v.Dims[at] = axis
		}
	}
	for i := range s.Dims {
		if s.Dims[i].Name == dim && !taken {
			s.Dims[i].Name = axis
		}
	}
}

func textIn(attrs []Attr, name string) string {
	for _, a := range attrs {
		if text, ok := a.Value.(string); ok && a.Name == name {
			return text
		}
	}
	return ""
}

// withText returns attrs with a text in place of the attribute of that name;
// without the attribute where the text is empty.
func withText(attrs []Attr, name, text string) []Attr {
	out := slices.DeleteFunc(slices.Clone(attrs), func(a Attr) bool { return a.Name == name })
	if text == "" {
		return out
	}
	return append(out, Attr{Name: name, Value: text})
}
