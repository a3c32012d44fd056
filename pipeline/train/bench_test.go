package train

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
)

// The bar is that of CPU training: small, batch 8, 64x64, two threads.
const (
	benchBatch   = 8
	benchSide    = 64
	benchThreads = 2
)

// torchTimes is the output of testdata/torch_unet.py.
type torchTimes struct {
	Params  int     `json:"params"`
	Step    float64 `json:"step_seconds"`
	Forward float64 `json:"forward_seconds"`
}

// torch times the same UNet in PyTorch, where $LACUNA_PYTHON has it.
func torch(b *testing.B, size string) (torchTimes, bool) {
	b.Helper()
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" || exec.Command(python, "-c", "import torch").Run() != nil {
		return torchTimes{}, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "testdata/torch_unet.py", "--size", size, "--steps", "5",
		"--batch", strconv.Itoa(benchBatch), "--side", strconv.Itoa(benchSide), "--threads", strconv.Itoa(benchThreads)).Output()
	if err != nil {
		b.Fatalf("time PyTorch: %v", err)
	}
	var t torchTimes
	if err := json.Unmarshal(out, &t); err != nil {
		b.Fatalf("read PyTorch's times: %v", err)
	}
	return t, true
}

func benchProblem(b *testing.B, backbone, size string) problem {
	b.Helper()
	n, err := nn.New(nn.Config{Backbone: backbone, Size: size, In: 5, Out: 1})
	if err != nil {
		b.Fatal(err)
	}
	draw := func(name string, dims ...int) *tensors.Tensor {
		size := 1
		for _, d := range dims {
			size *= d
		}
		x := make([]float32, size)
		noise.New(1, "bench", name).Uniforms(x, 0)
		return tensors.FromFlatDataAndDimensions(x, dims...)
	}
	return problem{engine: enginetest.OpenThreads(b, benchThreads), network: n, batch: []*tensors.Tensor{
		draw("x", benchBatch, 5, benchSide, benchSide), draw("t", benchBatch), draw("y", benchBatch, 1, benchSide, benchSide),
	}}
}

// report adds the ratio to PyTorch, for the network it has.
func report(b *testing.B, l problem, seconds func(torchTimes) float64) {
	b.Helper()
	own := b.Elapsed().Seconds() / float64(b.N)
	if _, unet := l.network.(*nn.UNet); !unet {
		return
	}
	if t, ok := torch(b, nn.Small); ok {
		if t.Params != l.network.Layout().Size {
			b.Fatalf("PyTorch's network has %d weights, ours %d", t.Params, l.network.Layout().Size)
		}
		b.ReportMetric(seconds(t)*1e3, "torch-ms")
		b.ReportMetric(own/seconds(t), "x-torch")
	}
}

func BenchmarkStep(b *testing.B) {
	for _, backbone := range []string{nn.BackboneUNet, nn.BackboneViT} {
		b.Run(backbone, func(b *testing.B) {
			l := benchProblem(b, backbone, nn.Small)
			s := l.start(b, DefaultConfig())
			l.run(b, s, 2) // compiles and fills the pools
			b.ReportAllocs()
			for b.Loop() {
				l.run(b, s, 1)
			}
			report(b, l, func(t torchTimes) float64 { return t.Step })
		})
	}
}

func BenchmarkForward(b *testing.B) {
	for _, backbone := range []string{nn.BackboneUNet, nn.BackboneViT} {
		b.Run(backbone, func(b *testing.B) {
			l := benchProblem(b, backbone, nn.Small)
			p, err := engine.Compile(l.engine, "forward", func(g *Graph) []*Node {
				x, t := Parameter(g, "x", l.batch[0].Shape()), Parameter(g, "t", l.batch[1].Shape())
				return []*Node{l.network.Apply(nn.Constants(g, l.network.Layout().Init(1)), x, t)}
			})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			run := func() {
				out, err := p.Run(l.batch[0], l.batch[1])
				if err != nil {
					b.Fatal(err)
				}
				release(out)
			}
			run()
			for b.Loop() {
				run()
			}
			report(b, l, func(t torchTimes) float64 { return t.Forward })
		})
	}
}

// BenchmarkCompile is the graph building and lowering of the base training
// step, which must stay under five seconds.
func BenchmarkCompile(b *testing.B) {
	l := benchProblem(b, nn.BackboneUNet, nn.Base)
	for b.Loop() {
		s := l.start(b, DefaultConfig())
		if err := s.Compile(l.batch...); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
