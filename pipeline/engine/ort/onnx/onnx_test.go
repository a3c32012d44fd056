package onnx

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

// full has something in every field.
func full() *Model {
	return &Model{
		IRVersion: 8, ProducerName: "lacuna", ProducerVersion: "1", Domain: "ocean", ModelVersion: 3, Doc: "a test",
		Opsets:   []Opset{{Version: 18}, {Domain: "com.example", Version: 1}},
		Metadata: map[string]string{"mean": "1.5", "empty": ""},
		Graph: Graph{
			Name: "net", Doc: "graph",
			Nodes: []Node{
				{Name: "first", Op: "Clip", Inputs: []string{"x", "", "w"}, Outputs: []string{"h"}, Doc: "node"},
				{Op: "Odd", Domain: "com.example", Inputs: []string{"h"}, Outputs: []string{"y"}, Attributes: []Attribute{
					Int("i", -4), String("s", "nearest"), Ints("list", 3, 0, -1),
					{Name: "f", Type: AttrFloat, Float: 0.25},
					{Name: "floats", Type: AttrFloats, Floats: []float32{1, -2}},
					{Name: "strings", Type: AttrStrings, Strings: []string{"a", ""}},
					{Name: "t", Type: AttrTensor, Tensor: &Tensor{Name: "inner", Type: Int64, Dims: []int64{1}, Raw: make([]byte, 8)}},
				}},
			},
			Initializers: []Tensor{
				{Name: "w", Type: Float32, Raw: []byte{0, 0, 128, 63}},
				{Name: "none", Type: Float64, Dims: []int64{2, 0}},
				{Name: "b", Type: Bool, Dims: []int64{3}, Raw: []byte{1, 0, 1}},
			},
			Inputs:  []ValueInfo{{Name: "x", Type: Float32, Shape: []Dim{{Symbol: "batch"}, {Size: 3}}}},
			Outputs: []ValueInfo{{Name: "y", Type: Float32, Shape: []Dim{{Symbol: "batch"}, {Size: 3}}}},
			Values:  []ValueInfo{{Name: "h", Type: Float32}},
		},
	}
}

func TestModelReadBackEqualsTheOneWritten(t *testing.T) {
	want := full()
	data, err := Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read differs from written (-want +got):\n%s", diff)
	}
	again, err := Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(data) {
		t.Error("the same model was written as different bytes")
	}
}

func TestEveryTruncatedFileIsAnErrorOrAModelThatValidates(t *testing.T) {
	data, err := Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		m, err := Unmarshal(data[:n])
		if err == nil && m.Validate() != nil {
			t.Fatalf("a file cut at %d of %d bytes was accepted", n, len(data))
		}
	}
	if _, err := Unmarshal(data[:len(data)/2]); err == nil {
		t.Error("half a file was accepted")
	}
}

func TestTensorsAreReadInEveryEncoding(t *testing.T) {
	packed := func(field protowire.Number, raw []byte) []byte { return appendBytes(nil, field, raw) }
	float := binary.LittleEndian.AppendUint32(nil, math.Float32bits(2.5))
	double := binary.LittleEndian.AppendUint64(nil, math.Float64bits(2.5))
	tests := []struct {
		name  string
		kind  DataType
		field []byte
		want  []byte
	}{
		{"floats packed", Float32, packed(4, float), float},
		{"floats one by one", Float32, append(protowire.AppendTag(nil, 4, protowire.Fixed32Type), float...), float},
		{"doubles packed", Float64, packed(10, double), double},
		{"doubles one by one", Float64, append(protowire.AppendTag(nil, 10, protowire.Fixed64Type), double...), double},
		{"int64", Int64, packed(7, protowire.AppendVarint(nil, 300)), []byte{44, 1, 0, 0, 0, 0, 0, 0}},
		{"int32", Int32, packed(5, protowire.AppendVarint(nil, math.MaxUint64)), []byte{255, 255, 255, 255}},
		{"bool in int32", Bool, packed(5, []byte{1}), []byte{1}},
		{"half precision in int32", Float16, packed(5, protowire.AppendVarint(nil, 0x3c00)), []byte{0, 0x3c}},
		{"uint64", Uint64, packed(11, []byte{7}), []byte{7, 0, 0, 0, 0, 0, 0, 0}},
		{"raw", Uint8, packed(9, []byte{9}), []byte{9}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got Tensor
			message := append(appendInt(appendInt(nil, 1, 1), 2, int64(tt.kind)), tt.field...)
			if err := got.decode(message); err != nil {
				t.Fatal(err)
			}
			if err := got.validate(); err != nil {
				t.Fatal(err)
			}
			if string(got.Raw) != string(tt.want) {
				t.Errorf("bytes are %v, want %v", got.Raw, tt.want)
			}
		})
	}
}

