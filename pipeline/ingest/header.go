package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unsafe"

	"lacuna/internal/cdl"
)

// A header is all of a file but its numbers. The child sends it first, and
// nothing in it can be trusted before check has passed.
type header struct {
	Format string
	Dims   []Dim
	Vars   []headerVar
	Attrs  []rawAttr
	Groups []string // paths of the groups whose variables are among Vars
}

// A headerVar is a variable without its numbers.
type headerVar struct {
	Name  string
	Type  string // a type of Var, or "" for strings and user types, which cannot be read
	Dims  []int  // indices into header.Dims
	Attrs []rawAttr
	Aside bool `json:",omitempty"` // it lies outside of the group that is meant, by itself the root
}

// A rawAttr is an attribute as bytes: of a known type, or text for char.
type rawAttr struct {
	Name string
	Type string
	Data []byte
}

// check returns an error if h contradicts itself or has names that would
// garble a message.
func (h *header) check() error {
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

func checkAttrs(attrs []rawAttr) error {
	for _, a := range attrs {
		size := cdl.SizeOf(a.Type)
		if size == 0 || len(a.Data)%size != 0 {
			return fmt.Errorf("attribute %q has %d bytes of type %q", a.Name, len(a.Data), a.Type)
		}
	}
	return nil
}

// find returns the index of the variable of that name, or -1.
func (h *header) find(name string) int {
	return slices.IndexFunc(h.Vars, func(v headerVar) bool { return v.Name == name })
}

// shape returns the lengths of the dimensions of variable v.
func (h *header) shape(v int) []int {
	dims := h.Vars[v].Dims
	out := make([]int, len(dims))
	for i, d := range dims {
		out[i] = h.Dims[d].Len
	}
	return out
}

// bytes returns the size in bytes of the numbers of variable v. It is exact up
// to 2^53 and at least that beyond, which is precise enough to refuse a file.
func (h *header) bytes(v int) float64 {
	n := float64(cdl.SizeOf(h.Vars[v].Type))
	for _, l := range h.shape(v) {
		n *= float64(l)
	}
	return n
}

// text returns a text attribute, or "".
func (v *headerVar) text(name string) string { return textOf(v.Attrs, name) }

// numbers returns a numeric attribute, or nil.
func (v *headerVar) numbers(name string) []float64 { return numbersOf(v.Attrs, name) }

// attr returns the attribute of that name, or nil.
func (v *headerVar) attr(name string) *rawAttr { return attrOf(v.Attrs, name) }

func attrOf(attrs []rawAttr, name string) *rawAttr {
	for i := range attrs {
		if attrs[i].Name == name {
			return &attrs[i]
		}
	}
	return nil
}

func textOf(attrs []rawAttr, name string) string {
	a := attrOf(attrs, name)
	if a == nil || a.Type != "char" {
		return ""
	}
	return strings.TrimSpace(a.String())
}

func numbersOf(attrs []rawAttr, name string) []float64 {
	a := attrOf(attrs, name)
	if a == nil || a.Type == "char" {
		return nil
	}
	return cdl.Floats(a.Type, a.Data)
}

// String returns the text of a char attribute without the trailing zero bytes
// that C programs leave behind.
func (a rawAttr) String() string {
	return strings.TrimRight(string(a.Data), "\x00")
}

// value returns the attribute as Attr.Value describes it.
func (a rawAttr) value() any {
	if a.Type == "char" {
		return a.String()
	}
	return cdl.Decode(a.Type, a.Data)
}

// A number is a NetCDF number in memory.
type number interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// viewed returns the numbers that lie in data, without copying. The bytes
// must come from an allocation of their own, whose alignment serves any T.
func viewed[T number](data []byte) []T {
	n := len(data) / int(unsafe.Sizeof(*new(T)))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// finite reports whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
