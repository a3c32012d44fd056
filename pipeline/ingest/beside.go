package ingest

import (
	"slices"
	"strings"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest/products"
)

// besides returns the maps that a product carries along beside the variable:
// its errors, the variables of its quality rules, and those of its ancillary
// variables that say how good it is.
func (p *plan) besides(h *header) []int {
	v := &h.Vars[p.variable]
	keep := map[int]bool{p.err.index: true, p.err.bias: true}
	for _, r := range p.rules {
		keep[r.index] = true
	}
	for name := range strings.FieldsSeq(v.Text("ancillary_variables")) {
		if q := h.Find(name); q >= 0 && supporting(&h.Vars[q]) {
			keep[q] = true
		}
	}
	var out []int
	for q := range h.Vars {
		if keep[q] && q != p.variable && fits(h, p.axes, q) && p.covers(h, q) {
			out = append(out, q)
		}
	}
	return out
}

// leaveBesides drops the maps beside the variable from what is read, except for
// those that quality rules need.
func (p *plan) leaveBesides(h *header) {
	names := make([]string, len(p.beside))
	for i, q := range p.beside {
		names[i] = h.Vars[q].Name
	}
	p.note("%s would not fit into memory and are left out of the product; the observations have the error that is fitted", list(names))
	p.source = slices.DeleteFunc(p.source, func(q int) bool { return slices.Contains(p.beside, q) })
	p.beside, p.err = nil, noError
	p.reads = p.needed()
}

// An observationError is the variable that says how uncertain each observation
// is.
type observationError struct {
	index int // variable, or -1
	bias  int // variable of the mean error, or -1
	kind  errorKind
}

// An errorKind is what the numbers of an error count.
type errorKind int

const (
	notAnError errorKind = iota
	inUnits              // standard deviation in the units of the variable
	inPercent            // relative standard deviation in percent
	relative             // relative standard deviation
	inDecades            // standard deviation of the decimal logarithm
)

var noError = observationError{index: -1, bias: -1}

// findError finds the error of the variable: by the modifier of its standard
// name, among its ancillary variables, else by a name that is made from that of
// the variable.
func (p *plan) findError(h *header, tr field.Transform) observationError {
	found, best := noError, 0
	for q := range h.Vars {
		likeness := p.errorLikeness(h, q)
		if likeness <= best {
			continue
		}
		kind := p.errorKind(h, q, tr)
		if kind == notAnError {
			p.note("variable %s is not used as the error of %s: its units are %q", h.Vars[q].Name, h.Vars[p.variable].Name, h.Vars[q].Text("units"))
			continue
		}
		found, best = observationError{index: q, bias: -1, kind: kind}, likeness
	}
	if found.index < 0 {
		return noError
	}
	found.bias = p.findBias(h, found.kind, tr)
	what := "the variable " + h.Vars[found.index].Name
	if found.bias >= 0 {
		what += ", with the bias " + h.Vars[found.bias].Name
	}
	p.note("the error of the observations is %s", what)
	return found
}

// errorLikeness returns how surely variable q is the error of the variable; 0:
// it is not.
func (p *plan) errorLikeness(h *header, q int) int {
	v, x := &h.Vars[p.variable], &h.Vars[q]
	if q == p.variable || !p.beneath(h, q) || x.Attr("flag_meanings") != nil {
		return 0
	}
	name, own := strings.ToLower(x.Name), strings.ToLower(v.Name)
	suffix, made := strings.CutPrefix(name, own+"_")
	switch standard := v.Text("standard_name"); {
	case standard != "" && x.Text("standard_name") == standard+" standard_error":
		return 4
	case !isErrorName(name):
		return 0
	case slices.Contains(strings.Fields(v.Text("ancillary_variables")), x.Name):
		return 3
	case made && isErrorName(suffix),
		name == ssesDeviation && p.product.Units == "degC",
		strings.HasPrefix(name, "analysis_") && strings.HasPrefix(own, "analysed_"):
		return 2
	case slices.Contains([]string{"err", "error", "uncertainty"}, name):
		return 1
	}
	return 0
}

// ssesDeviation is the error of single observations in GHRSST files.
const ssesDeviation = "sses_standard_deviation"

// isErrorName reports whether a name is that of an error. A standard deviation
// is none: most are those of the values that were averaged.
func isErrorName(name string) bool {
	words := []string{"error", "err", "uncertainty", "unc", "rmsd", "rmse"}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	return name == ssesDeviation || !slices.Contains(parts, "bias") &&
		slices.ContainsFunc(parts, func(w string) bool { return slices.Contains(words, w) })
}

// findBias finds the mean error that belongs to an error of a kind. A variable
// whose bias was taken out has none.
func (p *plan) findBias(h *header, kind errorKind, tr field.Transform) int {
	v := &h.Vars[p.variable]
	own := strings.ToLower(v.Name)
	if strings.Contains(own, "adjusted") || strings.Contains(own, "corrected") {
		return -1
	}
	ancillary := strings.Fields(v.Text("ancillary_variables"))
	for q := range h.Vars {
		x := &h.Vars[q]
		name := strings.ToLower(x.Name)
		parts := strings.Split(name, "_")
		ofOurs := slices.Contains(ancillary, x.Name) || strings.HasPrefix(name, own+"_") || name == "sses_bias" && p.product.Units == "degC"
		if q != p.variable && ofOurs && slices.Contains(parts, "bias") && p.beneath(h, q) && p.errorKind(h, q, tr) == kind {
			return q
		}
	}
	return -1
}

// beneath reports whether variable q has a number for every cell of the
// variable.
func (p *plan) beneath(h *header, q int) bool {
	if !fits(h, p.axes, q) || !p.covers(h, q) {
		return false
	}
	count := func(v int) float64 { return h.Bytes(v) / float64(cdl.SizeOf(h.Vars[v].Type)) }
	return count(q) == count(p.variable)
}

// errorKind returns what the numbers of variable q count, by its units and its
// name.
func (p *plan) errorKind(h *header, q int, tr field.Transform) errorKind {
	v, x := &h.Vars[p.variable], &h.Vars[q]
	words := strings.ToLower(x.Name + " " + x.Text("long_name"))
	units, own := x.Text("units"), v.Text("units")
	switch {
	case strings.Contains(words, "log10") || strings.Contains(words, "logarithm"):
		if tr.Log10 {
			return inDecades
		}
		return notAnError
	case slices.Contains([]string{"%", "percent", "per cent"}, strings.ToLower(units)):
		return inPercent
	case strings.Contains(words, "relative") && (units == "" || units == "1"):
		return relative
	case units == "" || strings.EqualFold(units, own), products.UnitOf(units).SameStep(products.UnitOf(own)):
		return inUnits
	}
	return notAnError
}
