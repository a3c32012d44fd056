package ort

import (
	"fmt"
	"unsafe"

	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"lacuna/pipeline/engine/ort/onnx"
)

// elementTypes maps element types of GoMLX to those of ONNX.
// Half precision is left out: the CPU kernels of ONNX Runtime do not have it.
var elementTypes = map[dtypes.DType]onnx.DataType{
	dtypes.Float32: onnx.Float32,
	dtypes.Float64: onnx.Float64,
	dtypes.Int32:   onnx.Int32,
	dtypes.Int64:   onnx.Int64,
	dtypes.Bool:    onnx.Bool,
	dtypes.Uint8:   onnx.Uint8,
	dtypes.Uint32:  onnx.Uint32,
	dtypes.Uint64:  onnx.Uint64,
}

// elementType returns the ONNX type of d.
func elementType(d dtypes.DType) (onnx.DataType, error) {
	t, ok := elementTypes[d]
	if !ok {
		return 0, fmt.Errorf("element type %s is not supported by the ort engine", d)
	}
	return t, nil
}

// bytesOf returns the memory of a flat slice and its element type. Machines
// that ONNX Runtime runs on are little-endian, so these are also the bytes of
// a tensor in an ONNX file.
func bytesOf(flat any) ([]byte, dtypes.DType, error) {
	switch f := flat.(type) {
	case []float32:
		return memoryOf(f), dtypes.Float32, nil
	case []float64:
		return memoryOf(f), dtypes.Float64, nil
	case []int32:
		return memoryOf(f), dtypes.Int32, nil
	case []int64:
		return memoryOf(f), dtypes.Int64, nil
	case []bool:
		return memoryOf(f), dtypes.Bool, nil
	case []uint8:
		return f, dtypes.Uint8, nil
	case []uint32:
		return memoryOf(f), dtypes.Uint32, nil
	case []uint64:
		return memoryOf(f), dtypes.Uint64, nil
	}
	return nil, dtypes.InvalidDType, fmt.Errorf("values of type %T are not supported by the ort engine", flat)
}

func memoryOf[T any](f []T) []byte {
	if len(f) == 0 {
		return nil
	}
	var element T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), len(f)*int(unsafe.Sizeof(element)))
}
