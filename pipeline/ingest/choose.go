package ingest

import (
	"fmt"
	"slices"
	"strings"

	"lacuna/pipeline/ingest/ncfile"
	"lacuna/pipeline/ingest/products"
)

// fits reports whether variable v is a stack of maps: (lat, lon) last, and
// before them only time and dimensions of length 1.
func fits(h *header, a axes, v int) bool {
	x := &h.Vars[v]
	n := len(x.Dims)
	if !numeric(x.Type) || n < 2 || x.Dims[n-2] != a.latDim || x.Dims[n-1] != a.lonDim {
		return false
	}
	return extraDim(h, a, x.Dims[:n-2]) < 0
}

// extraDim returns the first dimension that a stack of maps cannot have: longer
// than 1, and not time or time for the second time. Without one it returns -1.
func extraDim(h *header, a axes, dims []int) int {
	timed := false
	for _, d := range dims {
		if h.Dims[d].Len != 1 && (d != a.timeDim || timed) {
			return d
		}
		timed = timed || d == a.timeDim
	}
	return -1
}

// misfit returns the reason why variable v is no stack of maps, or nil.
func misfit(h *header, a axes, v int) error {
	if fits(h, a, v) {
		return nil
	}
	x := &h.Vars[v]
	n := len(x.Dims)
	switch {
	case !numeric(x.Type):
		return bad(fmt.Sprintf("variable %s holds no numbers", x.Name), "set variable to one that does")
	case n >= 2 && x.Dims[n-1] == a.latDim && x.Dims[n-2] == a.lonDim:
		order := append(dimNames(h, x.Dims[:n-2]), h.Dims[a.latDim].Name, h.Dims[a.lonDim].Name)
		return bad(fmt.Sprintf("variable %s has its longitude before its latitude", x.Name),
			fmt.Sprintf("swap them with: ncpdq -a %s IN.nc OUT.nc", strings.Join(order, ",")))
	case n < 2 || x.Dims[n-1] != a.lonDim || x.Dims[n-2] != a.latDim:
		return bad(fmt.Sprintf("variable %s(%s) is not on the grid (%s, %s)", x.Name, strings.Join(dimNames(h, x.Dims), ", "),
			h.Dims[a.latDim].Name, h.Dims[a.lonDim].Name), "set variable to one that is: "+list(onGrid(h, a)))
	}
	dim := h.Dims[extraDim(h, a, x.Dims[:n-2])]
	if a.time < 0 && n == 3 {
		return bad(fmt.Sprintf("variable %s has %d maps along %s, and no variable says when they were taken", x.Name, dim.Len, dim.Name),
			`add a time variable with units like "days since 1970-01-01"`)
	}
	return bad(fmt.Sprintf("variable %s has %d values along %s", x.Name, dim.Len, dim.Name),
		fmt.Sprintf("take one of them with: ncks -d %s,0 IN.nc OUT.nc", dim.Name))
}

func dimNames(h *header, dims []int) []string {
	out := make([]string, len(dims))
	for i, d := range dims {
		out[i] = h.Dims[d].Name
	}
	return out
}

// onGrid returns the names of the variables that are stacks of maps.
func onGrid(h *header, a axes) []string {
	var out []string
	for v := range h.Vars {
		if fits(h, a, v) {
			out = append(out, h.Vars[v].Name)
		}
	}
	return out
}

// choose returns the variable to read and the product that describes it,
// whose Name is empty if none does.
func (p *plan) choose(h *header, name string, opt Options) error {
	if opt.Product != "" {
		product, err := products.Find(opt.Product)
		if err != nil {
			return err
		}
		p.product = product
	} else if product, ok := productOf(h, name); ok && (opt.Variable != "" || h.Find(product.Variable) >= 0) {
		p.product = product
		p.note("the file is taken for product %s", product.Name)
	}
	own := filledVariable(h)
	switch {
	case own >= 0 && h.Find(opt.Variable) < 0:
		p.variable = own
	case opt.Variable != "":
		if p.variable = variableNamed(h, opt.Variable); p.variable < 0 {
			return bad("it has no variable "+opt.Variable, "set variable to one that it has on its grid: "+list(onGrid(h, p.axes)))
		}
	case p.product.Name != "" && !p.product.Generic:
		if p.variable = h.Find(p.product.Variable); p.variable < 0 {
			return bad(fmt.Sprintf("it has no variable %s, which product %s has", p.product.Variable, p.product.Name),
				"set another product, or set variable to one that it has on its grid: "+list(onGrid(h, p.axes)))
		}
	default:
		v, err := likeliest(h, p.axes, p.generics())
		if err != nil {
			return err
		}
		p.variable = v
	}
	if err := misfit(h, p.axes, p.variable); err != nil {
		return err
	}
	p.matchProduct(h, opt)
	return nil
}

// filledVariable returns the variable that was filled in a product of ours whose
// layout has names of its own, or -1. Whoever reads products asks for the name that it
// has in granules.
func filledVariable(h *header) int {
	names := strings.Fields(ncfile.TextOf(h.Attrs, "lacuna_variables"))
	if len(names) == 0 {
		return -1
	}
	return h.Find(names[0])
}

// generics returns the generic products that may be considered.
func (p *plan) generics() []products.Product {
	if p.product.Name != "" {
		return []products.Product{p.product}
	}
	return slices.DeleteFunc(products.All(), func(x products.Product) bool { return !x.Generic })
}

