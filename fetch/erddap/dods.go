package erddap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"lacuna/internal/cdl"
)

// declaration is an array of a Dataset Descriptor Structure.
type declaration struct {
	name  string
	typ   string // as in package cdl
	dims  []string
	shape []int
}

// array is an array with its numbers, little endian.
type array struct {
	declaration
	raw []byte
}

// parseDDS reads a Dataset Descriptor Structure: its arrays, those of a grid
// with the maps behind it, in the order of their numbers.
func parseDDS(text []byte) ([]declaration, error) {
	words, err := tokens(text)
	if err != nil {
		return nil, fmt.Errorf("structure: %w", err)
	}
	if len(words) < 2 || !strings.EqualFold(words[0], "dataset") || words[1] != "{" {
		return nil, errors.New("structure: not a Dataset Descriptor Structure")
	}
	var out []declaration
	for words = words[2:]; len(words) > 0; {
		switch kind := strings.ToLower(words[0]); {
		case kind == "}" && len(words) >= 3 && words[2] == ";":
			words = words[3:] // the name of a grid, or of the dataset
		case kind == "grid" && len(words) > 1 && words[1] == "{":
			words = words[2:]
		case kind == "array:" || kind == "maps:":
			words = words[1:]
		case (kind == "array" || kind == "maps") && len(words) > 1 && words[1] == ":":
			words = words[2:]
		case types(kind) != "":
			end := index(words, ";")
			if end < 2 {
				return nil, errors.New("structure: an array has no end")
			}
			d, err := declared(types(kind), words[1:end])
			if err != nil {
				return nil, err
			}
			out = append(out, d)
			words = words[end+1:]
		default:
			return nil, fmt.Errorf("structure: %.60q is no part of a grid", words[0])
		}
	}
	return out, nil
}

// declared reads NAME [DIM = N] [DIM = N] ...
func declared(typ string, words []string) (declaration, error) {
	d := declaration{name: words[0], typ: typ}
	for rest := words[1:]; len(rest) > 0; rest = rest[5:] {
		if len(rest) < 5 || rest[0] != "[" || rest[2] != "=" || rest[4] != "]" {
			return d, fmt.Errorf("structure: the shape of %.60s cannot be read", d.name)
		}
		n, err := strconv.Atoi(rest[3])
		if err != nil || n < 0 || n > 1<<40 {
			return d, fmt.Errorf("structure: %.60s has the length %.40q", d.name, rest[3])
		}
		d.dims, d.shape = append(d.dims, rest[1]), append(d.shape, n)
	}
	return d, nil
}

// elements returns the number of numbers; -1 where it is beyond most.
func (d declaration) elements(most int) int {
	n := 1
	for _, extent := range d.shape {
		if extent > 0 && n > most/extent {
			return -1
		}
		n *= extent
	}
	return n
}

// parseDODS reads the answer to a request for numbers: their structure in text,
// then the numbers of each array in XDR.
func parseDODS(text []byte, most int64) ([]array, error) {
	dds, data, ok := bytes.Cut(text, []byte("\nData:"))
	line, data, ends := bytes.Cut(data, []byte("\n"))
	if !ok || !ends || len(bytes.TrimSpace(line)) > 0 {
		return nil, fmt.Errorf("the answer has no numbers: %w", io.ErrUnexpectedEOF)
	}
	declarations, err := parseDDS(dds)
	if err != nil {
		return nil, err
	}
	var out []array
	for _, d := range declarations {
		a := array{declaration: d}
		n := d.elements(int(most))
		if n < 0 || int64(n)*int64(cdl.SizeOf(d.typ)) > most {
			return nil, fmt.Errorf("%s has the shape %v, which is more than was asked for", d.name, d.shape)
		}
		if a.raw, data, err = numbers(d, n, data); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		out = append(out, a)
	}
	return out, nil
}

// numbers reads n numbers in XDR and returns them little endian, with the rest.
// An array has its length twice; bytes are packed, other small integers take
// four bytes each.
func numbers(d declaration, n int, data []byte) (raw, rest []byte, err error) {
	size := cdl.SizeOf(d.typ)
	if len(d.dims) > 0 {
		if len(data) < 8 {
			return nil, nil, io.ErrUnexpectedEOF
		}
		if first, second := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:]); int64(first) != int64(n) || first != second {
			return nil, nil, fmt.Errorf("it has %d numbers, and its shape takes %d", first, n)
		}
		data = data[8:]
	}
	wide := max(size, 4)
	if size == 1 {
		wide = 1
	}
	taken := n * wide
	if padded := (taken + 3) / 4 * 4; padded > len(data) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	raw = make([]byte, n*size)
	for i := range n {
		for j := range size {
			raw[i*size+j] = data[(i+1)*wide-1-j]
		}
	}
	return raw, data[(taken+3)/4*4:], nil
}
