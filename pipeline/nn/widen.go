package nn

import "fmt"

// Widen returns the weights of a network for another one that differs by the planes of
// its input only: plane i of to was plane from[i] of the old one, and is new where that is
// -1. New planes have no weight, so that the answers are the same whatever they hold.
func Widen(weights []float32, old, to Network, from []int) ([]float32, error) {
	before, after := old.Layout(), to.Layout()
	if len(weights) != before.Size || len(before.Params) != len(after.Params) {
		return nil, fmt.Errorf("widen a network: %d weights of %d, and %d tensors of %d: the networks differ by more than their input", len(weights), before.Size, len(before.Params), len(after.Params))
	}
	out := make([]float32, after.Size)
	for i, p := range after.Params {
		was := before.Params[i]
		src, dst := weights[was.Offset:was.Offset+was.Size()], out[p.Offset:p.Offset+p.Size()]
		if p.Name == was.Name && p.Size() == was.Size() {
			copy(dst, src)
			continue
		}
		if p.Name != was.Name || p.Name != liftKernel || p.Dims[1]%len(from) != 0 {
			return nil, fmt.Errorf("widen a network: %s of %v and %s of %v: the networks differ by more than their input", was.Name, was.Dims, p.Name, p.Dims)
		}
		// [out, planes x what belongs to a plane]: pixels of a token, rows and columns of a filter.
		filters := p.Dims[0]
		wide, narrow := len(dst)/filters, len(src)/filters
		plane := wide / len(from)
		for f := range filters {
			for k, at := range from {
				if at >= 0 {
					copy(dst[f*wide+k*plane:f*wide+(k+1)*plane], src[f*narrow+at*plane:f*narrow+(at+1)*plane])
				}
			}
		}
	}
	return out, nil
}

// liftKernel is the name of the weights that the planes of an image come to first.
const liftKernel = "lift.kernel"
