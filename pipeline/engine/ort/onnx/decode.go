package onnx

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Unmarshal reads the bytes of an ONNX file. The model it returns has passed
// Validate and keeps no reference to data.
func Unmarshal(data []byte) (*Model, error) {
	m, err := decodeModel(data)
	if err != nil {
		return nil, fmt.Errorf("read ONNX model: %w", err)
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("read ONNX model: %w", err)
	}
	return m, nil
}

// field is one field of a message: a number for varint and fixed types, bytes
// for the rest.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64
	bytes  []byte
}

// errWireType means that the encoding of a field does not match its type.
var errWireType = errors.New("field has the wrong wire type")

// eachField calls visit for the fields of a message in order. visit must ignore
// unknown fields, as the protobuf specification requires.
func eachField(data []byte, visit func(field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(data)
			f.value = uint64(v)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w", number, protowire.ParseError(n))
		}
		data = data[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

func (f field) message(decode func([]byte) error) error {
	if f.kind != protowire.BytesType {
		return errWireType
	}
	return decode(f.bytes)
}

func (f field) text(to *string) error {
	if f.kind != protowire.BytesType {
		return errWireType
	}
	*to = string(f.bytes)
	return nil
}

func (f field) int(to *int64) error {
	if f.kind != protowire.VarintType {
		return errWireType
	}
	*to = int64(f.value)
	return nil
}

// ints takes one integer or a packed run of them.
func (f field) ints(to *[]int64) error {
	if f.kind == protowire.VarintType {
		*to = append(*to, int64(f.value))
		return nil
	}
	if f.kind != protowire.BytesType {
		return errWireType
	}
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		*to = append(*to, int64(v))
		b = b[n:]
	}
	return nil
}

// floats takes one float or a packed run of them.
func (f field) floats(to *[]float32) error {
	if f.kind == protowire.Fixed32Type {
		*to = append(*to, math.Float32frombits(uint32(f.value)))
		return nil
	}
	if f.kind != protowire.BytesType {
		return errWireType
	}
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeFixed32(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		*to = append(*to, math.Float32frombits(v))
		b = b[n:]
	}
	return nil
}

func decodeModel(data []byte) (*Model, error) {
	m := &Model{}
	hasGraph := false
	err := eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return f.int(&m.IRVersion)
		case 2:
			return f.text(&m.ProducerName)
		case 3:
			return f.text(&m.ProducerVersion)
		case 4:
			return f.text(&m.Domain)
		case 5:
			return f.int(&m.ModelVersion)
		case 6:
			return f.text(&m.Doc)
		case 7:
			hasGraph = true
			return f.message(m.Graph.decode)
		case 8:
			return f.message(m.decodeOpset)
		case 14:
			return f.message(m.decodeMetadata)
		}
		return nil
	})
	if err == nil && !hasGraph {
		err = errors.New("no graph: this is not an ONNX file")
	}
	return m, err
}

func (m *Model) decodeOpset(data []byte) error {
	var o Opset
	err := eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&o.Domain)
		case 2:
			return f.int(&o.Version)
		}
		return nil
	})
	m.Opsets = append(m.Opsets, o)
	return err
}

func (m *Model) decodeMetadata(data []byte) error {
	var key, value string
	err := eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&key)
		case 2:
			return f.text(&value)
		}
		return nil
	})
	if m.Metadata == nil {
		m.Metadata = map[string]string{}
	}
	m.Metadata[key] = value
	return err
}
