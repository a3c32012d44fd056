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
	reliability *classifier // nil: the version has none

	mu     sync.Mutex // guards runner and model
	batch  int
	runner *impute.Runner
	model  *impute.Model // the imputer in the runner
}

func newDeviceNetworks(v Version, d Device) (*deviceNetworks, error) {
	n := &deviceNetworks{device: d}
	runner, err := n.newRunner(1)
	if err != nil {
		return nil, err
	}
	n.runner, n.batch = runner, 1
	if n.imputer, err = impute.Load(v.Imputer, runner); err != nil {
		runner.Close()
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

func (n *deviceNetworks) newRunner(batch int) (*impute.Runner, error) {
	return impute.NewRunner(n.device.Backend, impute.RunnerConfig{Batch: batch, BFloat16: n.device.GPU})
}

// Close frees the networks' memory on the device.
func (n *deviceNetworks) Close() {
	n.model.Close()
	if n.members != nil {
		n.members.Close()
	}
	if n.reliability != nil {
		n.reliability.Close()
	}
	n.runner.Close()
}

// resize returns the imputer in a runner for the batch. The programs of the
// last batch are closed first: they may be the ones that fill the memory.
func (n *deviceNetworks) resize(batch int) (*impute.Model, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.batch == batch {
		return n.model, nil
	}
	runner, err := n.newRunner(batch)
	if err != nil {
		return nil, err
	}
	n.model.Close()
	n.runner.Close()
	n.runner, n.batch, n.model = runner, batch, n.imputer.In(runner)
	return n.model, nil
}

func (n *deviceNetworks) predict(ctx context.Context, batch int, windows []impute.Inputs) ([]impute.Prediction, error) {
	model, err := n.resize(n.device.programBatch(batch))
	if err != nil {
		return nil, err
	}
	return model.Predict(ctx, windows)
}

func (n *deviceNetworks) scene(in impute.Inputs, p impute.Prediction) (conditioning, error) {
	s, err := n.members.Conditioning(in, p)
	return conditioning{Conditioning: s}, err
}

func (n *deviceNetworks) clean(ctx context.Context, batch int, s conditioning, t float32, x [][]float32) ([][]float32, error) {
	batch = n.device.programBatch(batch)
	n.members.resize(shape{s.Height, s.Width, batch})
	out := make([][]float32, 0, len(x))
	for some := range slices.Chunk(x, batch) {
		answer, err := n.members.Clean(ctx, s.Conditioning, batch, t, some)
		if err != nil {
			return nil, err
		}
		out = append(out, answer...)
	}
	return out, nil
}

func (n *deviceNetworks) flow(batch int, s conditioning, told func()) (impute.Flow, bool) {
	if !n.device.GPU {
		return impute.Flow{}, false // its memory is that of the program
	}
	n.members.resize(shape{s.Height, s.Width, batch})
	return impute.Flow{Members: n.members.Members, Scene: s.Conditioning, Batch: batch, Told: told}, true
}

// programBatch returns how many windows of a batch go through a program at a
// time. On a processor they go one by one: it gains nothing from batches, and
// one program for all keeps results the same to the last bit. On a GPU another
// batch may round differently.
func (d Device) programBatch(batch int) int {
	if d.GPU {
		return batch
	}
	return 1
}

// A classifier estimates P(query | context) in a runner of its own.
type classifier struct {
	*impute.Reliability
	runner *impute.Runner
}

func newClassifier(data []byte, d Device) (*classifier, error) {
	runner, err := impute.NewRunner(d.Backend, impute.DefaultRunner())
	if err != nil {
		return nil, err
	}
	r, err := impute.LoadReliability(data, runner)
	if err != nil {
		runner.Close()
		return nil, err
	}
	return &classifier{Reliability: r, runner: runner}, nil
}

// Close frees the classifier's memory on its device.
func (c *classifier) Close() {
	c.Reliability.Close()
	c.runner.Close()
}

// A denoiser removes noise from the residuals of windows in a runner of its
// own, step by step, so that the windows of a basin can be blended between two
// steps.
type denoiser struct {
	*impute.Members
	runner *impute.Runner

	mu    sync.Mutex // guards shape
	shape shape      // shape of the compiled program
}

// A shape is the input size of a compiled program.
type shape struct{ height, width, batch int }

func newDenoiser(data []byte, imputer *impute.Model, d Device) (*denoiser, error) {
	runner, err := impute.NewRunner(d.Backend, impute.RunnerConfig{Batch: 1, BFloat16: d.GPU})
	if err != nil {
		return nil, err
	}
	m, err := impute.LoadMembers(data, imputer)
	if err != nil {
		runner.Close()
		return nil, err
	}
	defer m.Close()
	return &denoiser{Members: m.In(runner, imputer.In(runner)), runner: runner}, nil
}

// resize closes the programs of another shape: they may be the ones that fill
// the memory.
func (d *denoiser) resize(s shape) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shape != s {
		d.runner.Close()
		d.shape = s
	}
}

// Close frees the denoiser's memory on its device.
func (d *denoiser) Close() {
	d.Members.Close()
	d.runner.Close()
}

// A conditioning is the denoiser's input for a window apart from the residual.
type conditioning struct {
	impute.Conditioning
	window impute.Inputs // used by the fake networks of tests
}
