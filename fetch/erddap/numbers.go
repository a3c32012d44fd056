package erddap

import (
	"math"
	"strings"
	"time"

	"lacuna/internal/bbox"
	"lacuna/internal/cdl"
)

// floats returns the numbers of an array.
func floats(a array) []float64 { return cdl.Floats(a.typ, a.raw) }

// instant returns the time of seconds since 1970, the unit of every ERDDAP.
func instant(seconds float64) time.Time {
	if math.IsNaN(seconds) || math.Abs(seconds) > 1e11 {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()
}

// within returns the bytes of a span of an axis; none where it is shorter.
func within(axis []byte, span bbox.Span, size int) []byte {
	from, to := span.First*size, (span.First+span.Len)*size
	if to > len(axis) {
		return nil
	}
	return axis[from:to]
}

func part(a array, span bbox.Span) []byte { return within(a.raw, span, cdl.SizeOf(a.typ)) }

// turned returns the longitudes of spans, one after the other, so that they run
// one way.
func turned(a array, spans []bbox.Span) []byte {
	var out []byte
	for _, span := range spans {
		values := part(a, span)
		if span.Turn != 0 {
			for _, v := range floats(array{declaration: a.declaration, raw: values}) {
				out = append(out, encode(a.typ, v+span.Turn)...)
			}
			continue
		}
		out = append(out, values...)
	}
	return out
}

func encode(typ string, v float64) []byte {
	if typ == "float" {
		return le32(math.Float32bits(float32(v)))
	}
	bits := math.Float64bits(v)
	if typ == "int" {
		return le32(uint32(int32(v)))
	}
	return append(le32(uint32(bits)), le32(uint32(bits>>32))...)
}

func le32(v uint32) []byte { return []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)} }

// beside joins maps of some rows along their columns.
func beside(maps []array, rows int) []byte {
	if len(maps) == 1 {
		return maps[0].raw
	}
	var out []byte
	for y := range rows {
		for _, m := range maps {
			row := len(m.raw) / rows
			out = append(out, m.raw[y*row:(y+1)*row]...)
		}
	}
	return out
}

// number returns the numbers of an attribute.
func number(attrs []cdl.Attr, name string) ([]float64, bool) {
	for _, a := range attrs {
		if values, ok := a.Value.([]float64); ok && a.Name == name {
			return values, true
		}
	}
	return nil, false
}

func text(attrs []cdl.Attr, name string) string {
	for _, a := range attrs {
		if value, ok := a.Value.(string); ok && a.Name == name {
			return value
		}
	}
	return ""
}

// lasting leaves out the attributes that change from day to day or describe more
// than one map: with them the same map would never have the same bytes.
func lasting(attrs []cdl.Attr) []cdl.Attr {
	var out []cdl.Attr
	for _, a := range attrs {
		name := strings.ToLower(a.Name)
		switch {
		case name == "history", name == "actual_range", strings.HasPrefix(name, "date_"), strings.HasPrefix(name, "time_coverage"),
			strings.HasPrefix(name, "geospatial_"), strings.HasSuffix(name, "ernmost_northing"), strings.HasSuffix(name, "ernmost_easting"):
		default:
			out = append(out, a)
		}
	}
	return out
}
