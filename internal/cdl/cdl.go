// Package cdl describes a NetCDF file as plain data: its dimensions, its
// variables with their numbers, and its attributes, with the types by their
// names in CDL, the language of ncdump.
//
// It reads and writes nothing. A decoder fills such a description in, a
// simulator invents one, and a writer stores it.
package cdl

// File is the content of a file, not its storage.
type File struct {
	Dims  []Dim
	Vars  []Var
	Attrs []Attr // global attributes
}

// Dim is a dimension.
type Dim struct {
	Name      string
	Len       int
	Unlimited bool
}

// Var is a variable with its numbers exactly as they are stored.
type Var struct {
	Name  string
	Type  string // one of byte char short int float double ubyte ushort uint int64 uint64
	Dims  []string
	Attrs []Attr
	Raw   []byte // little endian, row-major
}

// Attr is an attribute. Value is a string or one of []int8, []uint8, []int16,
// []uint16, []int32, []uint32, []int64, []uint64, []float32 and []float64.
type Attr struct {
	Name  string
	Value any
}

// SizeOf returns the bytes of one number of a type, 0 if there is no such type.
func SizeOf(typ string) int {
	switch typ {
	case "byte", "char", "ubyte":
		return 1
	case "short", "ushort":
		return 2
	case "int", "uint", "float":
		return 4
	case "int64", "uint64", "double":
		return 8
	}
	return 0
}

// TypeOf returns the type that the value of an attribute, or a slice of
// numbers, is stored in, "" if it cannot be stored.
func TypeOf(value any) string {
	switch value.(type) {
	case string:
		return "char"
	case []int8:
		return "byte"
	case []uint8:
		return "ubyte"
	case []int16:
		return "short"
	case []uint16:
		return "ushort"
	case []int32:
		return "int"
	case []uint32:
		return "uint"
	case []int64:
		return "int64"
	case []uint64:
		return "uint64"
	case []float32:
		return "float"
	case []float64:
		return "double"
	}
	return ""
}
