package train

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
)

// Data parallelism: every device has the whole state and runs the same step on
// its share of the batch. They meet once, where gradients are averaged; from
// there on all compute the same update, so the copies never part.

// compile compiles the step for the devices of the config.
func (s *Step) compile(build func(*Graph) []*Node) (*engine.Program, error) {
	if s.cfg.Devices == 0 {
		return engine.Compile(s.backend, "training step", build)
	}
	return engine.CompileParallel(s.backend, "training step", s.cfg.Devices, build)
}

// agree returns the mean loss and the mean gradients of all devices. A loss
// that is itself a mean over a number that varies from sample to sample, such as
// hidden pixels, becomes a mean of means.
func (s *Step) agree(loss *Node, gradients []*Node) (*Node, []*Node) {
	if s.cfg.Devices == 0 {
		return loss, gradients
	}
	all := loss.Graph().Distributed().AllReduce(append([]*Node{loss}, gradients...), backends.ReduceOpSum)
	for i, n := range all {
		all[i] = DivScalar(n, float64(s.cfg.Devices))
	}
	return all[0], all[1:]
}

// share returns the shapes of one device's share of a batch.
func (s *Step) share(batch []*tensors.Tensor) ([]shapes.Shape, error) {
	out := make([]shapes.Shape, len(batch))
	for i, t := range batch {
		out[i] = t.Shape().Clone()
		if s.cfg.Devices == 0 {
			continue
		}
		if out[i].Rank() == 0 || out[i].Dimensions[0]%s.cfg.Devices != 0 {
			return nil, fmt.Errorf("batch of shape %v does not divide by %d devices", out[i], s.cfg.Devices)
		}
		out[i].Dimensions[0] /= s.cfg.Devices
	}
	return out, nil
}

// inputs returns the inputs of the program: the rates of the step, the
// state and the batch, once a device; and those of them that must be released
// afterwards.
func (s *Step) inputs(batch []*tensors.Tensor) (inputs, temporary []*tensors.Tensor, err error) {
	rates := func() *tensors.Tensor {
		t := newRates(s.cfg, s.done).tensor()
		temporary = append(temporary, t)
		return t
	}
	if s.cfg.Devices == 0 {
		inputs = append([]*tensors.Tensor{rates()}, s.state...)
		return append(inputs, batch...), temporary, nil
	}
	each := len(s.state) / s.cfg.Devices
	for d := range s.cfg.Devices {
		inputs = append(inputs, rates())
		inputs = append(inputs, s.state[d*each:(d+1)*each]...)
		for _, t := range batch {
			part, err := cutBatch(t, d, s.cfg.Devices)
			if err != nil {
				release(temporary)
				return nil, nil, err
			}
			temporary = append(temporary, part)
			inputs = append(inputs, part)
		}
	}
	return inputs, temporary, nil
}

// outputs parts the outputs of the program into the tensor of loss and gradient
// norm, once a device, and the new state.
func (s *Step) outputs(out []*tensors.Tensor) (metrics, state []*tensors.Tensor) {
	each := len(out) / max(s.cfg.Devices, 1)
	for i, t := range out {
		if i%each == 0 {
			metrics = append(metrics, t)
		} else {
			state = append(state, t)
		}
	}
	return metrics, state
}

// cutBatch returns part d of n of a float32 tensor, along its first axis.
func cutBatch(t *tensors.Tensor, d, n int) (*tensors.Tensor, error) {
	flat, err := tensors.CopyFlatData[float32](t)
	if err != nil {
		return nil, fmt.Errorf("share the batch: %w", err)
	}
	dims := append([]int(nil), t.Shape().Dimensions...)
	dims[0] /= n
	size := len(flat) / n
	return tensors.FromFlatDataAndDimensions(flat[d*size:(d+1)*size], dims...), nil
}
