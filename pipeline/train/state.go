package train

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// stateKinds is how many numbers the state holds for each weight: the weight,
// its average and two moments.
const stateKinds = 4

// State is everything a training run needs to go on: flat vectors in the order
// of the network's layout. It does not depend on the engine.
type State struct {
	Step     int // steps done
	Weights  []float32
	EMA      []float32 // moving average of Weights, for inference
	Mean     []float32 // mean of the gradient, Adam's first moment
	Variance []float32 // variance of the gradient, Adam's second moment
}

func (st *State) vectors() [stateKinds]*[]float32 {
	return [stateKinds]*[]float32{&st.Weights, &st.EMA, &st.Mean, &st.Variance}
}

// State copies the state out of the engine.
func (s *Step) State() (*State, error) {
	if s.state == nil {
		return nil, errNoWeights
	}
	st := &State{Step: s.done}
	parts := s.parts()
	for k, v := range st.vectors() {
		for i := range parts {
			flat, err := tensors.CopyFlatData[float32](s.state[k*len(parts)+i])
			if err != nil {
				return nil, fmt.Errorf("read training state: %w", err)
			}
			*v = append(*v, flat...)
		}
	}
	return st, nil
}

// Restore sets the state, which must be of this network.
func (s *Step) Restore(st *State) error {
	for _, v := range st.vectors() {
		if len(*v) != s.layout.Size {
			return fmt.Errorf("restore training state: %d numbers, the network has %d", len(*v), s.layout.Size)
		}
	}
	var state []*tensors.Tensor
	for range max(s.cfg.Devices, 1) {
		for _, v := range st.vectors() {
			at := 0
			for _, p := range s.parts() {
				n := p.size()
				state = append(state, tensors.FromFlatDataAndDimensions(slices.Clone((*v)[at:at+n]), n))
				at += n
			}
		}
	}
	release(s.state)
	s.state, s.done = state, st.Step
	return nil
}
