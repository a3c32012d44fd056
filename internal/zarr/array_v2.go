package zarr

import (
	"encoding/json"
	"errors"
	"fmt"

	"lacuna/internal/cdl"
)

// dimensionsV2 is the attribute in which xarray keeps the names of dimensions,
// for which version 2 has no other place.
const dimensionsV2 = "_ARRAY_DIMENSIONS"

func newV2(store Store, name string, raw, attrs json.RawMessage) (*Array, error) {
	var doc arrayV2
	if err := parse(name, raw, &doc); err != nil {
		return nil, err
	}
	a := &Array{Name: name, Version: 2, Shape: doc.Shape, Chunks: doc.Chunks, Attrs: map[string]json.RawMessage{}, store: store}
	if len(attrs) > 0 {
		if err := parse(name, attrs, &a.Attrs); err != nil {
			return nil, err
		}
	}
	err := a.fromV2(doc)
	switch {
	case errors.Is(err, errUnusable):
		a.Unusable, a.Type = err.Error(), ""
	case err != nil:
		return nil, fmt.Errorf("array %s: %w", name, err)
	}
	return a, nil
}

func (a *Array) fromV2(doc arrayV2) error {
	if doc.Format != 2 {
		return fmt.Errorf("format %d, must be 2", doc.Format)
	}
	if err := checkShape("its shape", doc.Shape, 0); err != nil {
		return err
	}
	if dims, ok := a.Attrs[dimensionsV2]; ok {
		if err := json.Unmarshal(dims, &a.Dims); err != nil || len(a.Dims) != len(a.Shape) {
			return fmt.Errorf("%s is %.80s, and it has %d dimensions", dimensionsV2, dims, len(a.Shape))
		}
	}
	if doc.Separator != "" && doc.Separator != "." && doc.Separator != "/" {
		return fmt.Errorf("dimension_separator is %q", doc.Separator)
	}
	a.key = keysV2(a.Name, doc.Separator)
	var typ string
	if err := json.Unmarshal(doc.Type, &typ); err != nil {
		return fmt.Errorf("%w: its type is %.80s", errUnusable, doc.Type)
	}
	var big bool
	if a.Type, big = typeV2(typ); a.Type == "" {
		return fmt.Errorf("%w: its type is %q", errUnusable, typ)
	}
	a.chain = chain{size: cdl.SizeOf(a.Type), big: big}
	if doc.Order == "F" {
		for i := range a.Shape {
			a.chain.order = append(a.chain.order, len(a.Shape)-1-i)
		}
	}
	var err error
	if a.Fill, err = fillValue(a.Type, doc.FillValue); err != nil {
		return err
	}
	a.HasFill = len(doc.FillValue) > 0 && string(doc.FillValue) != "null"
	if len(doc.Filters) > maxRank {
		return fmt.Errorf("it has %d filters, more than %d", len(doc.Filters), maxRank)
	}
	for _, filter := range append(doc.Filters, doc.Compressor) {
		if err := a.chain.addV2(filter); err != nil {
			return err
		}
	}
	return a.checkChunks()
}

// addV2 adds a filter or compressor of numcodecs; null is none.
func (c *chain) addV2(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var set struct {
		ID   string `json:"id"`
		Size int    `json:"elementsize"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return fmt.Errorf("codec %.80s: %w", raw, err)
	}
	step, known := inflaters(set.ID)
	switch {
	case set.ID == "shuffle":
		if set.Size < 1 || set.Size > 255 {
			return fmt.Errorf("codec shuffle: elementsize is %d", set.Size)
		}
		step = inflater{name: "shuffle", decode: func(b []byte, _ int) ([]byte, error) { return unshuffle(b, set.Size), nil }}
	case !known || set.ID == "crc32c": // the one of numcodecs puts its checksum elsewhere
		return fmt.Errorf("%w: it is coded with %s", errUnusable, set.ID)
	}
	c.inflate = append(c.inflate, step)
	return nil
}

// typeV2 reads a type as numpy writes it, such as <f4.
func typeV2(text string) (typ string, big bool) {
	if len(text) != 3 {
		return "", false
	}
	typ = map[string]string{
		"b1": "ubyte", "i1": "byte", "u1": "ubyte", "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint",
		"i8": "int64", "u8": "uint64", "f4": "float", "f8": "double",
	}[text[1:]]
	switch text[0] {
	case '<', '|':
		return typ, false
	case '>':
		return typ, cdl.SizeOf(typ) > 1
	}
	return "", false
}
