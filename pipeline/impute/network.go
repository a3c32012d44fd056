package impute

import (
	"context"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
)

// A Network maps images and times to a mean and a log-variance, for methods
// whose inputs are not those of a Model.
type Network struct {
	runner *Runner
	loaded *loadedNetwork
}

// NewNetwork returns a network with its weights, to be run in runner.
func NewNetwork(runner *Runner, cfg nn.Config, weights []float32) (*Network, error) {
	o, err := newLoadedNetwork(cfg, weights)
	if err != nil {
		return nil, err
	}
	return &Network{runner: runner, loaded: o}, nil
}

// Padded returns the size of in enlarged to one that the network takes.
func (n *Network) Padded(in Inputs) (height, width int) { return padded(in, n.loaded.network) }

// Predict returns mean and log-variance, [batch, 2, height, width], for the
// images of a batch at their times.
func (n *Network) Predict(ctx context.Context, images, times []float32, height, width int) ([]float32, error) {
	x := tensors.FromFlatDataAndDimensions(images, len(times), len(images)/(len(times)*height*width), height, width)
	t := tensors.FromFlatDataAndDimensions(times, len(times))
	defer release(x, t)
	return n.runner.run(ctx, "prediction", n.loaded, predictionBody(n.loaded.network), x, t)
}

// Close frees the network's memory on its device.
func (n *Network) Close() {
	release(n.loaded.vector)
	n.loaded.vector = nil
}

// operations returns those of a network for one image; 0: they are not counted.
func operations(n nn.Network, height, width int) float64 {
	if u, ok := n.(*nn.UNet); ok {
		return u.Operations(height, width)
	}
	return 0
}
