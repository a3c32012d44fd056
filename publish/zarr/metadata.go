package zarr

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"lacuna/internal/cdl"
)

// array is the metadata of an array, as its zarr.json has it.
type array struct {
	Shape      []int          `json:"shape"`
	Type       string         `json:"data_type"`
	Grid       grid           `json:"chunk_grid"`
	Keys       extension      `json:"chunk_key_encoding"`
	Fill       any            `json:"fill_value"`
	Codecs     []extension    `json:"codecs"`
	Attrs      map[string]any `json:"attributes"`
	Dims       []string       `json:"dimension_names"`
	Format     int            `json:"zarr_format"`
	Kind       string         `json:"node_type"`
	Transforms []any          `json:"storage_transformers"`
}

// grid cuts an array into chunks of one shape.
type grid struct {
	Name          string `json:"name"`
	Configuration struct {
		Shape []int `json:"chunk_shape"`
	} `json:"configuration"`
}

// extension is a codec, or another part that a name and settings describe.
type extension struct {
	Name          string         `json:"name"`
	Configuration map[string]any `json:"configuration,omitempty"`
}

// group is the zarr.json of a store.
type group struct {
	Attrs        map[string]any `json:"attributes"`
	Format       int            `json:"zarr_format"`
	Consolidated consolidated   `json:"consolidated_metadata"`
	Kind         string         `json:"node_type"`
}

type consolidated struct {
	Kind           string           `json:"kind"`
	MustUnderstand bool             `json:"must_understand"`
	Metadata       map[string]array `json:"metadata"`
}

// stringType is the type of arrays of text.
const stringType = "string"

// typeNames are the names of the types of NetCDF in Zarr.
var typeNames = map[string]string{
	"byte": "int8", "ubyte": "uint8", "char": "int8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
	"int64": "int64", "uint64": "uint64", "float": "float32", "double": "float64",
}

func sizeOf(typ string) int {
	for nc, name := range typeNames {
		if name == typ {
			return cdl.SizeOf(nc)
		}
	}
	return 0
}

// newArray describes an array. inner is the shape of a chunk in a shard; nil:
// chunks are stored as they are.
func newArray(typ string, dims []string, shape, chunk, inner []int, fill any, attrs map[string]any) array {
	a := array{
		Shape: append([]int{}, shape...), Type: typ, Fill: fill, Attrs: attrs, Dims: append([]string{}, dims...),
		Keys:   extension{Name: "default", Configuration: map[string]any{"separator": "/"}},
		Codecs: plainCodecs(typ), Format: 3, Kind: "array", Transforms: []any{},
	}
	a.Grid.Name, a.Grid.Configuration.Shape = "regular", append([]int{}, chunk...)
	if inner != nil {
		a.Codecs = []extension{{Name: "sharding_indexed", Configuration: map[string]any{
			"chunk_shape": inner, "codecs": asRead(plainCodecs(typ)),
			"index_codecs":   asRead([]extension{littleEndian(), {Name: "crc32c"}}),
			"index_location": "end",
		}}}
	}
	return a
}

// asRead returns codecs as they are when read from JSON, so that metadata that
// was read is written as it was.
func asRead(codecs []extension) (list []any) {
	for _, c := range codecs {
		one := map[string]any{"name": c.Name}
		if c.Configuration != nil {
			one["configuration"] = c.Configuration
		}
		list = append(list, one)
	}
	return list
}

func littleEndian() extension {
	return extension{Name: "bytes", Configuration: map[string]any{"endian": "little"}}
}

func plainCodecs(typ string) []extension {
	first := littleEndian()
	switch {
	case typ == stringType:
		first = extension{Name: "vlen-utf8"}
	case sizeOf(typ) == 1:
		first = extension{Name: "bytes"}
	}
	return []extension{first, {Name: "zstd", Configuration: map[string]any{"level": 3, "checksum": false}}}
}

// alongTime reports whether an array has a slot for every time.
func (a array) alongTime(dim string) bool { return len(a.Dims) > 0 && a.Dims[0] == dim }

// sharded reports whether an array is a map: a shard for every time.
func (a array) sharded() bool { return a.Codecs[0].Name == "sharding_indexed" }

// row returns the bytes of one slot of an array of numbers.
func (a array) row() int {
	n := sizeOf(a.Type)
	for _, length := range a.Shape[1:] {
		n *= length
	}
	return n
}

// fillRow returns an empty slot.
func (a array) fillRow() []byte {
	if a.Type == stringType {
		return nil
	}
	return slices.Repeat(fillBytes(a.Type, a.Fill), a.row()/sizeOf(a.Type))
}

// fillBytes returns a fill value as it is stored.
func fillBytes(typ string, fill any) []byte {
	x := math.NaN()
	if v, ok := fill.(float64); ok {
		x = v
	}
	switch typ {
	case "float32":
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x)))
	case "float64":
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	}
	if strings.HasPrefix(typ, "uint") {
		return binary.LittleEndian.AppendUint64(nil, uint64(x))[:sizeOf(typ)]
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(int64(x)))[:sizeOf(typ)]
}

// jsonNumber returns a number as fill values have it in JSON.
func jsonNumber(typ string, x float64) any {
	if (typ == "float32" || typ == "float64") && (math.IsNaN(x) || math.IsInf(x, 0)) {
		return "NaN"
	}
	return x
}

// attrsOf returns the attributes of a variable for JSON. A missing value is
// written as xarray reads it: of floating type, the bytes of a double.
func attrsOf(attrs []cdl.Attr, typ string) map[string]any {
	out := map[string]any{}
	for _, a := range attrs {
		v := reflect.ValueOf(a.Value)
		switch {
		case a.Name == "_Encoding": // text is UTF-8 here
		case a.Name == "_FillValue" && (typ == "float32" || typ == "float64"):
			x := v.Index(0).Float()
			out[a.Name] = base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)))
		case v.Kind() == reflect.String:
			out[a.Name] = a.Value
		case v.Len() == 1:
			out[a.Name] = jsonAttr(v.Index(0))
		default:
			list := make([]any, v.Len()) // a slice of bytes would become base64
			for i := range list {
				list[i] = jsonAttr(v.Index(i))
			}
			out[a.Name] = list
		}
	}
	return out
}

// jsonAttr returns a number of an attribute; JSON has none for NaN.
func jsonAttr(v reflect.Value) any {
	if v.CanFloat() && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)) {
		return fmt.Sprint(v.Float())
	}
	return v.Interface()
}

// encode returns metadata as the text of a zarr.json.
func encode(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode zarr.json: %w", err)
	}
	return append(text, '\n'), nil
}

// differs names the first setting in which the array of a product does not fit
// that of the store; empty: it does.
func (a array) differs(b array) string {
	switch {
	case a.Type != b.Type:
		return fmt.Sprintf("has type %s, not %s", b.Type, a.Type)
	case !slices.Equal(a.Dims, b.Dims):
		return fmt.Sprintf("runs along %v, not %v", b.Dims, a.Dims)
	case len(a.Shape) != len(b.Shape) || len(a.Shape) > 0 && !slices.Equal(a.Shape[1:], b.Shape[1:]):
		return fmt.Sprintf("has shape %v, not %v", b.Shape, a.Shape)
	}
	for _, name := range []string{"_FillValue", "scale_factor", "add_offset", "units"} {
		there, _ := json.Marshal(a.Attrs[name]) // as JSON, which has one kind of number
		if own, err := json.Marshal(b.Attrs[name]); err != nil || !bytes.Equal(there, own) {
			return fmt.Sprintf("has %s %v, not %v", name, b.Attrs[name], a.Attrs[name])
		}
	}
	return ""
}
