package ingest

import (
	"fmt"
	"strings"

	"lacuna/internal/geo"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest/ncfile"
	"lacuna/pipeline/ingest/places"
)

// A mapped grid has axes that count along a map projection.
type mapped struct {
	y, x       int // coordinate variables, or -1
	projection geo.Projection
	name       string // of the variable with the mapping
}

// regridding is what to do with a grid that cannot be read.
const regridding = "map it to a regular grid first, for example with: cdo remapbil,r1440x720 IN.nc OUT.nc"

// binning is what to do with places that make no grid.
const binning = "bin it to a grid with: lacuna grid IN.nc -o DIR --bbox WEST,SOUTH,EAST,NORTH"

// findProjected finds axes along a map projection, and takes them for those of
// the grid. It reports whether there are any.
func (a *axes) findProjected(h *header) (bool, error) {
	y, x := projectionAxis(h, "projection_y_coordinate", "grid_latitude", "Y"), projectionAxis(h, "projection_x_coordinate", "grid_longitude", "X")
	if y < 0 || x < 0 || h.Vars[y].Dims[0] == h.Vars[x].Dims[0] {
		return false, nil
	}
	a.lat, a.lon, a.latDim, a.lonDim = y, x, h.Vars[y].Dims[0], h.Vars[x].Dims[0]
	if err := a.findMapping(h); err != nil {
		return false, bad(fmt.Sprintf("its axes %s and %s count along a projection that is not known, and it has no latitudes and longitudes: %v", h.Vars[y].Name, h.Vars[x].Name, err), regridding)
	}
	if a.mapped.projection == nil {
		return false, bad(fmt.Sprintf("its axes %s and %s count along a projection, but no variable has the attribute grid_mapping_name that says which", h.Vars[y].Name, h.Vars[x].Name), regridding)
	}
	return true, nil
}

// projectionAxis returns the coordinate variable along a projection, or -1.
func projectionAxis(h *header, length, angle, axis string) int {
	for v := range h.Vars {
		x := &h.Vars[v]
		if len(x.Dims) != 1 || !numeric(x.Type) {
			continue
		}
		name := x.Text("standard_name")
		if name == length || name == angle || name == "" && projected(x.Text("units")) && strings.EqualFold(x.Text("axis"), axis) {
			return v
		}
	}
	return -1
}

// findMapping finds the coordinates of both dimensions of the grid, and the
// projection that they count along where it is known.
func (a *axes) findMapping(h *header) error {
	a.mapped.y, a.mapped.x = a.coordinate(h, a.latDim), a.coordinate(h, a.lonDim)
	for i := range h.Vars {
		v := &h.Vars[i]
		name := v.Text("grid_mapping_name")
		if name == "" || name == "latitude_longitude" {
			continue
		}
		p, err := geo.Of(name, func(attr string) (float64, bool) {
			all := v.Numbers(attr)
			if len(all) == 0 {
				return 0, false
			}
			return all[0], true
		})
		if err != nil {
			return fmt.Errorf("of its mapping %s, %w", v.Name, err)
		}
		a.mapped.projection, a.mapped.name = p, v.Name
		return nil
	}
	return nil
}

// coordinate returns the variable that counts along a dimension, or -1.
func (a *axes) coordinate(h *header, dim int) int {
	if v := h.Find(h.Dims[dim].Name); v >= 0 && v != a.lat && v != a.lon && len(h.Vars[v].Dims) == 1 && h.Vars[v].Dims[0] == dim && numeric(h.Vars[v].Type) {
		return v
	}
	for _, v := range []int{a.lat, a.lon} {
		if len(h.Vars[v].Dims) == 1 && h.Vars[v].Dims[0] == dim {
			return v
		}
	}
	return -1
}

// alongProjection returns the numbers of a projection axis, in metres or degrees.
func (x *extract) alongProjection(v int) ([]float64, error) {
	c, err := codingOf(&x.header.Vars[v])
	if err != nil {
		return nil, err
	}
	all := c.numbers(x.raw[v])
	if len(all) != x.header.Dims[x.header.Vars[v].Dims[0]].Len {
		return nil, errOtherVariables
	}
	if strings.HasPrefix(strings.ToLower(x.header.Vars[v].Text("units")), "k") { // kilometres
		for i := range all {
			all[i] *= 1000
		}
	}
	for i, n := range all {
		if !finite(n) || i > 1 && (n-all[i-1])*(all[1]-all[0]) <= 0 || i == 1 && n == all[0] {
			return nil, bad(fmt.Sprintf("its axis %s does not run one way: %g at index %d", x.header.Vars[v].Name, n, i),
				"the file is damaged or not a map: "+again+", or tell its producer")
		}
	}
	return all, nil
}

// projectedGrid returns the grid of axes along a projection, with the
// coordinates of its cells, which a product has beside the axes.
func (x *extract) projectedGrid() (field.Grid, error) {
	lat, lon, up, left, err := x.project()
	if err != nil {
		return field.Grid{}, err
	}
	h, a := x.header, x.plan.axes
	grid, err := x.newPlane(lat, lon, up, left)
	if err == nil {
		x.places = &grid
		x.plan.note("the places of the cells follow from the axes %s and %s by the mapping %s", h.Vars[a.lat].Name, h.Vars[a.lon].Name, a.mapped.name)
	}
	return grid, err
}

