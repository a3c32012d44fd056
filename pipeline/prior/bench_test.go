package prior

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples/samplestest"
	"lacuna/pipeline/train"
)

// What a step of training costs processors, by batch. Processor time is what
// counts: other work on the machine hardly changes it.
func BenchmarkStep(b *testing.B) {
	_, data, _ := samplestest.Archive(b, 30, 64)
	for _, size := range []string{nn.Tiny, nn.Small} {
		for _, batch := range []int{8, 16, 32, 64} {
			b.Run(fmt.Sprintf("%s/%d", size, batch), func(b *testing.B) {
				cfg := DefaultTraining()
				cfg.Batch, cfg.Model.Size = batch, size
				refs, err := trainingRefs(data, cfg)
				if err != nil {
					b.Fatal(err)
				}
				m := roughModel(b, enginetest.Open(b), func(c *Config) { *c = cfg.Model })
				step, err := train.NewStep(m.backend, m.net.network.Layout(), cfg.Step, func(w nn.Weights, in []*Node) *Node {
					return m.net.loss(w, in[0], in[1], in[2], in[3])
				})
				if err != nil {
					b.Fatal(err)
				}
				defer step.Close()
				if err := step.Start(m.weights); err != nil {
					b.Fatal(err)
				}
				s := newSource(data, refs, cfg, m)
				batch := examples(b, s)
				var inputs []*tensors.Tensor
				for i, dims := range s.dims() {
					inputs = append(inputs, tensors.FromFlatDataAndDimensions(batch.Buffers[i], dims...))
				}
				run := func() {
					if _, err := step.Run(inputs...); err != nil {
						b.Fatal(err)
					}
				}
				run() // compiles
				before := processorTime(b)
				for b.Loop() {
					run()
				}
				b.ReportMetric((processorTime(b)-before).Seconds()*1e3/float64(b.N*cfg.Batch), "cpu-ms/mask")
			})
		}
	}
}

// processorTime returns what this process has used of all processors.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What a batch of training costs one goroutine, and a smooth anchor field.
func BenchmarkBatch(b *testing.B) {
	_, data, _ := samplestest.Archive(b, 30, 64)
	cfg := DefaultTraining()
	cfg.Batch = 64
	refs, err := trainingRefs(data, cfg)
	if err != nil {
		b.Fatal(err)
	}
	m := roughModel(b, enginetest.Open(b), func(c *Config) { *c = cfg.Model })
	s := newSource(data, refs, cfg, m)
	b.SetBytes(int64(cfg.Batch * 4 * cfg.Side * cfg.Side))
	b.ReportAllocs()
	for b.Loop() {
		examples(b, s)
	}
}

// examples returns the first batch of a source.
func examples(b *testing.B, s source) *train.Batch {
	batch := train.NewBatch(s.dims(), 0)
	for i := range s.cfg.Batch {
		if err := s.fill(b.Context(), batch, i, uint64(i)); err != nil {
			b.Fatal(err)
		}
	}
	return batch
}

func BenchmarkAnchor(b *testing.B) {
	p := samplestest.Cloudy(1, 64)[0]
	dst := make([]float32, len(p.Sea))
	cfg := DefaultGuidance()
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		cfg.anchors(dst, p, noise.New(n, "anchor"))
	}
}
