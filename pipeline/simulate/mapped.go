package simulate

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"lacuna/internal/cdl"
	"lacuna/internal/geo"
	"lacuna/pipeline/field"
)

// A Mapping is another grid than that of the product, on which the same sea is read
// off: the ocean is made on a grid three times as fine, and each cell of the other
// grid has the nearest cell of it.
type Mapping string

// The mappings. Steps are those of the regular grid, so a projected grid has a few
// more cells: it holds the whole region.
const (
	Regular  Mapping = "regular"              // the grid of the product
	Polar    Mapping = geo.PolarStereographic // about the pole, true to scale in the middle of the region
	Rotated  Mapping = geo.RotatedPole        // with the equator through the middle of the region
	DateLine Mapping = "date_line"            // the region moved to 180 degrees, with longitudes that jump there; files have a sea mask
)

// Mappings are all of them.
var Mappings = []Mapping{Regular, Polar, Rotated, DateLine}

// finer is how many cells of the ocean lie side by side in one of another grid.
const finer = 3

// A mapped is another grid and the cells of the ocean that it has.
type mapped struct {
	grid   field.Grid
	sea    field.Mask
	from   []int // cell of the chart; -1: outside of the region
	dims   [2]string
	coords []cdl.Var // axes and mapping, in place of lat and lon
	own    []cdl.Attr
}

// newMapped lays out a grid of the step of height × width cells of a region over a
// chart of it.
func newMapped(kind Mapping, r region, height, width int, c *chart) (*mapped, error) {
	middle, meridian := (r.south+r.north)/2, (r.west+r.east)/2
	stay := func(lat, lon float64) (float64, float64) { return lat, lon }
	switch kind {
	case Regular:
		grid, err := r.grid(height, width)
		if err != nil {
			return nil, err
		}
		return overlaid(grid, c, stay, axesOf(grid.Lat, grid.Lon)...), nil
	case DateLine:
		grid, err := r.grid(height, width)
		if err != nil {
			return nil, err
		}
		wrapped := make([]float64, width)
		for j, lon := range grid.Lon {
			wrapped[j] = field.Wrap(lon + 180 - meridian)
		}
		m := overlaid(field.Grid{Lat: grid.Lat, Lon: field.Unwrap(wrapped)}, c,
			func(lat, lon float64) (float64, float64) { return lat, lon - 180 + meridian }, axesOf(grid.Lat, wrapped)...)
		m.coords = append(m.coords, m.mask()) // the coasts are not those of the place
		return m, nil
	}
	attrs := []cdl.Attr{{Name: "grid_mapping_name", Value: string(kind)}}
	add := func(name string, v float64) { attrs = append(attrs, cdl.Attr{Name: name, Value: []float64{v}}) }
	dims, names, units, perDegree := [2]string{"rlat", "rlon"}, [2]string{"grid_latitude", "grid_longitude"}, "degrees", 1.0
	if kind == Polar {
		dims, names, units, perDegree = [2]string{"y", "x"}, [2]string{"projection_y_coordinate", "projection_x_coordinate"}, "m", 1000*kmPerDegree
		add("latitude_of_projection_origin", math.Copysign(90, middle))
		add("straight_vertical_longitude_from_pole", meridian)
		add("standard_parallel", middle)
		add("semi_major_axis", 6378137)
		add("inverse_flattening", 298.257223563)
	} else {
		add("grid_north_pole_latitude", 90-middle)
		add("grid_north_pole_longitude", field.Wrap(meridian+180))
	}
	p, err := geo.Of(string(kind), func(name string) (float64, bool) {
		i := slices.IndexFunc(attrs, func(a cdl.Attr) bool { return a.Name == name })
		if i < 1 {
			return 0, false
		}
		return attrs[i].Value.([]float64)[0], true
	})
	if err != nil {
		return nil, err
	}
	down, across := (r.north-r.south)/float64(height)*perDegree, (r.east-r.west)/float64(width)*math.Cos(middle*math.Pi/180)*perDegree
	y, x := projectedAxes(r, p, down, across)
	lat, lon := make([]float64, len(y)*len(x)), make([]float64, len(y)*len(x))
	for i := range lat {
		lat[i], lon[i] = p.Place(y[i/len(x)], x[i%len(x)])
	}
	grid, err := field.NewPlane(lat, lon, len(x), false, false)
	if err != nil {
		return nil, err
	}
	m := overlaid(grid, c, stay)
	m.dims, m.own = dims, []cdl.Attr{{Name: "grid_mapping", Value: "crs"}}
	for k, axis := range [][]float64{y, x} {
		m.coords = append(m.coords, newVar(dims[k], dims[k:k+1], axis, []cdl.Attr{
			{Name: "standard_name", Value: names[k]}, {Name: "units", Value: units}, {Name: "axis", Value: [2]string{"Y", "X"}[k]},
		}))
	}
	m.coords = append(m.coords, newVar("crs", nil, []int32{0}, attrs))
	return m, nil
}

