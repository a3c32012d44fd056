package ort

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// study compares one network lowered at several sizes: at the base sizes, and
// with each symbol doubled in turn.
type study struct {
	sizes   map[string]int
	symbols []string
	base    *traced
	doubled []*traced // one network for each symbol, in their order
}

// formula is a number as a product of powers of symbols.
type formula struct {
	factor float64
	powers []int // one exponent for each symbol, in their order
}

// aligned checks that the network has the same nodes at all sizes.
func (s *study) aligned() error {
	for k, t := range s.doubled {
		if len(t.nodes) != len(s.base.nodes) || len(t.program.params) != len(s.base.program.params) {
			return fmt.Errorf("the network has %d nodes, and %d with twice the %s", len(s.base.nodes), len(t.nodes), s.symbols[k])
		}
		for i, n := range s.base.nodes {
			m := t.nodes[i]
			if n.op != m.op || len(n.in) != len(m.in) || !reflect.DeepEqual(n.attrs, m.attrs) {
				return fmt.Errorf("node %d is %s, and %s or set otherwise with twice the %s", i, n.op, m.op, s.symbols[k])
			}
		}
	}
	return nil
}

// formulas returns the elements of a constant input of a node, or nil where
// they are the same at all sizes.
func (s *study) formulas(nodeIndex, inputIndex int) ([]formula, error) {
	v := s.base.nodes[nodeIndex].in[inputIndex]
	same := true
	for k, t := range s.doubled {
		other := t.nodes[nodeIndex].in[inputIndex]
		if other == nil || !other.isConstant() || other.shape.DType != v.shape.DType || len(other.constant) != len(v.constant) {
			return nil, fmt.Errorf("node %d (%s) has another constant with twice the %s", nodeIndex, s.base.nodes[nodeIndex].op, s.symbols[k])
		}
		same = same && bytes.Equal(v.constant, other.constant)
	}
	if same {
		return nil, nil
	}
	values, err := numbers(v)
	if err != nil {
		return nil, err
	}
	out := make([]formula, len(values))
	for i := range values {
		at := make([]float64, len(s.doubled))
		for k, t := range s.doubled {
			others, err := numbers(t.nodes[nodeIndex].in[inputIndex])
			if err != nil {
				return nil, err
			}
			at[k] = others[i]
		}
		if out[i], err = s.fit(values[i], at); err != nil {
			return nil, fmt.Errorf("node %d (%s): %w", nodeIndex, s.base.nodes[nodeIndex].op, err)
		}
	}
	return out, nil
}

// fit finds the powers: doubling a symbol multiplies a number by 2 to its
// power.
func (s *study) fit(value float64, doubled []float64) (formula, error) {
	f := formula{factor: value, powers: make([]int, len(doubled))}
	for k, d := range doubled {
		power := math.Log2(d / value)
		f.powers[k] = int(math.Round(power))
		if math.IsNaN(power) || math.Abs(power-math.Round(power)) > 1e-6 {
			return f, fmt.Errorf("a number is %v, and %v with twice the %s: not a power of it", value, d, s.symbols[k])
		}
		f.factor /= math.Pow(float64(s.sizes[s.symbols[k]]), float64(f.powers[k]))
	}
	return f, nil
}

// outputDims returns the dimensions of an output.
func (s *study) outputDims(output int) ([]formula, error) {
	dims := s.base.outputs[output].dims()
	out := make([]formula, len(dims))
	for axis, d := range dims {
		at := make([]float64, len(s.doubled))
		for k, t := range s.doubled {
			at[k] = float64(t.outputs[output].dims()[axis])
		}
		var err error
		if out[axis], err = s.fit(float64(d), at); err != nil {
			return nil, fmt.Errorf("output %d: %w", output, err)
		}
	}
	return out, nil
}

// constant reports whether f depends on no symbol.
func (f formula) constant() bool {
	return !slices.ContainsFunc(f.powers, func(p int) bool { return p != 0 })
}

// symbol names a dimension, such as batch or 2*height.
func (f formula) symbol(symbols []string) string {
	var parts []string
	if f.factor != 1 {
		parts = append(parts, fmt.Sprint(f.factor))
	}
	for k, p := range f.powers {
		switch {
		case p == 1:
			parts = append(parts, symbols[k])
		case p != 0:
			parts = append(parts, fmt.Sprintf("%s^%d", symbols[k], p))
		}
	}
	return strings.Join(parts, "*")
}

// numbers reads the elements of a constant.
func numbers(v *value) ([]float64, error) {
	out := make([]float64, v.shape.Size())
	for i := range out {
		switch v.shape.DType {
		case dtypes.Int64:
			out[i] = float64(int64(binary.LittleEndian.Uint64(v.constant[8*i:])))
		case dtypes.Float32:
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(v.constant[4*i:])))
		default:
			return nil, fmt.Errorf("a constant %s depends on a free size", v.shape)
		}
	}
	return out, nil
}
