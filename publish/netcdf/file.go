package netcdf

import (
	"errors"
	"fmt"
	"slices"
)

// File describes the content of a NetCDF file, not its storage.
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

// Var is a variable with its data.
type Var struct {
	Name  string
	Type  string // one of byte char short int float double ubyte ushort uint int64 uint64
	Dims  []string
	Attrs []Attr
	Raw   []byte // the stored numbers, little endian, row by row
}

// Attr is an attribute. Value is a string or one of []int8, []uint8, []int16,
// []uint16, []int32, []uint32, []int64, []uint64, []float32 and []float64.
type Attr struct {
	Name  string
	Value any
}

// Validate reports everything in f that Write would refuse, not just the
// first thing.
func (f File) Validate() error {
	var errs []error
	lens := map[string]int{}
	for _, d := range f.Dims {
		if _, twice := lens[d.Name]; twice || d.Name == "" || d.Len < 1 {
			errs = append(errs, fmt.Errorf("dimension %q of length %d is defined twice, nameless or empty", d.Name, d.Len))
		}
		lens[d.Name] = d.Len
	}
	names := map[string]bool{}
	for _, v := range f.Vars {
		if names[v.Name] || v.Name == "" {
			errs = append(errs, fmt.Errorf("variable %q is defined twice or nameless", v.Name))
		}
		names[v.Name] = true
		errs = append(errs, v.validate(lens))
	}
	errs = append(errs, validateAttrs("", f.Attrs))
	return errors.Join(errs...)
}

func (v Var) validate(lens map[string]int) error {
	size := sizeOf(v.Type)
	if size == 0 {
		return fmt.Errorf("variable %s has the unknown type %q", v.Name, v.Type)
	}
	want := size
	for _, name := range v.Dims {
		n, ok := lens[name]
		if !ok {
			return fmt.Errorf("variable %s has the undefined dimension %q", v.Name, name)
		}
		want *= n
	}
	if len(v.Raw) != want {
		return fmt.Errorf("variable %s has %d bytes, its dimensions ask for %d", v.Name, len(v.Raw), want)
	}
	return validateAttrs(v.Name+":", v.Attrs)
}

func validateAttrs(owner string, attrs []Attr) error {
	var errs []error
	for i, a := range attrs {
		if typeOfAttr(a.Value) == "" {
			errs = append(errs, fmt.Errorf("attribute %s%s has a value of type %T", owner, a.Name, a.Value))
		}
		same := func(b Attr) bool { return b.Name == a.Name }
		if a.Name == "" || slices.ContainsFunc(attrs[:i], same) {
			errs = append(errs, fmt.Errorf("attribute %s%s is defined twice or nameless", owner, a.Name))
		}
	}
	return errors.Join(errs...)
}

// sizeOf returns the bytes of one number of a NetCDF type, 0 if there is no
// such type.
func sizeOf(typ string) int {
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

// typeOfAttr returns the NetCDF type an attribute value is stored in, "" if
// it cannot be stored.
func typeOfAttr(value any) string {
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
