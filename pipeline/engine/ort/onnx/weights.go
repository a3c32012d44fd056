package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Float32s returns the elements of a float32 tensor.
func (t *Tensor) Float32s() ([]float32, error) {
	if t.Type != Float32 {
		return nil, fmt.Errorf("tensor %q has element type %d, want float32", t.Name, t.Type)
	}
	if err := t.validate(); err != nil {
		return nil, err
	}
	out := make([]float32, len(t.Raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Raw[4*i:]))
	}
	return out, nil
}
