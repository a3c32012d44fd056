package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

func (g *Graph) decode(data []byte) error {
	return eachField(data, func(f field) error {
		switch f.number {
		case 1:
			var n Node
			err := f.message(n.decode)
			g.Nodes = append(g.Nodes, n)
			return err
		case 2:
			return f.text(&g.Name)
		case 5:
			var t Tensor
			err := f.message(t.decode)
			g.Initializers = append(g.Initializers, t)
			return err
		case 10:
			return f.text(&g.Doc)
		case 11:
			return decodeValueInfo(f, &g.Inputs)
		case 12:
			return decodeValueInfo(f, &g.Outputs)
		case 13:
			return decodeValueInfo(f, &g.Values)
		case 15:
			return errors.New("graph has sparse initializers, which are not supported")
		}
		return nil
	})
}

func (n *Node) decode(data []byte) error {
	return eachField(data, func(f field) error {
		var s string
		switch f.number {
		case 1:
			err := f.text(&s)
			n.Inputs = append(n.Inputs, s)
			return err
		case 2:
			err := f.text(&s)
			n.Outputs = append(n.Outputs, s)
			return err
		case 3:
			return f.text(&n.Name)
		case 4:
			return f.text(&n.Op)
		case 5:
			var a Attribute
			err := f.message(a.decode)
			n.Attributes = append(n.Attributes, a)
			return err
		case 6:
			return f.text(&n.Doc)
		case 7:
			return f.text(&n.Domain)
		}
		return nil
	})
}

func (a *Attribute) decode(data []byte) error {
	var kind int64
	err := eachField(data, func(f field) error {
		var s string
		switch f.number {
		case 1:
			return f.text(&a.Name)
		case 2:
			if f.kind != protowire.Fixed32Type {
				return errWireType
			}
			a.Float = math.Float32frombits(uint32(f.value))
			return nil
		case 3:
			return f.int(&a.Int)
		case 4:
			return f.text(&a.String)
		case 5:
			a.Tensor = &Tensor{}
			return f.message(a.Tensor.decode)
		case 7:
			return f.floats(&a.Floats)
		case 8:
			return f.ints(&a.Ints)
		case 9:
			err := f.text(&s)
			a.Strings = append(a.Strings, s)
			return err
		case 20:
			return f.int(&kind)
		}
		return nil
	})
	a.Type = AttributeType(kind)
	return err
}

// tensorFields gathers the encodings that a file may choose for a tensor's
// elements: raw bytes, or a list for the family of types.
type tensorFields struct {
	kind, location int64
	ints           []int64 // int32_data, int64_data and uint64_data
	floats         []float32
	doubles        []byte
}

func (t *Tensor) decode(data []byte) error {
	var in tensorFields
	err := eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return f.ints(&t.Dims)
		case 2:
			return f.int(&in.kind)
		case 4:
			return f.floats(&in.floats)
		case 5, 7, 11:
			return f.ints(&in.ints)
		case 6:
			return errors.New("tensor of texts, which is not supported")
		case 8:
			return f.text(&t.Name)
		case 9:
			if f.kind != protowire.BytesType {
				return errWireType
			}
			t.Raw = slices.Clone(f.bytes)
		case 10:
			if f.kind == protowire.Fixed64Type {
				in.doubles = binary.LittleEndian.AppendUint64(in.doubles, f.value)
			} else {
				in.doubles = append(in.doubles, f.bytes...)
			}
		case 14:
			return f.int(&in.location)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.Type = DataType(in.kind)
	if in.location != 0 {
		return fmt.Errorf("tensor %q keeps its bytes in another file, which is not supported", t.Name)
	}
	if len(t.Raw) == 0 {
		t.Raw = in.raw(t.Type)
	}
	return nil
}

// raw returns the listed elements as bytes. Validate compares their length
// with the shape.
func (in *tensorFields) raw(t DataType) []byte {
	var raw []byte
	switch t {
	case Float32:
		for _, v := range in.floats {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
	case Float64:
		raw = in.doubles
	default:
		var word [8]byte
		for _, v := range in.ints {
			binary.LittleEndian.PutUint64(word[:], uint64(v))
			raw = append(raw, word[:t.Size()]...)
		}
	}
	return raw
}

func decodeValueInfo(f field, to *[]ValueInfo) error {
	var v ValueInfo
	err := f.message(func(data []byte) error {
		return eachField(data, func(f field) error {
			switch f.number {
			case 1:
				return f.text(&v.Name)
			case 2:
				return f.message(v.decodeType)
			}
			return nil
		})
	})
	*to = append(*to, v)
	return err
}

// decodeType walks TypeProto, its tensor type, the shape and each dimension.
func (v *ValueInfo) decodeType(data []byte) error {
	return eachField(data, func(f field) error {
		if f.number != 1 {
			return fmt.Errorf("value %q is not a tensor, which is not supported", v.Name)
		}
		return f.message(func(data []byte) error {
			return eachField(data, func(f field) error {
				switch f.number {
				case 1:
					var kind int64
					err := f.int(&kind)
					v.Type = DataType(kind)
					return err
				case 2:
					return f.message(v.decodeShape)
				}
				return nil
			})
		})
	})
}

func (v *ValueInfo) decodeShape(data []byte) error {
	return eachField(data, func(f field) error {
		if f.number != 1 {
			return nil
		}
		var d Dim
		err := f.message(func(data []byte) error {
			return eachField(data, func(f field) error {
				switch f.number {
				case 1:
					return f.int(&d.Size)
				case 2:
					return f.text(&d.Symbol)
				}
				return nil
			})
		})
		v.Shape = append(v.Shape, d)
		return err
	})
}
