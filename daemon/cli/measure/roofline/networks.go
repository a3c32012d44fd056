package roofline

import (
	"context"
	"fmt"
	"log/slog"
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/samples"
)

// networks are an imputer and its members, of random weights, on an engine.
type networks struct {
	engine  *engine.Engine
	gpu     bool
	runner  *impute.Runner
	model   *impute.Model
	members *impute.Members
	scene   impute.Conditioning // of the window that members are measured on
	planes  int                 // that the imputer takes
	size    string
}

// openNetworks opens the networks of a size on an engine.
func openNetworks(name, size string, cfg engine.Config, log *slog.Logger) (*networks, error) {
	e, err := engine.Open(name, cfg, log)
	if err != nil {
		return nil, err
	}
	n := &networks{engine: e, gpu: e.Kind != engine.ORT, size: size}
	design := infer.UntrainedDesign(size)
	n.planes = design.Planes()
	if err := n.load(design); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *networks) load(design impute.Design) error {
	version, err := infer.Untrained(design, 1)
	if err != nil {
		return err
	}
	if n.runner, err = impute.NewRunner(n.engine, impute.RunnerConfig{Batch: 1, BFloat16: n.gpu}); err != nil {
		return err
	}
	if n.model, err = impute.Load(version.Imputer, n.runner); err != nil {
		return err
	}
	n.members, err = impute.LoadMembers(version.Members, n.model)
	return err
}

func (n *networks) close() {
	n.scene.Close()
	if n.members != nil {
		n.members.Close()
	}
	if n.model != nil {
		n.model.Close()
	}
	if n.runner != nil {
		n.runner.Close()
	}
	n.engine.Finalize()
}

// describe names the networks and what they run on.
func (n *networks) describe() string {
	return fmt.Sprintf("Networks of size %s on %s, %s.", n.size, n.engine.Kind, n.engine.Description())
}

// windowSide is the side of the windows that a field is cut into on a processor, about:
// a basin of 790x1101 cells has six of them.
const windowSide = 464

// stages returns the network of the fast tier on one window, and one step of one
// member there.
func (n *networks) stages(ctx context.Context, height, width int) ([]stage, error) {
	height, width = min(height, windowSide)/8*8, min(width, windowSide)/8*8
	in := window(height, width)
	cells := float64(height * width)
	predicted, err := n.model.Predict(ctx, []impute.Inputs{in})
	if err != nil {
		return nil, err
	}
	if n.scene, err = n.members.Conditioning(in, predicted[0]); err != nil {
		return nil, err
	}
	residual := make([]float32, height*width)
	return []stage{
		{name: "fast tier, a window", bytes: 4 * cells * float64(n.planes+2), products: n.model.Operations(height, width), device: n.gpu, run: func() error {
			_, err := n.model.Predict(ctx, []impute.Inputs{in})
			return err
		}},
		{name: "members, a step", bytes: 4 * cells * float64(n.planes+5), products: n.members.Operations(height, width), device: n.gpu, run: func() error {
			_, err := n.members.Clean(ctx, n.scene, 1, 0.5, [][]float32{residual})
			return err
		}},
	}, nil
}

// window is a window of a field, two thirds of it under clouds.
func window(height, width int) impute.Inputs {
	in := impute.Inputs{Height: height, Width: width, DayOfYear: 86, Values: seen(height, width, 0)}
	for i, v := range in.Values {
		in.Visible, in.Sea = append(in.Visible, !math.IsNaN(float64(v))), append(in.Sea, true)
		if !in.Visible[i] {
			in.Values[i] = 0
		}
	}
	plane := func(value float32) []float32 {
		all := make([]float32, height*width)
		for i := range all {
			all[i] = value
		}
		return all
	}
	in.Last = samples.Composite{Value: plane(0.1), Freshness: plane(0.5)}
	in.Next = in.Last
	in.Analysis, in.AnalysisSigma = plane(0.1), plane(0.3)
	return in
}

// Sides of the matrices whose product says what an engine can do, on a processor and on
// a GPU, which a small one does not fill.
const (
	productSide    = 1024
	productSideGPU = 8192
)

// products measures how many operations of products of matrices the engine does in a
// second of a core, in float32; on a GPU in a second, in bfloat16.
func (n *networks) products(ctx context.Context, rounds int) (float64, error) {
	side, dtype := productSide, dtypes.Float32
	if n.gpu {
		side, dtype = productSideGPU, dtypes.BFloat16
	}
	program, err := engine.Compile(n.engine, "product", func(g *graph.Graph) []*graph.Node {
		a := graph.Parameter(g, "a", shapes.Make(dtypes.Float32, side, side))
		x := graph.ConvertDType(a, dtype)
		// Only a sum comes back: to carry a matrix away would be a part of the time.
		return []*graph.Node{graph.ReduceAllSum(graph.ConvertDType(graph.Dot(x, x), dtypes.Float32))}
	})
	if err != nil {
		return 0, err
	}
	defer program.Close()
	numbers := make([]float32, side*side)
	for i := range numbers {
		numbers[i] = float32(i%7) - 3
	}
	a := tensors.FromFlatDataAndDimensions(numbers, side, side)
	defer a.FinalizeAll()
	t, err := typical(ctx, rounds, func() error {
		out, err := program.Run(a)
		if err != nil {
			return err
		}
		defer out[0].FinalizeAll()
		_, err = tensors.CopyFlatData[float32](out[0]) // a GPU has finished only then
		return err
	})
	return 2 * float64(side) * float64(side) * float64(side) / t.spent(n.gpu), err
}
