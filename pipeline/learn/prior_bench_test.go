package learn

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
	"lacuna/pipeline/train"
)

// freshPrior is a prior that has learned nothing.
func freshPrior(b *testing.B, e *engine.Engine, cfg PriorConfig, data samples.Train) (*prior.Model, nn.Network) {
	b.Helper()
	network, err := nn.New(cfg.Model.Network())
	if err != nil {
		b.Fatal(err)
	}
	m, err := prior.NewModel(e, cfg.Model, network.Layout().Init(1))
	if err != nil {
		b.Fatal(err)
	}
	m.SetFrequency(prior.FrequencyOf(data))
	b.Cleanup(m.Close)
	return m, network
}

// The processor time of a training step, by batch: other work on the machine
// hardly changes it.
func BenchmarkPriorStep(b *testing.B) {
	_, data, _ := samplestest.Archive(b, 30, 64)
	for _, size := range []string{nn.Tiny, nn.Small} {
		for _, batch := range []int{8, 16, 32, 64} {
			b.Run(fmt.Sprintf("%s/%d", size, batch), func(b *testing.B) {
				cfg := DefaultPrior()
				cfg.Batch, cfg.Model.Size = batch, size
				refs, err := maskWindows(data, cfg)
				if err != nil {
					b.Fatal(err)
				}
				e := enginetest.Open(b)
				m, network := freshPrior(b, e, cfg, data)
				step, err := train.NewStep(e, network.Layout(), cfg.Step, priorLoss(m))
				if err != nil {
					b.Fatal(err)
				}
				defer step.Close()
				if err := step.Start(m.Weights()); err != nil {
					b.Fatal(err)
				}
				s := newMaskExamples(data, refs, cfg, m, network.Multiple())
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

// processorTime returns the time that this process has used of all processors.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The time of one goroutine for a batch of training.
func BenchmarkPriorBatch(b *testing.B) {
	_, data, _ := samplestest.Archive(b, 30, 64)
	cfg := DefaultPrior()
	cfg.Batch = 64
	refs, err := maskWindows(data, cfg)
	if err != nil {
		b.Fatal(err)
	}
	m, network := freshPrior(b, enginetest.Open(b), cfg, data)
	s := newMaskExamples(data, refs, cfg, m, network.Multiple())
	b.SetBytes(int64(cfg.Batch * 4 * cfg.Side * cfg.Side))
	b.ReportAllocs()
	for b.Loop() {
		examples(b, s)
	}
}

// examples returns the first batch.
func examples(b *testing.B, s maskExamples) *train.Batch {
	batch := train.NewBatch(s.dims(), 0)
	for i := range s.cfg.Batch {
		if err := s.fill(b.Context(), batch, i, uint64(i)); err != nil {
			b.Fatal(err)
		}
	}
	return batch
}
