package train

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"

	"lacuna/pipeline/nn"
)

// part is a run of weights whose state lies in one tensor of the engine.
type part []nn.Param

func (p part) size() int {
	n := 0
	for _, w := range p {
		n += w.Size()
	}
	return n
}

// parts cuts the layout into one part, or one a weight. Parts follow one
// another as in the flat vector.
func (s *Step) parts() []part {
	if !s.cfg.Split {
		return []part{s.layout.Params}
	}
	parts := make([]part, len(s.layout.Params))
	for i := range parts {
		parts[i] = s.layout.Params[i : i+1]
	}
	return parts
}

// pieces are the weights of a network as slices of their parts.
type pieces struct {
	nodes []*Node
	index map[string]int // index of a weight in nodes, by name
}

// cut slices vectors, one a part, into weights.
//
// The gradient is taken with respect to the slices and joined again: through
// the slices it would be a sum of vectors as long as the whole network, one
// for each weight.
func cut(parts []part, vectors []*Node) pieces {
	w := pieces{index: map[string]int{}}
	for i, p := range parts {
		from := 0
		for _, param := range p {
			to := from + param.Size()
			piece := vectors[i]
			if len(p) > 1 {
				piece = Slice(piece, AxisRange(from, to))
			}
			w.index[param.Name] = len(w.nodes)
			w.nodes = append(w.nodes, Reshape(piece, param.Dims...))
			from = to
		}
	}
	return w
}

// Weight implements nn.Weights.
func (w pieces) Weight(p nn.Param) *Node { return w.nodes[w.index[p.Name]] }

// join is the inverse of cut.
func (w pieces) join(parts []part, nodes []*Node) []*Node {
	vectors := make([]*Node, len(parts))
	at := 0
	for i, p := range parts {
		flat := make([]*Node, len(p))
		for k := range flat {
			flat[k] = Reshape(nodes[at], -1)
			at++
		}
		vectors[i] = flat[0]
		if len(flat) > 1 {
			vectors[i] = Concatenate(flat, 0)
		}
	}
	return vectors
}
