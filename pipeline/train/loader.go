package train

import (
	"context"
	"fmt"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// A Filler writes example n into place item of the buffers of a batch, which
// still hold an earlier example. Examples are numbered from the
// first of the first step on. It is called from several goroutines, for
// different batches.
type Filler func(ctx context.Context, b *Batch, item int, n uint64) error

// A Batch is the tensors of one step and the buffers that they are filled from.
// Both are used again for later steps: making batches makes no garbage.
type Batch struct {
	Buffers [][]float32 // one for each tensor, of its length
	Scratch []float32   // of the task's length; holds nothing from one example to the next

	tensors []*tensors.Tensor
}

// NewBatch returns a batch of zeros for tensors of these dimensions.
func NewBatch(dims [][]int, scratch int) *Batch {
	b := &Batch{Scratch: make([]float32, scratch)}
	for _, d := range dims {
		shape := shapes.Make(dtypes.Float32, d...)
		b.tensors = append(b.tensors, tensors.FromShape(shape))
		b.Buffers = append(b.Buffers, make([]float32, shape.Size()))
	}
	return b
}

// A loader makes batches ahead of their use, several at a time, and hands them
// over in order. The content of a batch does not depend on how many are made at
// a time.
type loader struct {
	backend backends.Backend
	task    Task

	free    chan *Batch
	ready   chan chan filled // in the order of steps
	cancel  context.CancelFunc
	running sync.WaitGroup
}

type filled struct {
	*Batch
	err error
}

// startLoader makes the batches of a task from step first on.
func startLoader(ctx context.Context, b backends.Backend, t Task, first int) *loader {
	ctx, cancel := context.WithCancel(ctx)
	// One batch is with the device, one waits, and each worker makes one.
	slots := t.Workers + 2
	l := &loader{backend: b, task: t, free: make(chan *Batch, slots), ready: make(chan chan filled, slots), cancel: cancel}
	for range slots {
		l.free <- nil // made at first use
	}
	l.running.Go(func() { l.feed(ctx, first) })
	return l
}

func (l *loader) feed(ctx context.Context, first int) {
	working := make(chan struct{}, l.task.Workers)
	for step := first; step < l.task.Optimizer.Steps; step++ {
		select {
		case working <- struct{}{}:
		case <-ctx.Done():
			return
		}
		var b *Batch
		select {
		case b = <-l.free:
		case <-ctx.Done():
			return
		}
		result := make(chan filled, 1)
		l.ready <- result // has room: there are as many places as batches
		l.running.Go(func() {
			b, err := l.make(ctx, b, step)
			<-working
			result <- filled{b, err}
		})
	}
}

func (l *loader) make(ctx context.Context, b *Batch, step int) (*Batch, error) {
	if b == nil {
		b = NewBatch(l.task.Dims, l.task.Scratch)
	}
	items := l.task.Dims[0][0]
	for i := range items {
		if err := l.task.Fill(ctx, b, i, uint64(step)*uint64(items)+uint64(i)); err != nil {
			return b, fmt.Errorf("make batch %d: %w", step, err)
		}
	}
	for i, t := range b.tensors {
		if err := tensors.AssignFlatData(t, b.Buffers[i]); err != nil {
			return b, fmt.Errorf("make batch %d: %w", step, err)
		}
		// Here, so that the transfer happens while another step runs.
		if err := t.MaterializeOnDevice(l.backend, true, 0); err != nil {
			return b, fmt.Errorf("send batch %d: %w", step, err)
		}
	}
	return b, nil
}

// next returns the next batch, which goes back with done.
func (l *loader) next(ctx context.Context) (*Batch, error) {
	if err := ctx.Err(); err != nil { // whatever is ready
		return nil, err
	}
	select {
	case result := <-l.ready:
		f := <-result
		return f.Batch, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *loader) done(b *Batch) { l.free <- b }

// stop ends the making and frees the batches. None may be in use.
func (l *loader) stop() {
	l.cancel()
	l.running.Wait()
	for {
		select {
		case b := <-l.free:
			if b != nil {
				release(b.tensors)
			}
		case result := <-l.ready:
			release((<-result).tensors)
		default:
			return
		}
	}
}
