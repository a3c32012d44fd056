package onnx

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Validate reports the first fault of m: a missing graph
// name or operator set, a tensor whose bytes do not fit its shape, a name
// defined twice or used before it is defined.
func (m *Model) Validate() error {
	if m.IRVersion <= 0 {
		return fmt.Errorf("IR version is %d, must be positive", m.IRVersion)
	}
	if len(m.Opsets) == 0 {
		return errors.New("no operator set is named")
	}
	for _, o := range m.Opsets {
		if o.Version <= 0 {
			return fmt.Errorf("operator set %q has version %d", o.Domain, o.Version)
		}
	}
	return m.Graph.validate()
}

func (g *Graph) validate() error {
	if g.Name == "" {
		return errors.New("graph has no name")
	}
	if len(g.Outputs) == 0 {
		return errors.New("graph has no outputs")
	}
	known, err := g.sources()
	if err != nil {
		return err
	}
	for i := range g.Nodes {
		if err := g.Nodes[i].validate(known); err != nil {
			return fmt.Errorf("node %d (%s): %w", i, g.Nodes[i].Op, err)
		}
	}
	for _, v := range g.Outputs {
		if err := v.validate(); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		if !known[v.Name] {
			return fmt.Errorf("output %q is never computed", v.Name)
		}
	}
	return nil
}

// sources returns the names that are defined before the first node runs. An
// input that is also an initializer is a default value, which is allowed.
func (g *Graph) sources() (map[string]bool, error) {
	known := map[string]bool{"": true} // an optional input left out
	for i := range g.Initializers {
		t := &g.Initializers[i]
		if err := t.validate(); err != nil {
			return nil, fmt.Errorf("initializer %d: %w", i, err)
		}
		if t.Name == "" || known[t.Name] {
			return nil, fmt.Errorf("initializer %d: name %q is empty or taken", i, t.Name)
		}
		known[t.Name] = true
	}
	inputs := map[string]bool{}
	for _, v := range g.Inputs {
		if err := v.validate(); err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		if inputs[v.Name] {
			return nil, fmt.Errorf("input %q is listed twice", v.Name)
		}
		inputs[v.Name], known[v.Name] = true, true
	}
	return known, nil
}

func (n *Node) validate(known map[string]bool) error {
	if n.Op == "" {
		return errors.New("no operator")
	}
	for _, name := range n.Inputs {
		if !known[name] {
			return fmt.Errorf("input %q is not defined before", name)
		}
	}
	for _, name := range n.Outputs {
		if name == "" {
			continue
		}
		if known[name] {
			return fmt.Errorf("output %q is defined twice", name)
		}
		known[name] = true
	}
	for i := range n.Attributes {
		if err := n.Attributes[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (a *Attribute) validate() error {
	switch a.Type {
	case AttrFloat, AttrInt, AttrString, AttrFloats, AttrInts, AttrStrings:
		return nil
	case AttrTensor:
		if a.Tensor == nil {
			return fmt.Errorf("attribute %q has no tensor", a.Name)
		}
		return a.Tensor.validate()
	case attrGraph:
		return fmt.Errorf("attribute %q is a subgraph, which is not supported", a.Name)
	}
	return fmt.Errorf("attribute %q has type %d, which is not supported", a.Name, a.Type)
}

func (t *Tensor) validate() error {
	size := t.Type.Size()
	if size == 0 {
		return fmt.Errorf("tensor %q has element type %d, which is not supported", t.Name, t.Type)
	}
	n, err := t.Elements()
	if err != nil {
		return err
	}
	if int64(len(t.Raw)) != n*int64(size) {
		return fmt.Errorf("tensor %q with dimensions %v has %d bytes, want %d", t.Name, t.Dims, len(t.Raw), n*int64(size))
	}
	if !utf8.ValidString(t.Name) {
		return fmt.Errorf("tensor name %q is not UTF-8", t.Name)
	}
	return nil
}

func (v ValueInfo) validate() error {
	if v.Name == "" || !utf8.ValidString(v.Name) {
		return fmt.Errorf("value name %q is empty or not UTF-8", v.Name)
	}
	for _, d := range v.Shape {
		if d.Symbol == "" && d.Size < 0 {
			return fmt.Errorf("value %q has dimension %d", v.Name, d.Size)
		}
	}
	return nil
}
