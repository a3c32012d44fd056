package fill

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// Absent returns a granule in the place of one that the archive does not have:
// on the grid and with the variables of its neighbours, the attributes that all
// of them share, and no observation. around are the neighbours, the nearest in
// time first, of which there must be one; first is the time of its first field.
// Its hash is empty: no file had a part in it.
func Absent(name string, first time.Time, around []ingest.Granule) (ingest.Granule, error) {
	like := around[0]
	from, _ := field.Span(like.Fields)
	shift := first.Sub(from)
	g := ingest.Granule{Name: path.Base(name), Format: like.Format, Product: like.Product, Transform: like.Transform, Source: like.Source, Ice: like.Ice}
	for _, f := range like.Fields {
		f.Time = f.Time.Add(shift)
		f.Values = slices.Repeat([]float32{field.NaN()}, len(f.Values))
		g.Fields = append(g.Fields, f)
	}
	for _, b := range like.Bounds {
		g.Bounds = append(g.Bounds, [2]time.Time{b[0].Add(shift), b[1].Add(shift)})
	}
	g.Source.Attrs = sharedAttrs(around, from)
	g.Source.Vars = slices.Clone(like.Source.Vars)
	own, _ := like.Source.Var(like.Source.Variable)
	clock := timeVar(like.Source, own)
	for i, v := range g.Source.Vars {
		switch {
		case v.Name == own.Name || slices.Equal(v.Dims, own.Dims):
			g.Source.Vars[i].Raw = blank(v)
		case clock.Name != "" && (v.Name == clock.Name || v.Name == text(clock, "bounds")):
			raw, err := shifted(v, text(clock, "units"), shift)
			if err != nil {
				return ingest.Granule{}, fmt.Errorf("date a product of %s like %s: %w", first.Format(time.DateOnly), like.Name, err)
			}
			g.Source.Vars[i].Raw = raw
		}
	}
	return g, nil
}

// sharedAttrs returns the global attributes that all granules agree on, less
// those about one day or one file.
func sharedAttrs(around []ingest.Granule, day time.Time) []ingest.Attr {
	var shared []ingest.Attr
	for _, a := range around[0].Source.Attrs {
		agrees := func(g ingest.Granule) bool {
			return slices.ContainsFunc(g.Source.Attrs, func(b ingest.Attr) bool { return b.Name == a.Name && reflect.DeepEqual(a.Value, b.Value) })
		}
		if !ofOneDay(a, day) && !slices.ContainsFunc(around, func(g ingest.Granule) bool { return !agrees(g) }) {
			shared = append(shared, a)
		}
	}
	return shared
}

// ofOneDay reports whether an attribute is about one day or one file, by its name
// or because it names the day.
func ofOneDay(a ingest.Attr, day time.Time) bool {
	lower := strings.ToLower(a.Name)
	for _, prefix := range []string{"date_", "time_coverage_", "start_", "stop_", "end_", "creation_"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	if slices.Contains([]string{"history", "uuid", "tracking_id", "id", "filename", "file_name"}, lower) {
		return true
	}
	words, _ := a.Value.(string)
	for _, layout := range []string{"20060102", time.DateOnly, "2006002"} {
		if strings.Contains(words, day.UTC().Format(layout)) {
			return true
		}
	}
	return false
}

// timeVar returns the time coordinate of a variable; an empty one where it has
// none.
func timeVar(s ingest.Source, own ingest.Var) ingest.Var {
	for _, v := range s.Vars {
		if len(v.Dims) <= 1 && v.Name != own.Name && strings.Contains(text(v, "units"), " since ") {
			return v
		}
	}
	return ingest.Var{}
}

func text(v ingest.Var, attr string) string {
	for _, a := range v.Attrs {
		if words, ok := a.Value.(string); ok && a.Name == attr {
			return words
		}
	}
	return ""
}

// blank returns the numbers of a variable, all missing: its fill value, else
// that of NetCDF for its type.
func blank(v ingest.Var) []byte {
	size := cdl.SizeOf(v.Type)
	fill := make([]byte, size)
	switch v.Type { // as in netcdf.h
	case "byte", "ubyte":
		fill[0] = 0x81
		if v.Type == "ubyte" {
			fill[0] = 0xff
		}
	case "short":
		binary.LittleEndian.PutUint16(fill, 0x8001)
	case "int":
		binary.LittleEndian.PutUint32(fill, 0x80000001)
	case "float":
		binary.LittleEndian.PutUint32(fill, math.Float32bits(9.9692099683868690e+36))
	case "double":
		binary.LittleEndian.PutUint64(fill, math.Float64bits(9.9692099683868690e+36))
	default:
		copy(fill, bytes.Repeat([]byte{0xff}, size))
	}
	for _, name := range []string{"missing_value", "_FillValue"} {
		for _, a := range v.Attrs {
			if own, err := binary.Append(nil, binary.LittleEndian, a.Value); a.Name == name && err == nil && len(own) == size {
				fill = own
			}
		}
	}
	return bytes.Repeat(fill, len(v.Raw)/max(size, 1))
}

// shifted returns the numbers of a time variable in units of "seconds since…",
// moved by a duration.
func shifted(v ingest.Var, units string, by time.Duration) ([]byte, error) {
	word, _, _ := strings.Cut(strings.ToLower(units), " ")
	unit := map[string]time.Duration{
		"milliseconds": time.Millisecond, "msec": time.Millisecond, "seconds": time.Second, "second": time.Second, "sec": time.Second, "secs": time.Second, "s": time.Second,
		"minutes": time.Minute, "minute": time.Minute, "min": time.Minute, "mins": time.Minute,
		"hours": time.Hour, "hour": time.Hour, "hr": time.Hour, "hrs": time.Hour, "h": time.Hour,
		"days": 24 * time.Hour, "day": 24 * time.Hour, "d": 24 * time.Hour,
	}[word]
	if unit == 0 {
		return nil, fmt.Errorf("its time is in units of %q, which are not known here", units)
	}
	raw := slices.Clone(v.Raw)
	steps := float64(by) / float64(unit)
	size := cdl.SizeOf(v.Type)
	for at := 0; size > 0 && at+size <= len(raw); at += size {
		number := raw[at : at+size]
		switch v.Type {
		case "float":
			x := math.Float32frombits(binary.LittleEndian.Uint32(number))
			binary.LittleEndian.PutUint32(number, math.Float32bits(float32(float64(x)+steps)))
		case "double":
			x := math.Float64frombits(binary.LittleEndian.Uint64(number))
			binary.LittleEndian.PutUint64(number, math.Float64bits(x+steps))
		case "short":
			binary.LittleEndian.PutUint16(number, binary.LittleEndian.Uint16(number)+uint16(int16(math.Round(steps))))
		case "int", "uint":
			binary.LittleEndian.PutUint32(number, binary.LittleEndian.Uint32(number)+uint32(int32(math.Round(steps))))
		case "int64", "uint64":
			binary.LittleEndian.PutUint64(number, binary.LittleEndian.Uint64(number)+uint64(int64(math.Round(steps))))
		default:
			return nil, fmt.Errorf("its time is stored as %s, which is not known here", v.Type)
		}
	}
	return raw, nil
}
