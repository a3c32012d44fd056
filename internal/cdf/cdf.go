// Package cdf writes a NetCDF file in the classic format with 64-bit data
// (CDF-5), which knows every type of package cdl, in pure Go.
//
// The bytes depend on the content alone: the same description gives the same
// file, so that an archive that makes files of what a server sends can be asked
// twice. The size of a file follows from its header, before there are numbers.
//
// Package cdf reads nothing, compresses nothing, and has no unlimited dimension:
// one that is said to be unlimited is written with its length.
package cdf

import (
	"encoding/binary"
	"fmt"
	"math"

	"lacuna/internal/cdl"
)

// Tags of the lists of a header.
const (
	tagDim  = 0x0A
	tagVar  = 0x0B
	tagAttr = 0x0C
)

// types are the numbers of the types in a header.
func types(name string) int32 {
	return map[string]int32{
		"byte": 1, "char": 2, "short": 3, "int": 4, "float": 5, "double": 6, "ubyte": 7, "ushort": 8, "uint": 9, "int64": 10, "uint64": 11,
	}[name]
}

// Size returns the bytes of the file that Encode makes of f, whose variables
// need not have their numbers yet.
func Size(f cdl.File) (int64, error) {
	header, err := encodeHeader(f, nil)
	if err != nil {
		return 0, err
	}
	total := int64(len(header))
	for _, v := range f.Vars {
		n, err := bytesOf(f, v)
		if err != nil {
			return 0, err
		}
		total += padded(n)
	}
	return total, nil
}

// Encode returns the file of f.
func Encode(f cdl.File) ([]byte, error) {
	header, err := encodeHeader(f, nil)
	if err != nil {
		return nil, err
	}
	at := int64(len(header))
	begins := make([]int64, len(f.Vars))
	for i, v := range f.Vars {
		n, err := bytesOf(f, v)
		if err != nil {
			return nil, err
		}
		if int64(len(v.Raw)) != n {
			return nil, fmt.Errorf("variable %s has %d bytes of numbers, and its shape takes %d", v.Name, len(v.Raw), n)
		}
		begins[i] = at
		at += padded(n)
	}
	if header, err = encodeHeader(f, begins); err != nil {
		return nil, err
	}
	out := make([]byte, 0, at)
	out = append(out, header...)
	for _, v := range f.Vars {
		out = appendSwapped(out, v.Raw, cdl.SizeOf(v.Type))
		out = pad(out)
	}
	return out, nil
}

func bytesOf(f cdl.File, v cdl.Var) (int64, error) {
	n := int64(cdl.SizeOf(v.Type))
	if n == 0 {
		return 0, fmt.Errorf("variable %s has the type %q, which cannot be written", v.Name, v.Type)
	}
	for _, name := range v.Dims {
		i := dim(f, name)
		if i < 0 {
			return 0, fmt.Errorf("variable %s has the dimension %s, which the file does not have", v.Name, name)
		}
		if extent := int64(f.Dims[i].Len); extent > 0 && n > math.MaxInt64/extent/2 {
			return 0, fmt.Errorf("variable %s is too large", v.Name)
		}
		n *= int64(f.Dims[i].Len)
	}
	return n, nil
}

func dim(f cdl.File, name string) int {
	for i, d := range f.Dims {
		if d.Name == name {
			return i
		}
	}
	return -1
}

// encodeHeader returns the header. Without begins it has the right length and
// the wrong places.
func encodeHeader(f cdl.File, begins []int64) ([]byte, error) {
	h := header("CDF\x05")
	h.long(0) // no records
	h.list(tagDim, len(f.Dims))
	for _, d := range f.Dims {
		if d.Len < 0 {
			return nil, fmt.Errorf("dimension %s has the length %d", d.Name, d.Len)
		}
		h.name(d.Name)
		h.long(int64(d.Len))
	}
	if err := h.attrs(f.Attrs); err != nil {
		return nil, err
	}
	h.list(tagVar, len(f.Vars))
	for i, v := range f.Vars {
		h.name(v.Name)
		h.long(int64(len(v.Dims)))
		for _, name := range v.Dims {
			h.long(int64(dim(f, name)))
		}
		if err := h.attrs(v.Attrs); err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		n, err := bytesOf(f, v)
		if err != nil {
			return nil, err
		}
		h.int(types(v.Type))
		h.long(padded(n))
		begin := int64(0)
		if begins != nil {
			begin = begins[i]
		}
		h.long(begin)
	}
	return h, nil
}

// header is a header as it grows.
type header []byte

func (h *header) int(n int32)  { *h = binary.BigEndian.AppendUint32(*h, uint32(n)) }
func (h *header) long(n int64) { *h = binary.BigEndian.AppendUint64(*h, uint64(n)) }

func (h *header) list(tag int32, n int) {
	if n == 0 {
		tag = 0
	}
	h.int(tag)
	h.long(int64(n))
}

func (h *header) name(text string) {
	h.long(int64(len(text)))
	*h = pad(append(*h, text...))
}

func (h *header) attrs(attrs []cdl.Attr) error {
	h.list(tagAttr, len(attrs))
	for _, a := range attrs {
		typ := cdl.TypeOf(a.Value)
		if typ == "" {
			return fmt.Errorf("attribute %s is a %T, which cannot be written", a.Name, a.Value)
		}
		h.name(a.Name)
		h.int(types(typ))
		if text, ok := a.Value.(string); ok {
			h.name(text) // a length and characters, like a name
			continue
		}
		n := binary.Size(a.Value) / cdl.SizeOf(typ)
		h.long(int64(n))
		grown, err := binary.Append(*h, binary.BigEndian, a.Value)
		if err != nil {
			return fmt.Errorf("attribute %s: %w", a.Name, err)
		}
		*h = pad(grown)
	}
	return nil
}

func padded(n int64) int64 { return (n + 3) / 4 * 4 }

func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// appendSwapped appends little endian numbers as big endian ones.
func appendSwapped(out, raw []byte, size int) []byte {
	if size == 1 {
		return append(out, raw...)
	}
	at := len(out)
	out = append(out, raw...)
	for i := at; i+size <= len(out); i += size {
		for a, b := i, i+size-1; a < b; a, b = a+1, b-1 {
			out[a], out[b] = out[b], out[a]
		}
	}
	return out
}