// projectedAxes returns the axes of a projection that hold a region, rows from the top.
func projectedAxes(r region, p geo.Projection, down, across float64) (y, x []float64) {
	const points = 64 // along each side of the region
	top, bottom, left, right := math.Inf(-1), math.Inf(1), math.Inf(1), math.Inf(-1)
	for i := range points + 1 {
		for j := range points + 1 {
			v, u := p.Project(r.south+(r.north-r.south)*float64(i)/points, r.west+(r.east-r.west)*float64(j)/points)
			top, bottom, left, right = max(top, v), min(bottom, v), min(left, u), max(right, u)
		}
	}
	for v := top - down/2; v > bottom; v -= down {
		y = append(y, v)
	}
	for u := left + across/2; u < right; u += across {
		x = append(x, u)
	}
	return y, x
}

// axesOf returns the variables of regular axes.
func axesOf(lat, lon []float64) []cdl.Var {
	return (&sheet{chart: &chart{grid: field.Grid{Lat: lat, Lon: lon}}}).axes()[1:]
}

// overlaid returns a grid over a chart, of which moved gives the place in the chart of
// one of its own.
func overlaid(g field.Grid, c *chart, moved func(lat, lon float64) (float64, float64), coords ...cdl.Var) *mapped {
	m := &mapped{grid: g, sea: make(field.Mask, g.Len()), from: make([]int, g.Len()), dims: [2]string{"lat", "lon"}, coords: coords}
	nearest := func(axis []float64, v float64) int {
		step := (axis[len(axis)-1] - axis[0]) / float64(len(axis)-1)
		if i := int(math.Round((v - axis[0]) / step)); i >= 0 && i < len(axis) {
			return i
		}
		return -1
	}
	for k := range m.from {
		lat, lon := moved(g.Place(k/g.Width(), k%g.Width()))
		row, col := nearest(c.grid.Lat, lat), nearest(c.grid.Lon, c.grid.Lon[0]+math.Mod(lon-c.grid.Lon[0]+720, 360))
		if m.from[k] = row*c.w + col; row < 0 || col < 0 {
			m.from[k] = -1
			continue
		}
		m.sea[k] = c.sea[m.from[k]]
	}
	return m
}

// mask describes the cells that are sea.
func (m *mapped) mask() cdl.Var {
	wet := make([]int8, len(m.sea))
	for i, sea := range m.sea {
		if sea {
			wet[i] = 1
		}
	}
	return newVar("mask", m.dims[:], wet, []cdl.Attr{{Name: "standard_name", Value: "sea_binary_mask"}, {Name: "long_name", Value: "1=sea, 0=land"}})
}

// values returns a map of the chart on the other grid.
func (m *mapped) values(of []float32) []float32 {
	out := make([]float32, len(m.from))
	for k, at := range m.from {
		out[k] = field.NaN()
		if at >= 0 {
			out[k] = of[at]
		}
	}
	return out
}

// file returns a file of the chart on the other grid.
func (m *mapped) file(f cdl.File) cdl.File {
	out := cdl.File{Attrs: f.Attrs, Dims: []cdl.Dim{f.Dims[0], {Name: m.dims[0], Len: m.grid.Height()}, {Name: m.dims[1], Len: m.grid.Width()}}}
	for _, v := range f.Vars {
		switch {
		case v.Name == "lat":
			out.Vars = append(out.Vars, m.coords...)
		case v.Name != "lon" && len(v.Dims) == 3:
			out.Vars = append(out.Vars, m.variable(v))
		case v.Name != "lon":
			out.Vars = append(out.Vars, v)
		}
	}
	return out
}

func (m *mapped) variable(v cdl.Var) cdl.Var {
	size := cdl.SizeOf(v.Type)
	fill := make([]byte, size)
	for _, a := range v.Attrs {
		if a.Name == "_FillValue" {
			var err error
			if fill, err = binary.Append(nil, binary.LittleEndian, a.Value); err != nil || len(fill) != size {
				panic(fmt.Sprintf("simulate: fill value %v of %s", a.Value, v.Name))
			}
		}
	}
	out := v
	out.Dims, out.Attrs, out.Raw = []string{v.Dims[0], m.dims[0], m.dims[1]}, slices.Concat(v.Attrs, m.own), make([]byte, 0, size*len(m.from))
	for _, at := range m.from {
		if at < 0 {
			out.Raw = append(out.Raw, fill...)
			continue
		}
		out.Raw = append(out.Raw, v.Raw[at*size:(at+1)*size]...)
	}
	return out
}
