package ncfile

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"lacuna/internal/cdl"
)

// A Header is all of a file but its numbers. The child sends it first, and
// nothing in it can be trusted before Check has passed.
type Header struct {
	Format string
	Dims   []cdl.Dim
	Vars   []Var
	Attrs  []Attr
	Groups []string // paths of the groups whose variables are among Vars
}

// A Var is a variable without its numbers.
type Var struct {
	Name  string
	Type  string // a type of cdl.Var, or "" for strings and user types, which cannot be read
	Dims  []int  // indices into Header.Dims
	Attrs []Attr
	Aside bool `json:",omitempty"` // it lies outside of the group that is meant, by itself the root
}

// A Attr is an attribute as bytes: of a known type, or text for char.
type Attr struct {
	Name string
	Type string
	Data []byte
}

// Check returns an error if h contradicts itself or has names that would
// garble a message.
func (h *Header) Check() error {
	for _, d := range h.Dims {
		if d.Len < 0 || !printable(d.Name) {
			return fmt.Errorf("dimension %q has length %d", d.Name, d.Len)
		}
	}
	if err := checkAttrs(h.Attrs); err != nil {
		return err
	}
	for _, v := range h.Vars {
		if v.Type != "" && cdl.SizeOf(v.Type) == 0 || !printable(v.Name) {
			return fmt.Errorf("variable %q has type %q", v.Name, v.Type)
		}
		for _, d := range v.Dims {
			if d < 0 || d >= len(h.Dims) {
				return fmt.Errorf("variable %q has dimension number %d of %d", v.Name, d, len(h.Dims))
			}
		}
		if err := checkAttrs(v.Attrs); err != nil {
			return fmt.Errorf("variable %q: %w", v.Name, err)
		}
	}
	return nil
}

func printable(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

func checkAttrs(attrs []Attr) error {
	for _, a := range attrs {
		size := cdl.SizeOf(a.Type)
		if size == 0 || len(a.Data)%size != 0 {
			return fmt.Errorf("attribute %q has %d bytes of type %q", a.Name, len(a.Data), a.Type)
		}
	}
	return nil
}

// Find returns the index of the variable of that name, or -1.
func (h *Header) Find(name string) int {
	return slices.IndexFunc(h.Vars, func(v Var) bool { return v.Name == name })
}

// Shape returns the lengths of the dimensions of variable v.
func (h *Header) Shape(v int) []int {
	dims := h.Vars[v].Dims
	out := make([]int, len(dims))
	for i, d := range dims {
		out[i] = h.Dims[d].Len
	}
	return out
}

// Bytes returns the size in bytes of the numbers of variable v. It is exact up
// to 2^53 and at least that beyond, which is precise enough to refuse a file.
func (h *Header) Bytes(v int) float64 {
	n := float64(cdl.SizeOf(h.Vars[v].Type))
	for _, l := range h.Shape(v) {
		n *= float64(l)
	}
	return n
}

// Text returns a text attribute, or "".
func (v *Var) Text(name string) string { return TextOf(v.Attrs, name) }

// Numbers returns a numeric attribute, or nil.
func (v *Var) Numbers(name string) []float64 { return NumbersOf(v.Attrs, name) }

// Attr returns the attribute of that name, or nil.
func (v *Var) Attr(name string) *Attr { return AttrOf(v.Attrs, name) }

// AttrOf returns the attribute of that name among some, or nil.
func AttrOf(attrs []Attr, name string) *Attr {
	for i := range attrs {
		if attrs[i].Name == name {
			return &attrs[i]
		}
	}
	return nil
}

// TextOf returns the text attribute of that name among some, or "".
func TextOf(attrs []Attr, name string) string {
	a := AttrOf(attrs, name)
	if a == nil || a.Type != "char" {
		return ""
	}
	return strings.TrimSpace(a.String())
}

// NumbersOf returns the numeric attribute of that name among some, or nil.
func NumbersOf(attrs []Attr, name string) []float64 {
	a := AttrOf(attrs, name)
	if a == nil || a.Type == "char" {
		return nil
	}
	return cdl.Floats(a.Type, a.Data)
}

// String returns the text of a char attribute without the trailing zero bytes
// that C programs leave behind.
func (a Attr) String() string {
	return strings.TrimRight(string(a.Data), "\x00")
}

// Value returns the attribute as cdl.Attr.Value describes it.
func (a Attr) Value() any {
	if a.Type == "char" {
		return a.String()
	}
	return cdl.Decode(a.Type, a.Data)
}
