package nn

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/engine/enginetest"
)

// The operations of a network are those of the products in its graph, of small images
// and of large ones, whose attention is pooled.
func TestOperationsAreThoseOfTheGraph(t *testing.T) {
	const in, side, keys = 3, 64, 16
	config, err := UNetOf(Tiny, in, 2)
	if err != nil {
		t.Fatal(err)
	}
	network, err := NewUNet(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]*UNet{"whole": network, "pooled": Pooled(network, keys).(*UNet)} {
		g := NewGraph(enginetest.Open(t), name)
		weights := Parameter(g, "weights", shapes.Make(dtypes.Float32, n.Layout().Size))
		x := Parameter(g, "x", shapes.Make(dtypes.Float32, 1, in, side, side))
		n.Apply(Slices(weights), x, Parameter(g, "t", shapes.Make(dtypes.Float32, 1)))
		sum := 0.0
		for _, node := range g.Nodes() {
			out := float64(node.Shape().Size())
			switch node.Type() {
			case NodeTypeConvGeneral:
				kernel := node.Inputs()[1].Shape()
				sum += 2 * out * float64(kernel.Size()/kernel.Dimensions[0])
			case NodeTypeDotGeneral:
				d := node.Shape().Dimensions
				if len(d) != 4 {
					continue // of the time, not of places
				}
				// [batch, heads, ...]: what is summed over is in both operands.
				left, right := node.Inputs()[0].Shape(), node.Inputs()[1].Shape()
				heads := float64(d[0] * d[1])
				sum += 2 * out * math.Sqrt(float64(left.Size())*float64(right.Size())/(out*heads))
			}
		}
		if got := n.Operations(side, side); math.Abs(got/sum-1) > 0.01 {
			t.Errorf("%s: %.0f operations, the graph has %.0f", name, got, sum)
		}
		g.Finalize()
	}
}