func TestBrokenModelsAreRefusedWithTheReason(t *testing.T) {
	tests := []struct {
		name string
		edit func(*Model)
		want string
	}{
		{"no IR version", func(m *Model) { m.IRVersion = 0 }, "IR version"},
		{"no operator set", func(m *Model) { m.Opsets = nil }, "operator set"},
		{"no name", func(m *Model) { m.Graph.Name = "" }, "no name"},
		{"no outputs", func(m *Model) { m.Graph.Outputs = nil }, "no outputs"},
		{"output that nobody computes", func(m *Model) { m.Graph.Outputs[0].Name = "z" }, "never computed"},
		{"input defined later", func(m *Model) { m.Graph.Nodes[0].Inputs[0] = "y" }, "not defined before"},
		{"value defined twice", func(m *Model) { m.Graph.Nodes[1].Outputs[0] = "h" }, "defined twice"},
		{"weight defined twice", func(m *Model) { m.Graph.Initializers[2].Name = "w" }, "taken"},
		{"bytes missing", func(m *Model) { m.Graph.Initializers[0].Raw = nil }, "has 0 bytes, want 4"},
		{"negative dimension", func(m *Model) { m.Graph.Initializers[0].Dims = []int64{-1} }, "dimension -1"},
		{"size that overflows", func(m *Model) { m.Graph.Initializers[0].Dims = []int64{1 << 40, 1 << 40} }, "more elements"},
		{"unknown element type", func(m *Model) { m.Graph.Initializers[0].Type = 99 }, "element type 99"},
		{"subgraph", func(m *Model) { m.Graph.Nodes[1].Attributes[0].Type = attrGraph }, "subgraph"},
		{"node without operator", func(m *Model) { m.Graph.Nodes[0].Op = "" }, "no operator"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := full()
			tt.edit(m)
			_, err := Marshal(m)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Marshal() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

func TestForeignContentsAreRefusedWithTheReason(t *testing.T) {
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":                 {nil, "not an ONNX file"},
		"a text":                  {[]byte("netcdf chlorophyll { dimensions: lat = 4 ; }"), "read ONNX model"},
		"a NetCDF file":           {[]byte("\x89HDF\r\n\x1a\n\x00\x00\x00\x00"), "read ONNX model"},
		"weights in another file": {inGraph(5, appendInt(appendInt(nil, 2, 1), 14, 1)), "another file"},
		"sparse weights":          {inGraph(15, nil), "sparse"},
		"a sequence as input":     {inGraph(11, appendBytes(nil, 2, appendBytes(nil, 4, nil))), "not a tensor"},
		"texts as weights":        {inGraph(5, appendBytes(nil, 6, []byte("a"))), "texts"},
		"a number for a name":     {inGraph(2, nil)[:0], "not an ONNX file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Unmarshal(tt.data)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Unmarshal() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

// inGraph wraps a field of a graph in a model.
func inGraph(field protowire.Number, content []byte) []byte {
	return appendBytes(appendInt(nil, 1, 8), 7, appendBytes(nil, field, content))
}

func TestWeightsAreTyped(t *testing.T) {
	initializers := full().Graph.Initializers
	w, b := initializers[0], initializers[2]
	if got, err := w.Float32s(); err != nil || len(got) != 1 || got[0] != 1 {
		t.Errorf("w is %v, %v, want 1", got, err)
	}
	if _, err := b.Float32s(); err == nil {
		t.Error("bools were read as floats")
	}
}

func FuzzUnmarshal(f *testing.F) {
	data, err := Marshal(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Add(inGraph(5, appendBytes(nil, 4, []byte{1, 2, 3})))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Unmarshal(data)
		if err != nil {
			return
		}
		again, err := Marshal(m)
		if err != nil {
			t.Fatalf("a model that was read cannot be written: %v", err)
		}
		back, err := Unmarshal(again)
		if err != nil {
			t.Fatalf("a model that was written cannot be read: %v", err)
		}
		if !equalModels(m, back) {
			t.Error("reading, writing and reading changed the model")
		}
	})
}

// equalModels compares by bytes: NaN attributes are equal to themselves.
func equalModels(a, b *Model) bool {
	x, errX := Marshal(a)
	y, errY := Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
