package ingest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/internal/bbox"
	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest/ncfile"
)

// An extract is the child's answer: the header of a file and the raw numbers
// of the variables of the plan.
type extract struct {
	header *header
	plan   *plan
	raw    map[int][]byte
	axes   map[int]axisVar // by variable; set by grid
	swath  bool            // places need not make a grid
	places *field.Grid     // set by grid where the file has no coordinates of the cells, and the product needs them
}

var errOtherVariables = errors.New("the decoding child sent other variables than its plan names")

// granule interprets the extract of a granule.
func (x *extract) granule(name string, opt Options) (Granule, error) {
	h, p := x.header, x.plan
	box, err := bbox.Of(opt.BBox)
	if err != nil {
		return Granule{}, err
	}
	if err := x.crop(box); err != nil {
		return Granule{}, err
	}
	grid, err := x.grid()
	if err != nil {
		return Granule{}, err
	}
	times, err := x.times(name)
	if err != nil {
		return Granule{}, err
	}
	transform, err := p.transform(h, opt)
	if err != nil {
		return Granule{}, err
	}
	g := Granule{Name: name, Format: h.Format, Product: p.product.Name, Transform: transform}
	if g.Fields, g.Rejected, err = x.fields(grid, times, opt); err != nil {
		return Granule{}, err
	}
	x.noteEmpty(g)
	x.addSea(g.Fields)
	if g.Errors, err = x.errors(g.Fields, transform); err != nil {
		return Granule{}, err
	}
	if g.Errors != nil && ncfile.TextOf(h.Attrs, MergedSources) != "" {
		for i := range g.Fields {
			g.Fields[i].Errors = g.Errors[i]
		}
	}
	if g.Ice, err = x.ice(len(g.Fields)); err != nil {
		return Granule{}, err
	}
	g.Bounds = x.bounds(times)
	g.Source = x.source()
	g.Notes = p.notes
	return g, nil
}

// sea interprets the extract of a mask file.
func (x *extract) sea(grid field.Grid) (field.Mask, error) {
	own, err := x.grid()
	if err != nil {
		return nil, err
	}
	if !own.Same(grid) { // of more than the granules, perhaps, which a bbox has cut
		if err := x.crop(around(grid)); err == nil {
			if own, err = x.grid(); err != nil {
				return nil, err
			}
		}
	}
	if !own.Same(grid) {
		return nil, bad(fmt.Sprintf("its grid (%v) is not that of the granules (%v)", own, grid), "give a mask on the grid of the granules")
	}
	return seaOf(&x.header.Vars[x.plan.sea], x.raw[x.plan.sea])
}

// grid returns the grid of the file, and remembers the axes that are not stored
// as such.
func (x *extract) grid() (field.Grid, error) {
	h, a := x.header, x.plan.axes
	x.axes, x.places = map[int]axisVar{}, nil
	if !a.plane && a.mapped.projection != nil {
		return x.projectedGrid()
	}
	var stored [2][]float64
	for i, v := range []int{a.lat, a.lon} {
		c, err := codingOf(&h.Vars[v])
		if err != nil {
			return field.Grid{}, err
		}
		stored[i] = c.numbers(x.raw[v])
	}
	lat, lon := stored[0], stored[1]
	if x.swath {
		return x.swathGrid(lat, lon)
	}
	if a.plane {
		rows, cols, err := x.axesOfPlane(lat, lon)
		if err != nil {
			return field.Grid{}, err
		}
		if rows == nil {
			return x.curvedGrid(lat, lon)
		}
		lat, lon = rows, cols
	}
	unwrapped := field.Unwrap(lon)
	grid, err := field.NewGrid(lat, unwrapped)
	if err != nil {
		return field.Grid{}, bad("its "+err.Error(), "the file is damaged or not a map: "+again+", or tell its producer")
	}
	if a.plane {
		x.axes[a.lat] = axisVar{numbers: lat, dim: a.latDim}
		x.plan.note("the coordinates %s and %s are maps of a regular grid, and are taken as its axes", h.Vars[a.lat].Name, h.Vars[a.lon].Name)
	}
	if jumps := !slices.Equal(unwrapped, lon); jumps || a.plane {
		x.axes[a.lon] = axisVar{numbers: unwrapped, dim: a.lonDim}
		if jumps {
			x.plan.note("the longitudes jump at the date line or at Greenwich, and are counted on: from %g to %g", unwrapped[0], unwrapped[len(unwrapped)-1])
		}
	}
	return grid, nil
}

// times returns the time of each map.
func (x *extract) times(name string) ([]time.Time, error) {
	h, p := x.header, x.plan
	if p.axes.time < 0 {
		t, note, err := dateWithout(h, name)
		if err != nil {
			return nil, err
		}
		p.note("%s", note)
		return []time.Time{t}, nil
	}
	v := &h.Vars[p.axes.time]
	c, err := codingOf(v)
	if err != nil {
		return nil, err
	}
	times, notes, err := timesOf(v, c.numbers(x.raw[p.axes.time]))
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(times, func(t time.Time) bool { return !plausible(t) }); i >= 0 {
		return nil, bad(fmt.Sprintf("its map number %d is of %s, when no satellite looked", i+1, times[i].Format(time.DateOnly)),
			fmt.Sprintf("mend its time variable %s, which counts %q", v.Name, v.Text("units")))
	}
	p.notes = append(p.notes, notes...)
	return times, p.checkOrder(times)
}

func (p *plan) checkOrder(times []time.Time) error {
	sorted := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Equal(sorted[i-1]) {
			return bad(fmt.Sprintf("it holds two maps for %s", sorted[i].Format(time.RFC3339)),
				"keep one of them, for example with: ncks -d time,FIRST,LAST IN.nc OUT.nc")
		}
	}
	if !slices.IsSortedFunc(times, time.Time.Compare) {
		p.note("the times are not in ascending order")
	}
	return nil
}

