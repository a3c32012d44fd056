package netcdf

import (
	"math"
	"slices"
	"strings"

	"lacuna/internal/cdl"
)

// value returns the value of an attribute, nil if there is none.
func value(attrs []Attr, name string) any {
	for _, a := range attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return nil
}

// text returns the value of a text attribute without blanks around it, "" if
// there is no such attribute or it is not text.
func text(attrs []Attr, name string) string {
	s, _ := value(attrs, name).(string)
	return strings.TrimSpace(s)
}

// with returns attrs with one attribute replaced, or added at the end. It
// leaves attrs as it is.
func with(attrs []Attr, name string, v any) []Attr {
	attrs = slices.Clone(attrs)
	for i, a := range attrs {
		if a.Name == name {
			attrs[i].Value = v
			return attrs
		}
	}
	return append(attrs, Attr{Name: name, Value: v})
}

// withDefault returns attrs with a text attribute added where it is missing
// or blank and there is something to say.
func withDefault(attrs []Attr, name, v string) []Attr {
	if v == "" || text(attrs, name) != "" {
		return attrs
	}
	return with(attrs, name, v)
}

// without returns attrs less those named.
func without(attrs []Attr, names ...string) []Attr {
	return slices.DeleteFunc(slices.Clone(attrs), func(a Attr) bool {
		return slices.Contains(names, a.Name)
	})
}

// retype returns v as an attribute value of a NetCDF type, nil where a number
// does not fit: CF wants limits and missing values in the type of their
// variable. A value of that type already is returned as it is, to the bit.
func retype(v any, typ string) any {
	if cdl.TypeOf(v) == typ {
		return v
	}
	raw := make([]byte, 0, 8)
	for _, x := range cdl.Numbers(v) {
		lo, hi := limits(typ)
		fits := x >= lo && x <= hi && (isFloat(typ) || x == math.Trunc(x))
		if !fits && !(isFloat(typ) && (math.IsNaN(x) || math.IsInf(x, 0))) {
			return nil
		}
		raw = appendNumber(raw, typ, x)
	}
	return attrFromRaw(raw, typ)
}
