package prior

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
)

// A vicinity is a square about its cell that ends at the window's edge; rows
// and columns must not be mistaken for each other.
func TestBoxSumAddsUpTheSquareAboutEachCell(t *testing.T) {
	const h, w, side = 12, 20, 5
	x := normals(2*h*w, "box")
	p, err := engine.Compile(enginetest.Open(t), t.Name(), func(g *Graph) []*Node {
		return []*Node{boxSum(Parameter(g, "x", shapes.Make(dtypes.Float32, 2, 1, h, w)), side)}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	answer, err := p.Run(tensors.FromFlatDataAndDimensions(x, 2, 1, h, w))
	if err != nil {
		t.Fatal(err)
	}
	got, err := tensors.CopyFlatData[float32](answer[0])
	if err != nil {
		t.Fatal(err)
	}
	for k := range got {
		item, row, col := k/(h*w), k/w%h, k%w
		want := 0.0
		for i := max(row-side/2, 0); i <= min(row+side/2, h-1); i++ {
			for j := max(col-side/2, 0); j <= min(col+side/2, w-1); j++ {
				want += float64(x[item*h*w+i*w+j])
			}
		}
		if math.Abs(float64(got[k])-want) > 1e-4 {
			t.Fatalf("item %d, row %d, column %d: %g, want %g", item, row, col, got[k], want)
		}
	}
}
