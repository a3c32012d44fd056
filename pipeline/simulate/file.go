package simulate

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"lacuna/internal/cdl"
)

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
func (s *sheet) dims() []cdl.Dim {
	return []cdl.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: s.chart.h}, {Name: "lon", Len: s.chart.w}}
}

// axes returns the coordinate variables: time as whole seconds since the
// epoch that ocean products use.
func (s *sheet) axes() []cdl.Var {
	return []cdl.Var{
		newVar("time", []string{"time"}, []int32{secondsOf(s.time)}, []cdl.Attr{
			{Name: "standard_name", Value: "time"},
			{Name: "long_name", Value: "reference time of the day"},
			{Name: "units", Value: "seconds since 1981-01-01 00:00:00"},
			{Name: "calendar", Value: "gregorian"},
			{Name: "axis", Value: "T"},
		}),
		newVar("lat", []string{"lat"}, narrow(s.chart.grid.Lat), []cdl.Attr{
			{Name: "standard_name", Value: "latitude"},
			{Name: "long_name", Value: "latitude"},
			{Name: "units", Value: "degrees_north"},
			{Name: "axis", Value: "Y"},
			{Name: "valid_min", Value: []float32{-90}},
			{Name: "valid_max", Value: []float32{90}},
		}),
		newVar("lon", []string{"lon"}, narrow(s.chart.grid.Lon), []cdl.Attr{
			{Name: "standard_name", Value: "longitude"},
			{Name: "long_name", Value: "longitude"},
			{Name: "units", Value: "degrees_east"},
			{Name: "axis", Value: "X"},
			{Name: "valid_min", Value: []float32{-180}},
			{Name: "valid_max", Value: []float32{180}},
		}),
	}
}

// mapVar returns a variable on (time, lat, lon).
func mapVar(name string, data any, attrs []cdl.Attr) cdl.Var {
	return newVar(name, []string{"time", "lat", "lon"}, data, attrs)
}

// newVar returns a variable whose type follows from the slice data.
func newVar(name string, dims []string, data any, attrs []cdl.Attr) cdl.Var {
	raw, err := binary.Append(nil, binary.LittleEndian, data)
	typ := cdl.TypeOf(data)
	if err != nil || typ == "" {
		panic(fmt.Sprintf("simulate: no NetCDF type for %T", data))
	}
	return cdl.Var{Name: name, Type: typ, Dims: dims, Attrs: attrs, Raw: raw}
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

func (p packing) attrs() []cdl.Attr {
	return []cdl.Attr{
		{Name: "_FillValue", Value: []int16{p.fill}},
		{Name: "scale_factor", Value: []float32{float32(p.scale)}},
		{Name: "add_offset", Value: []float32{float32(p.offset)}},
	}
}
