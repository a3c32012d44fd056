package zarr

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lacuna/internal/cdl"
)

// fillValue returns the element of a type that a document gives as JSON: a
// number, true, "NaN", "Infinity", or the bits of a float as "0x7fc00000". null
// is zero.
func fillValue(typ string, raw json.RawMessage) ([]byte, error) {
	size := cdl.SizeOf(typ)
	text := strings.Trim(string(raw), `"`)
	switch {
	case len(raw) == 0 || text == "null" || text == "false" || text == "":
		return make([]byte, size), nil
	case text == "true":
		text = "1"
	case strings.HasPrefix(text, "0x"):
		bits, err := hex.DecodeString(text[2:])
		if err != nil || len(bits) != size {
			return nil, fmt.Errorf("fill_value is %.40s, which is no %s", raw, typ)
		}
		return swapped(bits, size), nil
	}
	out, err := cdl.Encode(typ, []string{text})
	if err != nil {
		return nil, fmt.Errorf("fill_value is %.40s: %w", raw, err)
	}
	return out, nil
}

// ofVariable are the attributes whose type is that of their variable, by CF.
func ofVariable(name string) bool {
	return slices.Contains([]string{
		"_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "actual_range", "flag_values", "flag_masks",
	}, name)
}

// Attributes returns attributes of a store as those of a NetCDF variable of a
// type, or with "" those of a file, by their names. Whatever NetCDF has no form
// for, such as nested objects, is left out.
func Attributes(attrs map[string]json.RawMessage, typ string) []cdl.Attr {
	var out []cdl.Attr
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		if name == dimensionsV2 || name == "_NCZARR_ATTR" || name == "_nczarr_attrs" {
			continue
		}
		if value := attribute(name, attrs[name], typ); value != nil {
			out = append(out, cdl.Attr{Name: name, Value: value})
		}
	}
	return out
}

// Attributes returns the attributes of the array as those of a NetCDF variable.
// In version 2 the fill value of the store is the missing value too.
func (a *Array) Attributes() []cdl.Attr {
	attrs := Attributes(a.Attrs, a.Type)
	if _, said := a.Attrs["_FillValue"]; a.Version == 2 && a.HasFill && !said {
		attrs = append(attrs, cdl.Attr{Name: "_FillValue", Value: cdl.Decode(a.Type, a.Fill)})
	}
	return attrs
}

func attribute(name string, raw json.RawMessage, typ string) any {
	var text string
	if json.Unmarshal(quoteNaN(raw), &text) == nil {
		if typ == "" || !ofVariable(name) {
			return text
		}
		if bits, err := base64.StdEncoding.DecodeString(text); err == nil && len(bits) == 8 && (typ == "float" || typ == "double") {
			// xarray writes the missing value of a float in version 3 as the bits of a double.
			return typed(typ, []float64{math.Float64frombits(binary.LittleEndian.Uint64(bits))})
		}
		if raw, err := fillValue(typ, []byte(text)); err == nil { // "NaN"
			return cdl.Decode(typ, raw)
		}
		return text
	}
	var words []string
	if json.Unmarshal(raw, &words) == nil {
		return strings.Join(words, " ")
	}
	numbers, whole := numbersOf(raw)
	if len(numbers) == 0 {
		return nil
	}
	switch {
	case typ != "" && ofVariable(name):
		texts := make([]string, len(numbers))
		for i, n := range numbers {
			texts[i] = n.String()
		}
		if stored, err := cdl.Encode(typ, texts); err == nil {
			return cdl.Decode(typ, stored)
		}
		return nil
	case whole:
		return wholes(numbers)
	}
	values := make([]float64, len(numbers))
	for i, n := range numbers {
		values[i], _ = n.Float64()
	}
	return values
}

// numbersOf returns a number or a list of numbers, and whether all are whole.
func numbersOf(raw json.RawMessage) (numbers []json.Number, whole bool) {
	var one json.Number
	if json.Unmarshal(raw, &one) == nil {
		numbers = []json.Number{one}
	} else if json.Unmarshal(raw, &numbers) != nil {
		return nil, false
	}
	for _, n := range numbers {
		if _, err := n.Int64(); err != nil {
			return numbers, false
		}
	}
	return numbers, true
}

// wholes returns whole numbers in the smallest of int and int64.
func wholes(numbers []json.Number) any {
	long := make([]int64, len(numbers))
	short := make([]int32, len(numbers))
	fits := true
	for i, n := range numbers {
		long[i], _ = n.Int64()
		short[i] = int32(long[i])
		fits = fits && int64(short[i]) == long[i]
	}
	if fits {
		return short
	}
	return long
}

func typed(typ string, values []float64) any {
	if typ == "double" {
		return values
	}
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}
