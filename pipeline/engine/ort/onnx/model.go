package onnx

import "fmt"

// Model is a network with its operator sets and metadata.
type Model struct {
	IRVersion       int64
	ProducerName    string
	ProducerVersion string
	Domain          string
	ModelVersion    int64
	Doc             string
	Graph           Graph
	Opsets          []Opset
	Metadata        map[string]string
}

// Opset names the version of an operator domain; the empty domain is the
// ONNX standard itself.
type Opset struct {
	Domain  string
	Version int64
}

// Graph is a list of nodes in an order in which they can run, the tensors
// that are part of the model, and the values that go in and out.
type Graph struct {
	Name         string
	Doc          string
	Nodes        []Node
	Initializers []Tensor
	Inputs       []ValueInfo
	Outputs      []ValueInfo
	Values       []ValueInfo
}

// Node applies an operator. An empty input name is an optional input left out.
type Node struct {
	Name       string
	Op         string
	Domain     string
	Doc        string
	Inputs     []string
	Outputs    []string
	Attributes []Attribute
}

// AttributeType says which field of an Attribute counts.
type AttributeType int32

// The attribute types, numbered as in the format.
const (
	AttrFloat   AttributeType = 1
	AttrInt     AttributeType = 2
	AttrString  AttributeType = 3
	AttrTensor  AttributeType = 4
	attrGraph   AttributeType = 5
	AttrFloats  AttributeType = 6
	AttrInts    AttributeType = 7
	AttrStrings AttributeType = 8
)

// Attribute is a fixed setting of a node.
type Attribute struct {
	Name    string
	Type    AttributeType
	Float   float32
	Int     int64
	String  string
	Tensor  *Tensor
	Floats  []float32
	Ints    []int64
	Strings []string
}

// Int returns an integer attribute.
func Int(name string, v int) Attribute {
	return Attribute{Name: name, Type: AttrInt, Int: int64(v)}
}

// String returns a text attribute.
func String(name, v string) Attribute {
	return Attribute{Name: name, Type: AttrString, String: v}
}

// Ints returns an attribute that is a list of integers.
func Ints(name string, v ...int) Attribute {
	a := Attribute{Name: name, Type: AttrInts, Ints: make([]int64, len(v))}
	for i, x := range v {
		a.Ints[i] = int64(x)
	}
	return a
}

// DataType is the type of a tensor's elements.
type DataType int32

// The element types that this package sizes, numbered as in the format.
const (
	Float32  DataType = 1
	Uint8    DataType = 2
	Int8     DataType = 3
	Uint16   DataType = 4
	Int16    DataType = 5
	Int32    DataType = 6
	Int64    DataType = 7
	Bool     DataType = 9
	Float16  DataType = 10
	Float64  DataType = 11
	Uint32   DataType = 12
	Uint64   DataType = 13
	BFloat16 DataType = 16
)

// Size returns the bytes of one element, or 0 for a type without a fixed size.
func (t DataType) Size() int {
	switch t {
	case Uint8, Int8, Bool:
		return 1
	case Uint16, Int16, Float16, BFloat16:
		return 2
	case Float32, Int32, Uint32:
		return 4
	case Float64, Int64, Uint64:
		return 8
	}
	return 0
}

// Tensor is an array with a name. Raw holds its elements little-endian, row
// by row.
type Tensor struct {
	Name string
	Type DataType
	Dims []int64
	Raw  []byte
}

// Elements returns the number of elements, or an error where the dimensions
// are negative or their product does not fit.
func (t *Tensor) Elements() (int64, error) {
	n, empty := int64(1), false
	for _, d := range t.Dims {
		if d < 0 {
			return 0, fmt.Errorf("tensor %q has dimension %d", t.Name, d)
		}
		if d == 0 {
			empty = true
			continue
		}
		if n > maxElements/d {
			return 0, fmt.Errorf("tensor %q has dimensions %v, more elements than can be held", t.Name, t.Dims)
		}
		n *= d
	}
	if empty {
		return 0, nil
	}
	return n, nil
}

// maxElements keeps an element count times eight bytes within an int64.
const maxElements = int64(1) << 59

// ValueInfo is the name, element type and shape of a value.
type ValueInfo struct {
	Name  string
	Type  DataType
	Shape []Dim
}

// Dim is one dimension: a size, or a symbol such as "batch" where the size is
// known only when the network runs.
type Dim struct {
	Size   int64
	Symbol string
}
