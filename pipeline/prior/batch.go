package prior

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// source makes training batches. Batch n is a function of n: it does not
// matter who prepares it, or when.
type source struct {
	data     samples.Train
	refs     []samples.Ref
	cfg      TrainConfig
	model    *Model // for the conditions of a place
	schedule Schedule
	padded   size
	stream   noise.Stream
}

func newSource(data samples.Train, refs []samples.Ref, cfg TrainConfig, m *Model) source {
	side := size{cfg.Side, cfg.Side}
	return source{
		data: data, refs: refs, cfg: cfg, model: m, schedule: m.schedule,
		padded: side.paddedTo(m.net.network.Multiple()),
		stream: noise.New(cfg.Seed, "prior", "training"),
	}
}

// A batch is what the loss takes, item after item.
type batch struct {
	items                    int
	conditions               int
	padded                   size
	delta, place, level, set []float32 // latents, conditions, levels, truth
}

// tensors hands the batch to an engine.
func (b *batch) tensors() []*tensors.Tensor {
	h, w := b.padded.height, b.padded.width
	return []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(b.delta, b.items, 1, h, w),
		tensors.FromFlatDataAndDimensions(b.place, b.items, b.conditions, h, w),
		tensors.FromFlatDataAndDimensions(b.level, b.items, levelParts),
		tensors.FromFlatDataAndDimensions(b.set, b.items, 1, h, w),
	}
}

func release(ts []*tensors.Tensor) {
	for _, t := range ts {
		t.FinalizeAll()
	}
}

// make returns batch n.
func (s source) make(n int) *batch {
	cells, conditions := s.padded.cells(), s.cfg.Model.conditions()
	b := &batch{
		items: s.cfg.Batch, conditions: conditions, padded: s.padded,
		delta: make([]float32, s.cfg.Batch*cells),
		place: make([]float32, s.cfg.Batch*conditions*cells),
		set:   make([]float32, s.cfg.Batch*cells),
	}
	for i := range b.items {
		stream := s.stream.Sub(uint64(n*b.items + i))
		r := stream.Rand(0)
		mask := s.draw(r)
		s.model.fill(b.place[i*conditions*cells:(i+1)*conditions*cells], mask.Place, s.padded)
		truth := b.set[i*cells : (i+1)*cells]
		for c, o := range mask.Observed {
			if o {
				truth[c/mask.Width*s.padded.width+c%mask.Width] = 1
			}
		}
		level := s.level(r)
		b.level = append(b.level, levels(level, 1)...)
		delta := b.delta[i*cells : (i+1)*cells]
		stream.Normals(delta, 1)
		noised(delta, truth, level)
	}
	return b
}

// noised turns standard normal numbers into the difference of the two channels
// of x = α·K·e + σ·ε at a level, whose own noise has variance 2σ².
func noised(x, truth []float32, l Level) {
	signal, grain := float32(classes*l.Alpha), float32(math.Sqrt2*l.Sigma)
	for i, y := range truth {
		x[i] = signal*(2*y-1) + grain*x[i]
	}
}

// draw picks a window and what its network is told of it.
func (s source) draw(r *rand.Rand) Mask {
	ref := s.refs[r.IntN(len(s.refs))]
	m := MaskOf(s.data.Cut(ref))
	// Yesterday is dropped in half of the cases, so that one network serves
	// where it is known and where it is not.
	if s.cfg.Model.Yesterday && r.IntN(2) == 0 {
		m.Yesterday = known(s.data.Yesterday(ref))
	}
	return m
}

// level draws a time: half of them even in time, half even in ln(α/σ), where
// walks have their steps.
func (s source) level(r *rand.Rand) Level {
	if r.IntN(2) == 0 {
		const nearest = 1e-4 // to the mask, where the gain of the evidence is large enough for any use
		return s.schedule.At(nearest + (1-nearest)*r.Float64())
	}
	first, last := logSNRRange(s.cfg.Side * s.cfg.Side)
	return s.schedule.At(s.schedule.TimeOf(first + (last-first)*r.Float64()))
}

// batches are prepared ahead of the engine by several goroutines and come in
// order.
type batches struct {
	queue chan chan *batch
	wait  sync.WaitGroup
}

// batches starts the preparation of batches first..end-1.
func (s source) batches(ctx context.Context, first, end int) *batches {
	b := &batches{queue: make(chan chan *batch, s.cfg.Workers)}
	b.wait.Go(func() {
		defer close(b.queue)
		for n := first; n < end; n++ {
			ready := make(chan *batch, 1)
			// The queue is as long as there are workers: each entry is one
			// goroutine at work, and nobody runs further ahead.
			select {
			case <-ctx.Done():
				return
			case b.queue <- ready:
			}
			b.wait.Go(func() { ready <- s.make(n) })
		}
	})
	return b
}

func (b *batches) next(ctx context.Context) (*batch, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case ready, ok := <-b.queue:
		if ctx.Err() != nil { // the queue ends with ctx too, and either may be seen first
			return nil, context.Cause(ctx)
		}
		if !ok {
			return nil, errors.New("no batch is left")
		}
		return <-ready, nil
	}
}

// drain stops the preparation and waits for it.
func (b *batches) drain(stop context.CancelFunc) {
	stop()
	b.wait.Wait()
}
