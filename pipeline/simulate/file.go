package simulate

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// A File describes a NetCDF file as plain data; the caller writes it.
type File struct {
	Dims  []Dim
	Vars  []Var
	Attrs []Attr
}

// A Dim is a named dimension.
type Dim struct {
	Name      string
	Len       int
	Unlimited bool
}

// A Var is a variable with its data. Type is the CDL name of its type: byte,
// char, short, int, float, double, ubyte, ushort, uint, int64 or uint64. Raw
// holds the numbers as stored, little endian and row-major.
type Var struct {
	Name, Type string
	Dims       []string
	Attrs      []Attr
	Raw        []byte
}

// An Attr is an attribute: a string or a slice of numbers ([]int8, []uint8,
// []int16, []uint16, []int32, []uint32, []int64, []uint64, []float32 or
// []float64).
type Attr struct {
	Name  string
	Value any
}

// A sheet is the data of a granule that a layout turns into a file.
type sheet struct {
	recipe   *recipe
	chart    *chart
	delivery Delivery
	time     time.Time
	sight    sight
	climate  func(cell int) float64 // expected tracer, where it is additive
}

// simulated is the comment that every file bears.
const simulated = "Simulated by Lacuna for demonstrations and tests. Coastlines are real; the values are invented."

// dims returns the dimensions that all layouts share.
func (s *sheet) dims() []Dim {
	return []Dim{{Name: "time", Len: 1}, {Name: "lat", Len: s.chart.h}, {Name: "lon", Len: s.chart.w}}
}

// axes returns the coordinate variables: time as whole seconds since the
// epoch that ocean products use.
func (s *sheet) axes() []Var {
	seconds := int32(s.time.Sub(time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Second)
	return []Var{
		newVar("time", []string{"time"}, []int32{seconds}, []Attr{
			{"standard_name", "time"},
			{"long_name", "reference time of the day"},
			{"units", "seconds since 1981-01-01 00:00:00"},
			{"calendar", "gregorian"},
			{"axis", "T"},
		}),
		newVar("lat", []string{"lat"}, narrow(s.chart.grid.Lat), []Attr{
			{"standard_name", "latitude"},
			{"long_name", "latitude"},
			{"units", "degrees_north"},
			{"axis", "Y"},
			{"valid_min", []float32{-90}},
			{"valid_max", []float32{90}},
		}),
		newVar("lon", []string{"lon"}, narrow(s.chart.grid.Lon), []Attr{
			{"standard_name", "longitude"},
			{"long_name", "longitude"},
			{"units", "degrees_east"},
			{"axis", "X"},
			{"valid_min", []float32{-180}},
			{"valid_max", []float32{180}},
		}),
	}
}

// mapVar returns a variable on (time, lat, lon).
func mapVar(name string, data any, attrs []Attr) Var {
	return newVar(name, []string{"time", "lat", "lon"}, data, attrs)
}

// newVar returns a variable whose type follows from the slice data.
func newVar(name string, dims []string, data any, attrs []Attr) Var {
	types := map[string]string{"[]int8": "byte", "[]int16": "short", "[]int32": "int", "[]float32": "float"}
	raw, err := binary.Append(nil, binary.LittleEndian, data)
	typ, ok := types[fmt.Sprintf("%T", data)]
	if err != nil || !ok {
		panic(fmt.Sprintf("simulate: no NetCDF type for %T", data))
	}
	return Var{Name: name, Type: typ, Dims: dims, Attrs: attrs, Raw: raw}
}

func narrow(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// filled returns the values with fill in place of NaN.
func filled(values []float32, fill float32) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = v
		if v != v {
			out[i] = fill
		}
	}
	return out
}

// A packing stores numbers as scale·packed + offset in 16 bits.
type packing struct {
	scale, offset float64
	fill          int16
}

func (p packing) pack(values []float32) []int16 {
	out := make([]int16, len(values))
	for i, v := range values {
		out[i] = p.fill
		if v == v {
			n := math.Round((float64(v) - p.offset) / p.scale)
			out[i] = int16(min(max(n, -32766), math.MaxInt16)) // below lie the fill values
		}
	}
	return out
}

func (p packing) attrs() []Attr {
	return []Attr{
		{"_FillValue", []int16{p.fill}},
		{"scale_factor", []float32{float32(p.scale)}},
		{"add_offset", []float32{float32(p.offset)}},
	}
}
