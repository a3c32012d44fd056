package netcdf

import (
	"encoding/binary"
	"math"

	"lacuna/internal/cdl"
)

// This file turns numbers into the bytes of a NetCDF type and back. All bytes
// are little endian, as in Var.Raw.

func isFloat(typ string) bool { return typ == "float" || typ == "double" }

// unsigned returns the type that the attribute _Unsigned makes of typ.
func unsigned(typ string) string {
	switch typ {
	case "byte", "short", "int":
		return "u" + typ
	case "int64":
		return "uint64"
	}
	return typ
}

// limits returns the least and the greatest number of a type that a float64
// can hold too.
func limits(typ string) (lo, hi float64) {
	switch typ {
	case "byte":
		return math.MinInt8, math.MaxInt8
	case "ubyte":
		return 0, math.MaxUint8
	case "short":
		return math.MinInt16, math.MaxInt16
	case "ushort":
		return 0, math.MaxUint16
	case "int":
		return math.MinInt32, math.MaxInt32
	case "uint":
		return 0, math.MaxUint32
	case "int64":
		return math.MinInt64, math.Nextafter(math.MaxInt64, 0)
	case "uint64":
		return 0, math.Nextafter(math.MaxUint64, 0)
	case "float":
		return -math.MaxFloat32, math.MaxFloat32
	}
	return -math.MaxFloat64, math.MaxFloat64
}

// appendNumber appends x, which must lie within the limits of typ and be whole
// for an integer type.
func appendNumber(raw []byte, typ string, x float64) []byte {
	switch typ {
	case "byte":
		return append(raw, byte(int8(x)))
	case "ubyte":
		return append(raw, byte(x))
	case "short":
		return binary.LittleEndian.AppendUint16(raw, uint16(int16(x)))
	case "ushort":
		return binary.LittleEndian.AppendUint16(raw, uint16(x))
	case "int":
		return binary.LittleEndian.AppendUint32(raw, uint32(int32(x)))
	case "uint":
		return binary.LittleEndian.AppendUint32(raw, uint32(x))
	case "int64":
		return binary.LittleEndian.AppendUint64(raw, uint64(int64(x)))
	case "uint64":
		return binary.LittleEndian.AppendUint64(raw, uint64(x))
	case "float":
		return binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
	}
	return binary.LittleEndian.AppendUint64(raw, math.Float64bits(x))
}

// number returns the first number of raw.
func number(raw []byte, typ string) float64 {
	switch typ {
	case "float":
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	case "byte":
		return float64(int8(raw[0]))
	case "ubyte", "char":
		return float64(raw[0])
	case "short":
		return float64(int16(binary.LittleEndian.Uint16(raw)))
	case "ushort":
		return float64(binary.LittleEndian.Uint16(raw))
	case "int":
		return float64(int32(binary.LittleEndian.Uint32(raw)))
	case "uint":
		return float64(binary.LittleEndian.Uint32(raw))
	case "int64":
		return float64(int64(binary.LittleEndian.Uint64(raw)))
	case "uint64":
		return float64(binary.LittleEndian.Uint64(raw))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(raw))
}

// attrFromRaw returns the attribute value whose bytes are raw.
func attrFromRaw(raw []byte, typ string) any {
	n := len(raw) / cdl.SizeOf(typ)
	switch typ {
	case "byte":
		return slice[int8](raw, n)
	case "ubyte":
		return slice[uint8](raw, n)
	case "short":
		return slice[int16](raw, n)
	case "ushort":
		return slice[uint16](raw, n)
	case "int":
		return slice[int32](raw, n)
	case "uint":
		return slice[uint32](raw, n)
	case "int64":
		return slice[int64](raw, n)
	case "uint64":
		return slice[uint64](raw, n)
	case "float":
		return slice[float32](raw, n)
	case "double":
		return slice[float64](raw, n)
	}
	return string(raw)
}

func slice[T any](raw []byte, n int) []T {
	out := make([]T, n)
	if _, err := binary.Decode(raw, binary.LittleEndian, out); err != nil {
		panic("netcdf: " + err.Error()) // the length was computed by the caller
	}
	return out
}

// rawFloats returns the bytes of x, with fill where x is NaN.
func rawFloats(x []float32, fill float32) []byte {
	raw := make([]byte, 4*len(x))
	for i, v := range x {
		if v != v {
			v = fill
		}
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	return raw
}

// Floats returns values as the raw bytes of a variable of type float.
func Floats(values []float32) []byte {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}

// Axis returns a coordinate variable of type double along a dimension of its
// own name.
func Axis(name, units string, values []float64) Var {
	raw := make([]byte, 0, 8*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return Var{Name: name, Type: "double", Dims: []string{name}, Raw: raw, Attrs: []Attr{{Name: "units", Value: units}}}
}
