package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Marshal returns the model as the bytes of an ONNX file. The same model
// always gives the same bytes. It makes the checks of Unmarshal, so that a file
// written can be read.
func Marshal(m *Model) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("write ONNX model: %w", err)
	}
	b := appendInt(nil, 1, m.IRVersion)
	b = appendText(b, 2, m.ProducerName)
	b = appendText(b, 3, m.ProducerVersion)
	b = appendText(b, 4, m.Domain)
	b = appendInt(b, 5, m.ModelVersion)
	b = appendText(b, 6, m.Doc)
	b = appendBytes(b, 7, encodeGraph(&m.Graph))
	for _, o := range m.Opsets {
		b = appendBytes(b, 8, appendInt(appendText(nil, 1, o.Domain), 2, o.Version))
	}
	for _, key := range slices.Sorted(maps.Keys(m.Metadata)) {
		b = appendBytes(b, 14, appendText(appendText(nil, 1, key), 2, m.Metadata[key]))
	}
	return b, nil
}

func encodeGraph(g *Graph) []byte {
	room := 0
	for i := range g.Initializers {
		room += len(g.Initializers[i].Raw) + 64
	}
	b := make([]byte, 0, room+128*len(g.Nodes))
	for i := range g.Nodes {
		b = appendBytes(b, 1, encodeNode(&g.Nodes[i]))
	}
	b = appendText(b, 2, g.Name)
	for i := range g.Initializers {
		b = appendBytes(b, 5, encodeTensor(&g.Initializers[i]))
	}
	b = appendText(b, 10, g.Doc)
	for _, v := range g.Inputs {
		b = appendBytes(b, 11, encodeValueInfo(v))
	}
	for _, v := range g.Outputs {
		b = appendBytes(b, 12, encodeValueInfo(v))
	}
	for _, v := range g.Values {
		b = appendBytes(b, 13, encodeValueInfo(v))
	}
	return b
}

func encodeNode(n *Node) []byte {
	var b []byte
	for _, name := range n.Inputs {
		b = appendBytes(b, 1, []byte(name)) // an empty name holds its place
	}
	for _, name := range n.Outputs {
		b = appendBytes(b, 2, []byte(name))
	}
	b = appendText(b, 3, n.Name)
	b = appendText(b, 4, n.Op)
	for i := range n.Attributes {
		b = appendBytes(b, 5, encodeAttribute(&n.Attributes[i]))
	}
	b = appendText(b, 6, n.Doc)
	return appendText(b, 7, n.Domain)
}

func encodeAttribute(a *Attribute) []byte {
	b := appendText(nil, 1, a.Name)
	switch a.Type {
	case AttrFloat:
		b = protowire.AppendTag(b, 2, protowire.Fixed32Type)
		b = protowire.AppendFixed32(b, math.Float32bits(a.Float))
	case AttrInt:
		b = protowire.AppendTag(b, 3, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(a.Int))
	case AttrString:
		b = appendBytes(b, 4, []byte(a.String))
	case AttrTensor:
		b = appendBytes(b, 5, encodeTensor(a.Tensor))
	case AttrFloats:
		for _, f := range a.Floats {
			b = protowire.AppendTag(b, 7, protowire.Fixed32Type)
			b = protowire.AppendFixed32(b, math.Float32bits(f))
		}
	case AttrInts:
		for _, v := range a.Ints {
			b = protowire.AppendTag(b, 8, protowire.VarintType)
			b = protowire.AppendVarint(b, uint64(v))
		}
	case AttrStrings:
		for _, s := range a.Strings {
			b = appendBytes(b, 9, []byte(s))
		}
	}
	return appendInt(b, 20, int64(a.Type))
}

func encodeTensor(t *Tensor) []byte {
	b := make([]byte, 0, len(t.Raw)+len(t.Name)+10*len(t.Dims)+16)
	for _, d := range t.Dims {
		b = protowire.AppendTag(b, 1, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(d)) // zero is a size here, not an absence
	}
	b = appendInt(b, 2, int64(t.Type))
	b = appendText(b, 8, t.Name)
	return appendBytes(b, 9, t.Raw)
}

func encodeValueInfo(v ValueInfo) []byte {
	var shape []byte
	for _, d := range v.Shape {
		var dim []byte
		if d.Symbol != "" {
			dim = appendText(nil, 2, d.Symbol)
		} else {
			dim = protowire.AppendTag(nil, 1, protowire.VarintType)
			dim = protowire.AppendVarint(dim, uint64(d.Size))
		}
		shape = appendBytes(shape, 1, dim)
	}
	tensor := appendBytes(appendInt(nil, 1, int64(v.Type)), 2, shape)
	return appendBytes(appendText(nil, 1, v.Name), 2, appendBytes(nil, 1, tensor))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// appendText leaves out an empty text, as protobuf does.
func appendText(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// appendInt leaves out a zero, as protobuf does.
func appendInt(b []byte, field protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}
