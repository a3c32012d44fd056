package ingest

import (
	"fmt"
	"slices"
	"strings"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest/products"
)

// A plan lists the variables of a file to read and their purpose. Child and
// parent each make it from the header alone: the child sends by it, and the
// parent accepts nothing else.
type plan struct {
	axes     axes
	variable int // data variable, or -1 where only the sea mask is read
	product  products.Product
	rules    []boundRule
	sea      int // sea mask, or -1
	ice      int // share of sea ice, or -1
	err      observationError
	beside   []int // further maps that a product carries along
	source   []int
	reads    []int // every variable to read, in file order
	notes    []string
}

// A boundRule is a quality rule and its variable.
type boundRule struct {
	rule
	index int
}

// planGranule plans the reading of a granule.
func planGranule(h *header, name string, opt Options) (*plan, error) {
	a, err := findAxes(h)
	if err != nil {
		return nil, err
	}
	p := &plan{axes: a, notes: a.notes, sea: -1, err: noError}
	if len(h.Groups) > 0 {
		p.note("the variables of the groups %s are read as if they stood at the root", list(h.Groups))
	}
	if err := p.choose(h, name, opt); err != nil {
		return nil, err
	}
	if err := p.checkTime(h); err != nil {
		return nil, err
	}
	if err := p.bindRules(h, opt); err != nil {
		return nil, err
	}
	p.sea, p.ice = findSea(h, a, p.variable), p.findIce(h, opt.SeaIce)
	tr, err := p.transform(h, opt)
	if err != nil {
		return nil, err
	}
	p.err = p.findError(h, tr)
	p.beside = p.besides(h)
	p.source = p.carried(h)
	p.reads = p.needed()
	return p, nil
}

// planSea plans the reading of a sea mask file.
func planSea(h *header) (*plan, error) {
	a, err := findAxes(h)
	if err != nil {
		return nil, err
	}
	p := &plan{axes: a, variable: -1, sea: findSea(h, a, -1), ice: -1, err: noError}
	if p.sea < 0 {
		return nil, bad("it has no sea mask among its variables "+list(names(h)),
			"name the mask sea or mask with 1 for sea, or give it the standard_name sea_binary_mask")
	}
	p.reads = p.needed()
	return p, nil
}

