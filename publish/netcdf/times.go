package netcdf

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// dayLength is the step of most series.
const dayLength = 24 * time.Hour

// alongTime returns f with a time coordinate that its fields run along: a time
// is added where the input has none, and a dimension of length 1 where it is a
// single number, so that the files of a folder can be joined along time.
func (p *Product) alongTime(f File, found axes) (File, error) {
	if found[timeAxis] == "" {
		v := p.timeVariable(f)
		f.Vars = append([]Var{v}, f.Vars...)
		found[timeAxis] = v.Name
	}
	name := found[timeAxis]
	if n := cells(f, name); n != len(p.Times) {
		return File{}, fmt.Errorf("%d times for a time coordinate of length %d", len(p.Times), n)
	}
	v, _ := f.variable(name)
	dim := f.freeDim(name)
	if len(v.Dims) > 0 {
		dim = v.Dims[0]
	}
	if !slices.ContainsFunc(f.Dims, func(d Dim) bool { return d.Name == dim }) {
		f.Dims = append([]Dim{{Name: dim, Len: 1}}, f.Dims...)
	}
	data, _ := f.variable(p.Variable)
	for i, one := range f.Vars {
		own := one.Name == name || one.Name == text(v.Attrs, "bounds") || slices.Equal(one.Dims, data.Dims) && !found.has(one.Name)
		if own && !slices.Contains(one.Dims, dim) {
			f.Vars[i].Dims = append([]string{dim}, one.Dims...)
		}
	}
	return f, nil
}

// timeVariable makes a time coordinate for an input that has none: along its
// time dimension if it has one, else a scalar.
func (p *Product) timeVariable(f File) Var {
	v := Var{Name: f.freeName("time"), Type: "double"}
	for _, d := range f.Dims {
		if strings.EqualFold(d.Name, "time") {
			v.Name, v.Dims = d.Name, []string{d.Name}
		}
	}
	for _, t := range p.Times {
		v.Raw = appendNumber(v.Raw, v.Type, float64(t.Unix()))
	}
	v.Attrs = []Attr{{Name: "units", Value: sinceEpoch}}
	return v
}

// sinceEpoch are the units of the times that are added to a file.
const sinceEpoch = "seconds since 1970-01-01 00:00:00"

// freeDim returns the name for the dimension of a scalar coordinate: its own,
// unless a dimension of another length has it.
func (f File) freeDim(name string) string {
	for _, d := range f.Dims {
		if d.Name == name && d.Len != 1 {
			return f.freeName(name)
		}
	}
	return name
}

// addBounds returns f with the bounds of its times, unless the input has some.
func (p *Product) addBounds(f File, found axes) File {
	at := slices.IndexFunc(f.Vars, func(v Var) bool { return v.Name == found[timeAxis] })
	axis := f.Vars[at]
	count, ok := countIn(text(axis.Attrs, "units"))
	if !ok || text(axis.Attrs, "bounds") != "" || text(axis.Attrs, "climatology") != "" {
		return f
	}
	pair := ""
	for _, d := range f.Dims {
		if d.Len == 2 && slices.Contains([]string{"nv", "bnds", "nbnds", "bnd", "bounds"}, d.Name) {
			pair = d.Name
		}
	}
	if pair == "" {
		pair = f.freeName("nv")
		f.Dims = append(f.Dims, Dim{Name: pair, Len: 2})
	}
	b := Var{Name: f.freeName(axis.Name + "_bnds"), Type: "double", Dims: []string{axis.Dims[0], pair}}
	stored := unpacked(axis)
	for i, bounds := range p.bounds() {
		for _, t := range bounds {
			b.Raw = appendNumber(b.Raw, b.Type, stored[i]+count(t)-count(p.Times[i]))
		}
	}
	f.Vars[at].Attrs = with(axis.Attrs, "bounds", b.Name)
	f.Vars = slices.Insert(f.Vars, at+1, b)
	return f
}