// fields unpacks the variable and applies ranges and quality rules.
func (x *extract) fields(grid field.Grid, times []time.Time, opt Options) ([]field.Field, []field.Mask, error) {
	h, p := x.header, x.plan
	v := &h.Vars[p.variable]
	c, err := codingOf(v)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case opt.Range != nil:
		c.narrow(*opt.Range)
	case p.product.Name != "":
		c.narrow(p.product.RangeIn(v.Text("units")))
	}
	n, cells := p.frames(h), p.cells(h)
	if len(times) != n || len(x.raw[p.variable]) != n*cells*cdl.SizeOf(v.Type) {
		return nil, nil, errOtherVariables
	}
	values, rejected := make([]float32, n*cells), make(field.Mask, n*cells)
	c.values(values, rejected, x.raw[p.variable])
	for _, r := range p.rules {
		if err := x.judge(r, values, rejected); err != nil {
			return nil, nil, err
		}
	}
	fields, masks := make([]field.Field, n), make([]field.Mask, n)
	for i := range fields {
		from, to := i*cells, (i+1)*cells
		fields[i] = field.Field{Grid: grid, Time: times[i], Values: values[from:to:to]}
		masks[i] = rejected[from:to:to]
	}
	return fields, masks, nil
}

// judge applies a quality rule to all maps. A quality variable without time
// serves each of them.
func (x *extract) judge(r boundRule, values []float32, rejected []bool) error {
	c, err := codingOf(&x.header.Vars[r.index])
	if err != nil {
		return err
	}
	cells := x.plan.cells(x.header)
	size := cells * cdl.SizeOf(c.typ)
	raw := x.raw[r.index]
	var quality []float64
	for from, at := 0, 0; from < len(values); from, at = from+cells, at+size {
		if at+size <= len(raw) {
			quality = c.numbers(raw[at : at+size])
		}
		r.reject(values[from:from+cells], rejected[from:from+cells], quality)
	}
	return nil
}

// noteEmpty notes that a granule holds no observation. That is no fault: a day
// under clouds looks like that, and so does every day under a wrong rule.
func (x *extract) noteEmpty(g Granule) {
	if !g.Empty() {
		return
	}
	name, refused := x.header.Vars[x.plan.variable].Name, 0
	for _, r := range g.Rejected {
		refused += r.Count()
	}
	if refused > 0 {
		x.plan.note("variable %s holds no observation: all its %d values are refused by the valid range or the quality rules; if this is every day so, check valid_range and quality", name, refused)
		return
	}
	x.plan.note("variable %s holds no observation: all its values are missing; if this is every day so, set variable to another one", name)
}

// addSea sets the sea mask of all fields where the file has a usable one.
func (x *extract) addSea(fields []field.Field) {
	p := x.plan
	if p.sea < 0 {
		return
	}
	v := &x.header.Vars[p.sea]
	sea, err := seaOf(v, x.raw[p.sea])
	if b := (*BadGranule)(nil); errors.As(err, &b) {
		p.note("variable %s is not used as sea mask: %s", v.Name, b.Problem)
		return
	}
	p.note("the sea mask is variable %s: %d of %d cells are sea", v.Name, sea.Count(), len(sea))
	land := 0
	for i := range fields {
		fields[i].Sea = sea
		for j, isSea := range sea {
			if !isSea && fields[i].Observed(j) {
				land++
			}
		}
	}
	if land > 0 {
		p.note("%d values lie on land by variable %s", land, v.Name)
	}
}

// source collects the variables and attributes that a product carries over.
func (x *extract) source() Source {
	h, p := x.header, x.plan
	s := Source{Variable: h.Vars[p.variable].Name, Attrs: typed(h.Attrs)}
	used := make([]bool, len(h.Dims))
	for _, i := range p.source {
		v, keep := x.carriedVar(i)
		if !keep {
			continue
		}
		s.Vars = append(s.Vars, v)
		for d, dim := range h.Dims {
			used[d] = used[d] || slices.Contains(v.Dims, dim.Name)
		}
	}
	for d, dim := range h.Dims {
		if used[d] {
			s.Dims = append(s.Dims, dim)
		}
	}
	a := p.axes
	if x.places != nil {
		s.addPlaces(*x.places, h.Dims[a.latDim].Name, h.Dims[a.lonDim].Name)
	}
	if _, reduced := x.axes[a.lat]; a.plane && reduced {
		s.place(h.Dims[a.latDim].Name, h.Vars[a.lat].Name)
		s.place(h.Dims[a.lonDim].Name, h.Vars[a.lon].Name)
	}
	return s
}

// carriedVar returns a variable as a product carries it over: as it is, but for
// coordinates that are not stored as axes, and their bounds, which may have to go.
func (x *extract) carriedVar(i int) (Var, bool) {
	h := x.header
	v := &h.Vars[i]
	if axis, ok := x.axes[i]; ok && i != x.plan.variable {
		return axis.made(h, v), true
	}
	for coordinate, axis := range x.axes {
		if h.Vars[coordinate].Text("bounds") == v.Name && i != x.plan.variable {
			return axis.bounds(h, v, x.raw[i])
		}
	}
	return Var{Name: v.Name, Type: v.Type, Dims: dimNames(h, v.Dims), Attrs: typed(v.Attrs), Raw: x.raw[i]}, true
}

func typed(attrs []rawAttr) []Attr {
	out := make([]Attr, len(attrs))
	for i, a := range attrs {
		out[i] = Attr{Name: a.Name, Value: a.Value()}
	}
	return out
}
