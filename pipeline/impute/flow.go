package impute

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/noise"
)

// A Flow draws residuals of one window as ODE.Run does with Members.Clean, but they stay
// on the device from step to step: noise goes there, samples come back, and nothing in
// between.
type Flow struct {
	Members *Members
	Scene   Conditioning
	Batch   int    // residuals that go through the network at a time, whatever their number
	Told    func() // called after each step
}

// Run turns standard normal x, residuals of the window, into samples in place.
func (f Flow) Run(ctx context.Context, o ODE, x [][]float32, streams []noise.Stream) error {
	return o.run(x, streams, func(from int) error {
		if err := f.down(ctx, o, x, from); err != nil {
			return fmt.Errorf("follow the flow: %w", err)
		}
		return nil
	})
}

// flowing is a batch of residuals on the device.
type flowing struct {
	x      [][]float32
	noised *tensors.Tensor
	before *tensors.Tensor // the clean residuals that were expected a step ago; nil: none yet
}

// down follows the flow from a step to the field.
func (f Flow) down(ctx context.Context, o ODE, x [][]float32, from int) error {
	var batches []*flowing
	defer func() {
		for _, b := range batches {
			release(b.noised, b.before)
		}
	}()
	for some := range slices.Chunk(x, f.Batch) {
		batches = append(batches, &flowing{x: some, noised: f.Scene.residuals(f.Batch, some).tensor()})
	}
	for s := from; s > 0; s-- {
		for _, b := range batches {
			if err := f.step(ctx, b, o.time(s), o.weights(s, from)); err != nil {
				return err
			}
		}
		if f.Told != nil {
			f.Told()
		}
	}
	for _, b := range batches {
		end, err := tensors.CopyFlatData[float32](b.noised)
		if err != nil {
			return err
		}
		for i := range b.x {
			f.Scene.crop(b.x[i], end, i)
		}
	}
	return nil
}

// step makes one step of a batch.
func (f Flow) step(ctx context.Context, b *flowing, t float32, w [stepWeights]float32) error {
	at := tensors.FromFlatDataAndDimensions(slices.Repeat([]float32{t}, f.Batch), f.Batch)
	weights := tensors.FromFlatDataAndDimensions(w[:], stepWeights)
	defer release(at, weights)
	before := b.before
	if before == nil {
		before = b.noised // the first step gives it no weight
	}
	m := f.Members
	out, err := m.runner.apply(ctx, "flow", m.loaded, flowBody(m.loaded.network), f.Scene.planes, b.noised, before, at, weights)
	if err != nil {
		return err
	}
	release(b.noised, b.before)
	b.noised, b.before = out[0], out[1]
	return nil
}