// countIn returns how units like "days since 1970-01-01" count time, up to a
// constant; false for unknown ones.
func countIn(units string) (count func(time.Time) float64, ok bool) {
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(units)), " ")
	by := func(unit time.Duration) (func(time.Time) float64, bool) {
		return func(t time.Time) float64 { return float64(t.UnixNano()) / float64(unit) }, true
	}
	switch strings.TrimSuffix(word, "s") {
	case "millisecond", "msec", "m":
		return by(time.Millisecond)
	case "second", "sec", "":
		return by(time.Second)
	case "minute", "min":
		return by(time.Minute)
	case "hour", "hr", "h":
		return by(time.Hour)
	case "day", "d":
		return by(dayLength)
	case "week":
		return by(7 * dayLength)
	case "month":
		return months, true
	case "year", "yr":
		return func(t time.Time) float64 { return months(t) / 12 }, true
	}
	return nil, false
}

// months counts calendar months; a part of one is its share of that month.
func months(t time.Time) float64 {
	t = t.UTC()
	first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	length := first.AddDate(0, 1, 0).Sub(first)
	return float64(12*t.Year()+int(t.Month())) + float64(t.Sub(first))/float64(length)
}

// bounds returns begin and end of each field: as told, else the step of the
// series that its time lies in.
func (p *Product) bounds() [][2]time.Time {
	if p.Bounds != nil {
		return p.Bounds
	}
	out := make([][2]time.Time, len(p.Times))
	for i, t := range p.Times {
		out[i] = period(t.UTC(), p.step())
	}
	return out
}

// period returns the step of a series that t lies in: the calendar day of a
// daily one, the calendar month of a monthly one. Steps shorter than a day are
// counted from midnight; of others nothing is known but that t lies in them, and
// they begin with its day, as most producers have it.
func period(t time.Time, step time.Duration) [2]time.Time {
	first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	switch midnight := t.Truncate(dayLength); {
	case step >= 28*dayLength && step <= 31*dayLength:
		return [2]time.Time{first, first.AddDate(0, 1, 0)}
	case step >= dayLength:
		return [2]time.Time{midnight, midnight.Add(step)}
	default:
		begin := midnight.Add(t.Sub(midnight) / step * step)
		return [2]time.Time{begin, begin.Add(step)}
	}
}

// covered returns the first and the last moment of the fields, in UTC.
func (p *Product) covered() (first, last time.Time) {
	for i, b := range p.bounds() {
		if i == 0 || b[0].Before(first) {
			first = b[0]
		}
		if i == 0 || b[1].After(last) {
			last = b[1]
		}
	}
	return first.UTC(), last.UTC()
}

// span returns the first and the last time, in UTC.
func (p *Product) span() (first, last time.Time) {
	first = slices.MinFunc(p.Times, time.Time.Compare)
	last = slices.MaxFunc(p.Times, time.Time.Compare)
	return first.UTC(), last.UTC()
}

// step returns the time between two fields: as told, else the usual one of the
// granule, else a day, which is the habit of Level-3 products.
func (p *Product) step() time.Duration {
	usual := p.Step
	if usual <= 0 {
		usual = usualStep(p.Times)
	}
	// Satellites pass some minutes earlier or later from day to day.
	if whole := usual.Round(dayLength); math.Abs(float64(usual-whole)) < 0.1*float64(dayLength) && whole > 0 {
		return whole
	}
	return max(usual.Round(time.Second), time.Second)
}

// usualStep returns the median distance of times, a day where there is none.
func usualStep(times []time.Time) time.Duration {
	sorted := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	var steps []time.Duration
	for i := range sorted[1:] {
		if d := sorted[i+1].Sub(sorted[i]); d > 0 {
			steps = append(steps, d)
		}
	}
	if len(steps) == 0 {
		return dayLength
	}
	slices.Sort(steps)
	return steps[(len(steps)-1)/2] // the lower of two in the middle: a hole makes a distance longer, never shorter
}
