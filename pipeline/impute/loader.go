package impute

import (
	"context"
	"fmt"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// A filler writes lesson n into place item of the buffers of a batch. It is
// called from several goroutines, for different batches.
type filler func(ctx context.Context, b *batch, item int, n uint64) error

// A batch is the tensors of one training step and the buffers that they are
// filled from. Both are used again for later steps: making batches makes no
// garbage.
type batch struct {
	tensors []*tensors.Tensor
	buffers [][]float32 // as long as the tensors
	scratch []float32   // of a filler, a few windows
}

// A loader makes batches ahead of their use, several at a time, and hands them
// over in order. What is in a batch does not depend on how many are made at a
// time.
type loader struct {
	backend backends.Backend
	dims    [][]int // of the tensors; the first is the number of items
	cells   int     // of a window
	fill    filler

	free    chan *batch
	ready   chan chan made // in the order of steps
	cancel  context.CancelFunc
	running sync.WaitGroup
}

type made struct {
	*batch
	err error
}

// start makes the batches of steps first, first+1, ... until end.
func (l *loader) start(ctx context.Context, first, end, workers int) {
	ctx, l.cancel = context.WithCancel(ctx)
	// One batch is with the device, one waits, and each worker makes one.
	slots := workers + 2
	l.free = make(chan *batch, slots)
	l.ready = make(chan chan made, slots)
	for range slots {
		l.free <- nil // made at first use
	}
	l.running.Go(func() { l.feed(ctx, first, end, workers) })
}

func (l *loader) feed(ctx context.Context, first, end, workers int) {
	working := make(chan struct{}, workers)
	for step := first; step < end; step++ {
		var b *batch
		select {
		case b = <-l.free:
		case <-ctx.Done():
			return
		}
		select {
		case working <- struct{}{}:
		case <-ctx.Done():
			return
		}
		result := make(chan made, 1)
		l.ready <- result // has room: there are as many places as batches
		l.running.Go(func() {
			b, err := l.make(ctx, b, step)
			<-working
			result <- made{b, err}
		})
	}
}

func (l *loader) make(ctx context.Context, b *batch, step int) (*batch, error) {
	if b == nil {
		b = l.newBatch()
	}
	items := l.dims[0][0]
	for i := range items {
		if err := l.fill(ctx, b, i, uint64(step)*uint64(items)+uint64(i)); err != nil {
			return b, fmt.Errorf("make batch %d: %w", step, err)
		}
	}
	for i, t := range b.tensors {
		if err := tensors.AssignFlatData(t, b.buffers[i]); err != nil {
			return b, fmt.Errorf("make batch %d: %w", step, err)
		}
		// Here, so that the transfer happens while another step runs.
		if err := t.MaterializeOnDevice(l.backend, true, 0); err != nil {
			return b, fmt.Errorf("send batch %d: %w", step, err)
		}
	}
	return b, nil
}

func (l *loader) newBatch() *batch {
	b := &batch{scratch: make([]float32, scratchWindows*l.cells)}
	for _, dims := range l.dims {
		shape := shapes.Make(dtypes.Float32, dims...)
		b.tensors = append(b.tensors, tensors.FromShape(shape))
		b.buffers = append(b.buffers, make([]float32, shape.Size()))
	}
	return b
}

// next returns the next batch, which goes back with done.
func (l *loader) next(ctx context.Context) (*batch, error) {
	select {
	case result := <-l.ready:
		m := <-result
		return m.batch, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *loader) done(b *batch) { l.free <- b }

// stop ends the making and frees the batches. None may be in use.
func (l *loader) stop() {
	l.cancel()
	l.running.Wait()
	for {
		select {
		case b := <-l.free:
			if b != nil {
				release(b.tensors...)
			}
		case result := <-l.ready:
			release((<-result).tensors...)
		default:
			return
		}
	}
}
