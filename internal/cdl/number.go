package cdl

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Encode returns numbers given as text as a type stores them, little endian. A
// whole type takes whole numbers within its range, also written as 3.0.
func Encode(typ string, texts []string) ([]byte, error) {
	size := SizeOf(typ)
	if size == 0 || typ == "char" {
		return nil, fmt.Errorf("there are no numbers of type %q", typ)
	}
	out := make([]byte, 0, size*len(texts))
	for _, text := range texts {
		bits, err := bitsOf(typ, text, 8*size)
		if err != nil {
			return nil, fmt.Errorf("%.40q is no %s", text, typ)
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], bits)
		out = append(out, b[:size]...)
	}
	return out, nil
}

func bitsOf(typ, text string, bits int) (uint64, error) {
	switch typ {
	case "float":
		v, err := strconv.ParseFloat(text, 32)
		return uint64(math.Float32bits(float32(v))), err
	case "double":
		v, err := strconv.ParseFloat(text, 64)
		return math.Float64bits(v), err
	}
	if whole, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, ".eE") &&
		whole == math.Trunc(whole) && math.Abs(whole) < 1<<53 {
		text = strconv.FormatFloat(whole, 'f', -1, 64)
	}
	if strings.HasPrefix(typ, "u") {
		return strconv.ParseUint(text, 10, bits)
	}
	v, err := strconv.ParseInt(text, 10, bits)
	return uint64(v), err
}

// Decode returns stored numbers of a type, little endian, as the slice that an
// attribute holds; nil for a type without numbers.
func Decode(typ string, stored []byte) any {
	switch typ {
	case "byte":
		return decoded[int8](stored, 1)
	case "ubyte":
		return decoded[uint8](stored, 1)
	case "short":
		return decoded[int16](stored, 2)
	case "ushort":
		return decoded[uint16](stored, 2)
	case "int":
		return decoded[int32](stored, 4)
	case "uint":
		return decoded[uint32](stored, 4)
	case "int64":
		return decoded[int64](stored, 8)
	case "uint64":
		return decoded[uint64](stored, 8)
	case "float":
		return decoded[float32](stored, 4)
	case "double":
		return decoded[float64](stored, 8)
	}
	return nil
}

func decoded[T any](stored []byte, size int) []T {
	out := make([]T, len(stored)/size)
	if _, err := binary.Decode(stored, binary.LittleEndian, out); err != nil {
		return nil // not reached: the slice is as long as its bytes
	}
	return out
}

// Floats returns stored numbers of a type as floats.
func Floats(typ string, stored []byte) []float64 {
	return Numbers(Decode(typ, stored))
}

// Numbers returns the value of an attribute as floats, nil if it is no number.
func Numbers(value any) []float64 {
	switch v := value.(type) {
	case []float64:
		return slices.Clone(v)
	case []float32:
		return floats(v)
	case []int8:
		return floats(v)
	case []uint8:
		return floats(v)
	case []int16:
		return floats(v)
	case []uint16:
		return floats(v)
	case []int32:
		return floats(v)
	case []uint32:
		return floats(v)
	case []int64:
		return floats(v)
	case []uint64:
		return floats(v)
	}
	return nil
}

func floats[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32](values []T) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}
