package infer

import (
	"context"
	"slices"
	"sync"

	"lacuna/pipeline/impute"
)

// deviceNetworks runs the networks of a version on a device.
type deviceNetworks struct {
	device  Device
	imputer *impute.Model

	members     *denoiser   // nil: no members
	reliability *classifier // nil: none

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
		if n.members, err = newDenoiser(v.Members, n.imputer, d); err != nil {
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
	if n.members != nil {
		n.members.Close()
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

func (n *deviceNetworks) scene(in impute.Inputs, p impute.Prediction) (scenery, error) {
	s, err := n.members.Scenery(in, p)
	return scenery{Scenery: s}, err
}

func (n *deviceNetworks) clean(ctx context.Context, batch int, s scenery, t float32, x [][]float32) ([][]float32, error) {
	batch = n.device.together(batch)
	n.members.turnTo(shape{s.Height, s.Width, batch})
	out := make([][]float32, 0, len(x))
	for some := range slices.Chunk(x, batch) {
		answer, err := n.members.Clean(ctx, s.Scenery, batch, t, some)
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

// A denoiser takes noise off the residuals of windows in a workshop of its own,
// step by step, so that between two steps the windows of a basin can be made to
// agree.
type denoiser struct {
	*impute.Members
	shop *impute.Workshop

	mu    sync.Mutex // guards shape
	shape shape      // that is compiled
}

// A shape is what a program was compiled for.
type shape struct{ height, width, batch int }

func newDenoiser(data []byte, imputer *impute.Model, d Device) (*denoiser, error) {
	shop, err := impute.NewWorkshop(d.Backend, impute.WorkshopConfig{Batch: 1, BFloat16: d.GPU})
	if err != nil {
		return nil, err
	}
	m, err := impute.LoadMembers(data, imputer)
	if err != nil {
		shop.Close()
		return nil, err
	}
	defer m.Close()
	return &denoiser{Members: m.In(shop, imputer.In(shop)), shop: shop}, nil
}

// turnTo throws away what was compiled for another shape: it may be what fills
// the memory.
func (d *denoiser) turnTo(s shape) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shape != s {
		d.shop.Close()
		d.shape = s
	}
}

// Close frees what the denoiser holds on its device.
func (d *denoiser) Close() {
	d.Members.Close()
	d.shop.Close()
}

// A scenery is what a denoiser of residuals sees of a window beside the
// residual.
type scenery struct {
	impute.Scenery
	window impute.Inputs // kept by networks that answer by hand
}
