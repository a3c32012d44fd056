package nn

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// Weights gives a network the nodes of its weights while a graph is built.
type Weights interface {
	// Weight returns the node of p, shaped p.Dims, of the type that the network
	// computes in.
	Weight(p Param) *Node
}

// computeType returns the type of the nodes of w.Weight, in which a network
// computes: float32 unless w was made by WithDType.
func computeType(w Weights) dtypes.DType {
	if c, ok := w.(converted); ok {
		return c.dtype
	}
	return dtypes.Float32
}

// Constants returns weights with the values of flat, which must be laid out as
// the network's layout says. They become constants of the graph: a runtime can
// prepare them once, so this is the way for inference.
func Constants(g *Graph, flat []float32) Weights {
	return constants{g: g, flat: flat}
}

type constants struct {
	g    *Graph
	flat []float32
}

func (c constants) Weight(p Param) *Node {
	return Const(c.g, tensors.FromFlatDataAndDimensions(c.flat[p.Offset:p.Offset+p.Size()], p.Dims...))
}

// Parameters returns weights that are parameters of the graph, one each, named
// as the layout names them: the way to export, where a name must last.
func Parameters(g *Graph) Weights { return parameters{g: g} }

type parameters struct{ g *Graph }

func (p parameters) Weight(w Param) *Node {
	return Parameter(p.g, w.Name, shapes.Make(dtypes.Float32, w.Dims...))
}

// Slices returns weights cut from one vector that is an input of the graph, laid
// out as the network's layout says: one compiled program then serves every
// network of a design.
func Slices(vector *Node) Weights { return sliced{vector} }

type sliced struct{ vector *Node }

func (s sliced) Weight(p Param) *Node {
	return Reshape(Slice(s.vector, AxisRange(p.Offset, p.Offset+p.Size())), p.Dims...)
}

// WithDType returns w converted to dtype: the network then computes in it,
// and gradients arrive at w in its own type.
func WithDType(w Weights, dtype dtypes.DType) Weights {
	if dtype == dtypes.Float32 {
		return w
	}
	return converted{Weights: w, dtype: dtype}
}

type converted struct {
	Weights
	dtype dtypes.DType
}

func (c converted) Weight(p Param) *Node {
	return ConvertDType(c.Weights.Weight(p), c.dtype)
}