// project returns the places of the cells by the mapping, and whether its axes
// run up and to the left.
func (x *extract) project() (lat, lon []float64, up, left bool, err error) {
	m := x.plan.axes.mapped
	ys, err := x.alongProjection(m.y)
	if err != nil {
		return nil, nil, false, false, err
	}
	xs, err := x.alongProjection(m.x)
	if err != nil {
		return nil, nil, false, false, err
	}
	if len(ys) < 2 || len(xs) < 2 {
		return nil, nil, false, false, bad(fmt.Sprintf("it has %d rows and %d columns along a projection, which are no map", len(ys), len(xs)), regridding)
	}
	lat, lon = places.Cross(ys, xs, m.projection.Place)
	return lat, lon, ys[1] > ys[0], xs[1] < xs[0], nil
}

func (x *extract) newPlane(lat, lon []float64, up, left bool) (field.Grid, error) {
	grid, err := field.NewPlane(lat, lon, x.header.Dims[x.plan.axes.lonDim].Len, up, left)
	if err != nil {
		return grid, bad("its "+err.Error()+", so it is no grid but a swath, or damaged", binning+"; or "+again)
	}
	return grid, nil
}

// swathGrid returns the places of the pixels of a swath, or of a regular grid.
func (x *extract) swathGrid(lat, lon []float64) (field.Grid, error) {
	height, width := x.header.Dims[x.plan.axes.latDim].Len, x.header.Dims[x.plan.axes.lonDim].Len
	p := &field.Plane{Lat: lat, Lon: lon, Width: width}
	if !x.plan.axes.plane {
		p.Lat, p.Lon = places.Cross(lat, lon, func(lat, lon float64) (float64, float64) { return lat, lon })
	}
	if len(p.Lat) != height*width || len(p.Lon) != height*width {
		return field.Grid{}, errOtherVariables
	}
	return field.Grid{Lat: make([]float64, height), Lon: make([]float64, width), Plane: p}, nil
}

// disagreeCells is how far, in cells, the coordinates of a cell may lie off the
// place that the mapping gives it: far more than any rounding, and less than a
// shift by half a cell from corners to centres.
const disagreeCells = 0.25

// curvedGrid returns the grid of coordinates that are maps, and no axes. Where the
// file has a mapping too, both must mean the same places.
func (x *extract) curvedGrid(lat, lon []float64) (field.Grid, error) {
	h, a := x.header, x.plan.axes
	if why := swathOf(h); why != "" {
		return field.Grid{}, bad("it is a swath and no grid: "+why, binning)
	}
	width, m := h.Dims[a.lonDim].Len, a.mapped
	var byMapping, alsoLon []float64
	up, left := lat[(len(lat)/width-1)*width+width/2] > lat[width/2], false
	if m.projection != nil && m.y >= 0 && m.x >= 0 {
		var err error
		if byMapping, alsoLon, up, left, err = x.project(); err != nil {
			return field.Grid{}, err
		}
	}
	grid, err := x.newPlane(lat, lon, up, left)
	if err != nil || byMapping == nil {
		return grid, err
	}
	off, at := places.Farthest(lat, lon, byMapping, alsoLon)
	if step := grid.StepKM(); off > disagreeCells*step {
		return grid, bad(fmt.Sprintf("its coordinates %s and %s disagree with its mapping %s: at row %d, column %d they lie %.3g km apart, and a cell is %.3g km",
			h.Vars[a.lat].Name, h.Vars[a.lon].Name, m.name, at/width, at%width, off, step),
			fmt.Sprintf("tell its producer; if the coordinates are right, leave the mapping out with: ncks -x -v %s IN.nc OUT.nc", m.name))
	}
	return grid, nil
}

// swathOf returns the words by which a file says that it is a swath.
func swathOf(h *header) string {
	for _, name := range []string{"processing_level", "cdm_data_type", "feature_type"} {
		text := ncfile.TextOf(h.Attrs, name)
		level := strings.TrimLeft(strings.ToLower(text), "lev -_")
		if strings.EqualFold(text, "swath") || name == "processing_level" && (strings.HasPrefix(level, "2") || strings.HasPrefix(level, "1")) {
			return fmt.Sprintf("its %s is %q", name, text)
		}
	}
	return ""
}

// addPlaces adds coordinates of the cells of a projected grid that has none.
func (s *Source) addPlaces(grid field.Grid, y, x string) {
	var names []string
	for i, numbers := range [][]float64{grid.Plane.Lat, grid.Plane.Lon} {
		standard, units := "latitude", "degrees_north"
		if i == 1 {
			standard, units = "longitude", "degrees_east"
		}
		name := [2]string{"lat", "lon"}[i]
		if _, taken := s.Var(name); taken {
			name = standard + "_of_cell"
		}
		names = append(names, name)
		s.Vars = append(s.Vars, Var{
			Name: name, Type: "double", Dims: []string{y, x}, Raw: rawFloats("double", numbers),
			Attrs: []Attr{{Name: "standard_name", Value: standard}, {Name: "long_name", Value: standard + " of the cell"}, {Name: "units", Value: units}},
		})
	}
	for i, v := range s.Vars {
		if v.Name == s.Variable || len(v.Dims) >= 2 && textIn(v.Attrs, "grid_mapping") != "" {
			s.Vars[i].Attrs = withText(v.Attrs, "coordinates", strings.Join(append(strings.Fields(textIn(v.Attrs, "coordinates")), names...), " "))
		}
	}
}
