package ingest

import (
	"math"
	"time"

	"lacuna/internal/cdl"
	"lacuna/internal/cftime"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest/ncfile"
)

// errors returns the standard error of the observations of each field in the
// space of the transform, NaN where the file gives none; nil where it gives
// none at all.
func (x *extract) errors(fields []field.Field, tr field.Transform) ([][]float32, error) {
	e := x.plan.err
	if e.index < 0 {
		return nil, nil
	}
	cells := len(fields[0].Values)
	read := func(v int) ([]float32, error) {
		c, err := codingOf(&x.header.Vars[v])
		if err != nil {
			return nil, err
		}
		n := len(fields) * cells
		if len(x.raw[v]) != n*cdl.SizeOf(c.typ) {
			return nil, errOtherVariables
		}
		out := make([]float32, n)
		c.values(out, make([]bool, n), x.raw[v])
		return out, nil
	}
	all, err := read(e.index)
	if err != nil {
		return nil, err
	}
	var bias []float32
	if e.bias >= 0 {
		if bias, err = read(e.bias); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(fields))
	for k, f := range fields {
		own := all[k*cells : (k+1)*cells : (k+1)*cells]
		for i, v := range f.Values {
			s := float64(own[i])
			if bias != nil && bias[k*cells+i] == bias[k*cells+i] { // not NaN
				// The bias stays in the observation, so it is part of its error.
				s = math.Hypot(s, float64(bias[k*cells+i]))
			}
			own[i] = e.kind.sigma(s, float64(v), tr)
		}
		out[k] = own
	}
	return out, nil
}

// sigma returns an error of a value as a standard deviation in the space of the
// transform. Of a relative error r, that of the decimal logarithm is
//
//	√ln(1 + r²) / ln 10
//
// which is exact for a log-normal error and r / ln 10 for a small one. An error
// that is not above 0, or of a gap, is none.
func (k errorKind) sigma(err, value float64, tr field.Transform) float32 {
	if !(err > 0) || math.IsInf(err, 0) || math.IsNaN(value) {
		return field.NaN()
	}
	if k == inDecades {
		return float32(err)
	}
	r := err / math.Abs(value)
	switch k {
	case inPercent:
		r = err / 100
	case relative:
		r = err
	}
	s := r * math.Abs(value)
	if tr.Log10 {
		s = math.Sqrt(math.Log1p(r*r)) / math.Ln10
	}
	if !finite(s) || s == 0 {
		return field.NaN()
	}
	return float32(s)
}

// longestField is the longest time that one field covers, a month. Some servers
// write the coverage of a whole archive into the file of each day.
const longestField = 31 * 24 * time.Hour

// bounds returns begin and end of each field as the file gives them, in the
// bounds of its time or, for a single field, in its global attributes; nil
// where it gives none that can be true.
func (x *extract) bounds(times []time.Time) [][2]time.Time {
	if b := x.storedBounds(times); b != nil {
		return b
	}
	if len(times) != 1 {
		return nil
	}
	for _, names := range [][2]string{{"time_coverage_start", "time_coverage_end"}, {"start_time", "stop_time"}} {
		begin, errBegin := cftime.ParseDate(ncfile.TextOf(x.header.Attrs, names[0]), true)
		end, errEnd := cftime.ParseDate(ncfile.TextOf(x.header.Attrs, names[1]), true)
		if errBegin == nil && errEnd == nil && holds(begin, end, times[0]) {
			return [][2]time.Time{{begin, end}}
		}
	}
	return nil
}

// storedBounds returns the bounds of the time variable.
func (x *extract) storedBounds(times []time.Time) [][2]time.Time {
	h, p := x.header, x.plan
	if p.axes.time < 0 {
		return nil
	}
	v := h.Vars[p.axes.time]
	b := h.Find(v.Text("bounds"))
	if b < 0 || len(x.raw[b]) == 0 || len(x.raw[b]) != 2*len(times)*cdl.SizeOf(h.Vars[b].Type) {
		return nil
	}
	c, err := codingOf(&h.Vars[b])
	if err != nil {
		return nil
	}
	stored, _, err := timesOf(&v, c.numbers(x.raw[b])) // in the units of time, by CF
	if err != nil {
		return nil
	}
	out := make([][2]time.Time, len(times))
	for i, t := range times {
		out[i] = [2]time.Time{stored[2*i], stored[2*i+1]}
		if out[i][1].Before(out[i][0]) {
			out[i][0], out[i][1] = out[i][1], out[i][0]
		}
		if !out[i][1].After(out[i][0]) {
			p.note("the bounds of time say that the map of %s covers no time, and are not used", t.Format(time.RFC3339))
			return nil
		}
	}
	return out
}

// holds reports whether a field of time t may cover begin to end.
func holds(begin, end, t time.Time) bool {
	return end.After(begin) && end.Sub(begin) <= longestField && !t.Before(begin) && !t.After(end)
}
