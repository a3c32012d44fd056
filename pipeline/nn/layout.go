package nn

import (
	"fmt"
	"math"
	"slices"

	"lacuna/pipeline/noise"
)

// A Param is one weight tensor of a network: its name, its shape and its place
// in the flat vector of all weights.
type Param struct {
	Name   string // path of the layer and the weight, such as "enc1.block0.conv1.kernel"
	Dims   []int
	Offset int // index of the first element in the flat vector

	std   float32 // standard deviation of the initial values; 0: constant
	value float32 // the constant
}

// Size returns the number of elements.
func (p Param) Size() int {
	n := 1
	for _, d := range p.Dims {
		n *= d
	}
	return n
}

// A Layout lists the weights of a network in a fixed order.
type Layout struct {
	Params []Param
	Size   int // number of elements, the parameters of the network
}

// Init returns the initial weights of a seed. Each weight has a stream of its
// own, named after it: adding a layer does not change the others.
func (l *Layout) Init(seed uint64) []float32 {
	flat := make([]float32, l.Size)
	for _, p := range l.Params {
		w := flat[p.Offset : p.Offset+p.Size()]
		if p.std == 0 {
			fill(w, p.value)
			continue
		}
		noise.New(seed, "init", p.Name).Normals(w, 0)
		for i := range w {
			w[i] *= p.std
		}
	}
	return flat
}

// Check returns an error that names the first difference between l and the
// weights of another network, or nil.
func (l *Layout) Check(names []string, dims [][]int) error {
	for i, p := range l.Params {
		switch {
		case i >= len(names):
			return fmt.Errorf("weight %s %v is missing", p.Name, p.Dims)
		case names[i] != p.Name:
			return fmt.Errorf("weight %d is %s %v, want %s %v", i, names[i], dims[i], p.Name, p.Dims)
		case !slices.Equal(dims[i], p.Dims):
			return fmt.Errorf("weight %s has shape %v, want %v", p.Name, dims[i], p.Dims)
		}
	}
	if len(names) > len(l.Params) {
		return fmt.Errorf("weight %s %v is not in this network", names[len(l.Params)], dims[len(l.Params)])
	}
	return nil
}

// scope declares the weights of one layer while a layout is made.
type scope struct {
	layout *Layout
	path   string
}

func (s scope) in(format string, args ...any) scope {
	name := fmt.Sprintf(format, args...)
	if s.path != "" {
		name = s.path + "." + name
	}
	return scope{layout: s.layout, path: name}
}

// normal declares a weight that starts with normal numbers of variance
// gain^2/fanIn, which keeps the magnitude of a signal at gain.
func (s scope) normal(name string, gain float64, fanIn int, dims ...int) Param {
	return s.add(Param{Dims: dims, std: float32(gain / math.Sqrt(float64(fanIn)))}, name)
}

// constant declares a weight that starts with one value everywhere.
func (s scope) constant(name string, value float32, dims ...int) Param {
	return s.add(Param{Dims: dims, value: value}, name)
}

func (s scope) add(p Param, name string) Param {
	p.Name, p.Offset = s.in("%s", name).path, s.layout.Size
	s.layout.Params = append(s.layout.Params, p)
	s.layout.Size += p.Size()
	return p
}

func fill(w []float32, v float32) {
	for i := range w {
		w[i] = v
	}
}
