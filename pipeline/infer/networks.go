package infer

import (
	"context"
	"slices"
	"sync"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/impute"
)

// deviceNetworks runs the networks of a version on a device.
type deviceNetworks struct {
	device  Device
	imputer *impute.Model

	residual    *residualNetwork // nil: no members
	reliability *classifier      // nil: none

	mu    sync.Mutex // guards the workshop
	batch int
	shop  *impute.Workshop
	model *impute.Model // the imputer in the workshop
}

func newDeviceNetworks(v Version, d Device) (*deviceNetworks, error) {
	n := &deviceNetworks{device: d}
	shop, err := n.workshop(1)
	if err != nil {
		return nil, err
	}
	n.shop, n.batch = shop, 1
	if n.imputer, err = impute.Load(v.Imputer, shop); err != nil {
		shop.Close()
		return nil, err
	}
	n.model = n.imputer
	if v.Members != nil {
		if n.residual, err = newResidualNetwork(v.Members, n.imputer, d); err != nil {
			n.Close()
			return nil, err
		}
	}
	if v.Reliability != nil {
		if n.reliability, err = newClassifier(v.Reliability, d); err != nil {
			n.Close()
			return nil, err
		}
	}
	return n, nil
}

func (n *deviceNetworks) workshop(batch int) (*impute.Workshop, error) {
	return impute.NewWorkshop(n.device.Backend, impute.WorkshopConfig{Batch: batch, BFloat16: n.device.GPU})
}

// Close frees what the networks hold on the device.
func (n *deviceNetworks) Close() {
	n.model.Close()
	if n.residual != nil {
		n.residual.Close()
	}
	if n.reliability != nil {
		n.reliability.Close()
	}
	n.shop.Close()
}

// resize returns the imputer in a workshop of the batch. The programs of the
// last batch are thrown away: they may be what fills the memory.
func (n *deviceNetworks) resize(batch int) (*impute.Model, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.batch == batch {
		return n.model, nil
	}
	shop, err := n.workshop(batch)
	if err != nil {
		return nil, err
	}
	n.model.Close()
	n.shop.Close()
	n.shop, n.batch, n.model = shop, batch, n.imputer.In(shop)
	return n.model, nil
}

func (n *deviceNetworks) look(ctx context.Context, batch int, windows []impute.Inputs) ([]impute.Prediction, error) {
	model, err := n.resize(n.device.together(batch))
	if err != nil {
		return nil, err
	}
	return model.Predict(ctx, windows)
}

func (n *deviceNetworks) scene(in impute.Inputs, p impute.Prediction) scenery {
	return n.residual.scene(in, p)
}

func (n *deviceNetworks) clean(ctx context.Context, batch int, s scenery, t float32, x [][]float32) ([][]float32, error) {
	out := make([][]float32, 0, len(x))
	for some := range slices.Chunk(x, n.device.together(batch)) {
		answer, err := n.residual.clean(ctx, n.device.together(batch), s, t, some)
		if err != nil {
			return nil, err
		}
		out = append(out, answer...)
	}
	return out, nil
}

// together returns how many windows of a batch go through a program at a time.
// On a processor they go one by one: it gains nothing from batches, and one
// program for all of them keeps results the same to the last bit. On a GPU
// another batch may round otherwise.
func (d Device) together(batch int) int {
	if d.GPU {
		return batch
	}
	return 1
}

// A classifier estimates P(query | context) in a workshop of its own.
type classifier struct {
	*impute.Reliability
	shop *impute.Workshop
}

func newClassifier(data []byte, d Device) (*classifier, error) {
	shop, err := impute.NewWorkshop(d.Backend, impute.DefaultWorkshop())
	if err != nil {
		return nil, err
	}
	r, err := impute.LoadReliability(data, shop)
	if err != nil {
		shop.Close()
		return nil, err
	}
	return &classifier{Reliability: r, shop: shop}, nil
}

// Close frees what the classifier holds on its device.
func (c *classifier) Close() {
	c.Reliability.Close()
	c.shop.Close()
}

// A scenery is what a denoiser of residuals sees beside the residual.
type scenery struct {
	window impute.Inputs
	// The planes may be larger than the window, which lies in their upper left
	// corner: networks take multiples of a few cells only.
	height, width int
	planes        *tensors.Tensor // [1, planes, height, width]
}

func (s scenery) release() {
	if s.planes != nil {
		s.planes.FinalizeAll()
	}
}
