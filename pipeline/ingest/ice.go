package ingest

import (
	"slices"
	"strings"

	"lacuna/internal/cdl"
)

// IceName is the standard name of the share of a cell that is under sea ice.
const IceName = "sea_ice_area_fraction"

// variableNamed returns the variable with a name or, where none has it, with that standard
// name; -1: there is none.
func variableNamed(h *header, name string) int {
	if v := h.Find(name); v >= 0 {
		return v
	}
	return slices.IndexFunc(h.Vars, func(v headerVar) bool { return v.Text("standard_name") == name })
}

// findIce returns the variable with the share of ice, or -1. A file without one is
// read all the same: in summer many have none.
func (p *plan) findIce(h *header, name string) int {
	if name == "" {
		return -1
	}
	v := variableNamed(h, name)
	if v < 0 || !fits(h, p.axes, v) || !p.covers(h, v) {
		p.note("it has no variable %s on its grid: sea ice is not known", name)
		return -1
	}
	return v
}

// ice returns the share of ice of each map, 0..1, NaN where it is not known; nil
// where it was not asked for or the file has none.
func (x *extract) ice(frames int) ([][]float32, error) {
	if x.plan.ice < 0 {
		return nil, nil
	}
	v := &x.header.Vars[x.plan.ice]
	c, err := codingOf(v)
	if err != nil {
		return nil, err
	}
	scale := 1.0
	if unit := strings.ToLower(strings.TrimSpace(v.Text("units"))); unit == "%" || unit == "percent" {
		scale = 0.01
	}
	size := x.plan.cells(x.header) * cdl.SizeOf(c.typ)
	raw := x.raw[x.plan.ice]
	out := make([][]float32, frames)
	for i := range out {
		if from := i * size; from+size <= len(raw) {
			numbers := c.numbers(raw[from : from+size])
			out[i] = make([]float32, len(numbers))
			for k, n := range numbers {
				out[i][k] = float32(n * scale)
			}
		} else if i > 0 { // one map for all
			out[i] = out[i-1]
		}
	}
	return out, nil
}