func (p *plan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// frames returns the number of maps in the variable.
func (p *plan) frames(h *header) int {
	if d := p.axes.timeDim; d >= 0 && slices.Contains(h.Vars[p.variable].Dims, d) {
		return h.Dims[d].Len
	}
	return 1
}

// cells returns the number of cells of one map.
func (p *plan) cells(h *header) int {
	return h.Dims[p.axes.latDim].Len * h.Dims[p.axes.lonDim].Len
}

func (p *plan) checkTime(h *header) error {
	a, v := p.axes, &h.Vars[p.variable]
	switch {
	case a.timeDim < 0:
		return nil
	case h.Dims[a.timeDim].Len == 0:
		return bad(fmt.Sprintf("its dimension %s has length 0, so it holds no map", h.Dims[a.timeDim].Name), again)
	case h.Dims[a.timeDim].Len > 1 && !slices.Contains(v.Dims, a.timeDim):
		return bad(fmt.Sprintf("it has %d times, but variable %s has no dimension %s", h.Dims[a.timeDim].Len, v.Name, h.Dims[a.timeDim].Name),
			"set variable to one that varies in time")
	}
	return nil
}

// bindRules finds the variables of the quality rules: those of the options, or
// else those of the product.
func (p *plan) bindRules(h *header, opt Options) error {
	texts := p.product.Quality
	if len(opt.Quality) > 0 {
		texts = opt.Quality
	}
	for _, text := range texts {
		r, err := parseRule(text)
		if err != nil {
			return err
		}
		q := h.Find(r.variable)
		if q < 0 || !fits(h, p.axes, q) || !p.covers(h, q) {
			if len(opt.Quality) == 0 && opt.Product == "" {
				p.note("the quality rule %q of product %s is not used: the file has no such variable on its grid", text, p.product.Name)
				continue
			}
			return bad(fmt.Sprintf("the quality rule %q asks for variable %s, which it does not have on its grid", text, r.variable),
				"change quality; the variables on the grid are "+list(onGrid(h, p.axes)))
		}
		if r.mask != 0 && isFloat(h.Vars[q].Type) {
			return bad(fmt.Sprintf("the quality rule %q looks at bits, and variable %s has none: its type is %s", text, r.variable, h.Vars[q].Type),
				"change quality")
		}
		p.rules = append(p.rules, boundRule{rule: r, index: q})
	}
	return nil
}

// covers reports whether variable q has a value for each map, or one map for
// all of them.
func (p *plan) covers(h *header, q int) bool {
	d := p.axes.timeDim
	return d < 0 || !slices.Contains(h.Vars[q].Dims, d) || slices.Contains(h.Vars[p.variable].Dims, d)
}

// carried returns the variables of the product: the variable, the coordinates
// of its dimensions, those it names itself, their bounds, the grid mapping and
// the maps beside it.
func (p *plan) carried(h *header) []int {
	v := &h.Vars[p.variable]
	keep := map[int]bool{p.variable: true, p.axes.lat: true, p.axes.lon: true}
	if p.axes.time >= 0 {
		keep[p.axes.time] = true
	}
	for _, d := range v.Dims {
		keep[h.Find(h.Dims[d].Name)] = true
	}
	for name := range strings.FieldsSeq(v.Text("coordinates")) {
		if c := h.Find(name); c >= 0 && len(h.Vars[c].Dims) <= 1 { // scalars and other labels of an axis
			keep[c] = true
		}
	}
	// Simple form "crs", or "crs: lat lon" where names of mappings end in a colon.
	for name := range strings.FieldsSeq(v.Text("grid_mapping")) {
		if c := h.Find(strings.TrimSuffix(name, ":")); c >= 0 && len(h.Vars[c].Dims) == 0 {
			keep[c] = true
		}
	}
	for i := range h.Vars {
		if keep[i] {
			keep[h.Find(h.Vars[i].Text("bounds"))] = true
			keep[h.Find(h.Vars[i].Text("climatology"))] = true
		}
	}
	var out []int
	for i := range h.Vars {
		if beside := slices.Contains(p.beside, i); beside || keep[i] && cdl.SizeOf(h.Vars[i].Type) > 0 && (i == p.variable || p.small(h, i)) {
			out = append(out, i)
		}
	}
	return out
}

// small reports whether a variable may be carried along: coordinates and
// bounds are no larger than a few times the axes, or than one map.
func (p *plan) small(h *header, v int) bool {
	n := 1.0
	for _, l := range h.Shape(v) {
		n *= float64(l)
	}
	axes := 0
	for _, d := range h.Vars[p.variable].Dims {
		axes += h.Dims[d].Len
	}
	return n <= float64(max(16*axes, p.cells(h)))
}

// needed returns the variables to read, each once, in file order.
func (p *plan) needed() []int {
	out := append(slices.Clone(p.source), p.axes.lat, p.axes.lon)
	if m := p.axes.mapped; m.projection != nil && m.y >= 0 && m.x >= 0 {
		out = append(out, m.y, m.x)
	}
	if p.sea >= 0 {
		out = append(out, p.sea)
	}
	if p.ice >= 0 {
		out = append(out, p.ice)
	}
	for _, r := range p.rules {
		out = append(out, r.index)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// maxInflation is the highest ratio that deflate can reach, 1032 to 1. A file
// whose numbers take more than that and more than freeBytes claims numbers that
// it does not hold.
const (
	maxInflation = 2048
	freeBytes    = 64 << 20
)

// check refuses a plan whose numbers take more than the limit in the parent,
// or more than a file of that size can hold. The maps beside the variable are
// left out sooner than a file is refused.
func (p *plan) check(h *header, limitBytes, fileBytes int64) error {
	total := p.bytes(h)
	if total > float64(limitBytes) && len(p.beside) > 0 {
		p.leaveBesides(h)
		total = p.bytes(h)
	}
	if p.axes.plane || p.axes.mapped.projection != nil { // both coordinates in double precision
		total += 16 * float64(p.cells(h))
	}
	const miB = 1 << 20
	if total > freeBytes && total > maxInflation*float64(fileBytes) {
		return bad(fmt.Sprintf("its dimensions are absurd: it claims %.3g MiB of numbers in a file of %.3g MiB", total/miB, float64(fileBytes)/miB),
			"the file is damaged or hostile: "+again)
	}
	if total > float64(limitBytes) {
		return bad(fmt.Sprintf("it takes %.4g MiB of memory, more than the limit of %d MiB", total/miB, limitBytes/miB),
			"raise memory_mib, or split the file in time with: ncks -d time,FIRST,LAST IN.nc OUT.nc")
	}
	return nil
}

// bytes returns the memory that the numbers of the plan take in the parent.
func (p *plan) bytes(h *header) float64 {
	total := 0.0
	for _, v := range p.reads {
		total += h.Bytes(v)
	}
	if p.variable < 0 {
		return total
	}
	each := 5.0 // the value as float32, and whether it is rejected
	if p.err.index >= 0 {
		each += 5 // its error
	}
	if p.err.bias >= 0 {
		each += 5
	}
	return total + each*h.Bytes(p.variable)/float64(cdl.SizeOf(h.Vars[p.variable].Type))
}

// transform returns the transform that makes the values nearly Gaussian.
func (p *plan) transform(h *header, opt Options) (field.Transform, error) {
	floor := products.DefaultFloor
	if p.product.Floor > 0 {
		floor = p.product.In(h.Vars[p.variable].Text("units"), p.product.Floor)
	}
	name := p.product.Transform
	if opt.Transform != "" {
		name = opt.Transform
	}
	return field.ParseTransform(name, floor)
}