// matchProduct settles the product for the chosen variable: the product of the
// file must describe the variable, and a file without one gets the generic
// product that resembles the variable most.
func (p *plan) matchProduct(h *header, opt Options) {
	v := &h.Vars[p.variable]
	if opt.Product != "" && p.product.Generic {
		return // named by the config
	}
	if p.product.Name != "" {
		if describes(p.product, v) {
			return
		}
		p.note("product %s says nothing of variable %s: its range, transform and quality rule are not used", p.product.Name, v.Name)
		p.product = products.Product{}
	}
	best := unlike
	for _, g := range p.generics() {
		// The error of a temperature is no temperature, whatever its name and units.
		if like := likeness(g, v); like > best && (like == likeStandardName || !isErrorName(strings.ToLower(v.Name))) {
			best, p.product = like, g
		}
	}
	switch best {
	case likeName:
		p.note("variable %s is taken for %s by its name", v.Name, p.product.Name)
	case likeUnits:
		p.note("variable %s is taken for %s by its units only", v.Name, p.product.Name)
	}
	if p.product.Name == "sst" && !supporting(v) {
		p.preferGHRSST(h)
	}
}

// preferGHRSST uses the quality rule of GHRSST for a sea surface temperature
// that has the quality variable of GHRSST beside it.
func (p *plan) preferGHRSST(h *header) {
	q := h.Find("quality_level")
	if q < 0 || !fits(h, p.axes, q) || ncfile.TextOf(h.Attrs, "lacuna_model") != "" { // a product passes on the quality of its granule, whose gaps it fills
		return
	}
	if product, err := products.Find(products.GHRSST); err == nil {
		p.product = product
		p.note("the file has quality_level and is taken for product %s", product.Name)
	}
}

// likeliest returns the data variable of a file where the config names none:
// the only one on the grid, or the one most like a known product.
func likeliest(h *header, a axes, known []products.Product) (int, error) {
	ancillary := ancillaries(h)
	var found []int
	var first error // misfit of the first candidate
	for v := range h.Vars {
		x := &h.Vars[v]
		if !numeric(x.Type) || len(x.Dims) < 2 || v == a.lat || v == a.lon || supporting(x) || ancillary[x.Name] {
			continue
		}
		if err := misfit(h, a, v); err == nil {
			found = append(found, v)
		} else if first == nil && slices.Contains(x.Dims, a.latDim) && slices.Contains(x.Dims, a.lonDim) {
			first = err
		}
	}
	if meant := slices.DeleteFunc(slices.Clone(found), func(v int) bool { return h.Vars[v].Aside }); len(meant) > 0 {
		found = meant
	}
	switch {
	case len(found) == 0 && first != nil:
		return -1, first
	case len(found) == 0:
		return -1, bad(fmt.Sprintf("it has no data variable on its grid (%s, %s)", h.Dims[a.latDim].Name, h.Dims[a.lonDim].Name),
			"leave it out, or set variable if one of these is meant: "+list(names(h)))
	case len(found) == 1:
		return found[0], nil
	}
	return mostLike(h, found, known)
}

func mostLike(h *header, found []int, known []products.Product) (int, error) {
	best, top := unlike, []int(nil)
	for _, v := range found {
		like := unlike
		for _, p := range known {
			like = max(like, likeness(p, &h.Vars[v]))
		}
		switch {
		case like > best:
			best, top = like, []int{v}
		case like == best:
			top = append(top, v)
		}
	}
	if len(top) == 1 {
		return top[0], nil
	}
	candidates := make([]string, len(top))
	for i, v := range top {
		candidates[i] = h.Vars[v].Name
	}
	return -1, bad("any of its variables "+list(candidates)+" may be meant", "set variable to one of them")
}

// supporting reports whether v, by its attributes or by a word in its name,
// describes another variable instead of the sea.
func supporting(v *headerVar) bool {
	for _, name := range []string{"flag_meanings", "flag_values", "flag_masks"} {
		if v.Attr(name) != nil {
			return true
		}
	}
	standard := v.Text("standard_name")
	for _, modifier := range []string{"flag", "standard_error", "number_of_observations", "binary_mask", "detection_minimum"} {
		if strings.Contains(standard, modifier) {
			return true
		}
	}
	words := []string{
		"qi", "qc", "flag", "flags", "quality", "mask", "count", "error", "err", "uncertainty", "bias", "std", "stdev", "stddev",
		"sd", "variance", "sensormask", "land", "sea", "bnds", "bounds", "num", "nobs", "number", "weight", "time", "dtime",
	}
	split := func(r rune) bool { return r == '_' || r == '-' || r == '.' }
	parts := strings.FieldsFunc(strings.ToLower(v.Name), split)
	if slices.Contains(parts, "surface") { // sea_surface_..., land_surface_...
		parts = slices.DeleteFunc(parts, func(w string) bool { return w == "sea" || w == "land" })
	}
	return slices.ContainsFunc(parts, func(w string) bool { return slices.Contains(words, w) })
}

// ancillaries returns the variables that others list as ancillary_variables.
func ancillaries(h *header) map[string]bool {
	out := make(map[string]bool)
	for i := range h.Vars {
		for name := range strings.FieldsSeq(h.Vars[i].Text("ancillary_variables")) {
			out[name] = true
		}
	}
	return out
}
