package impute

import (
	"context"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
)

// A Network maps images and times to a mean and a log-variance, for a method
// that is fed otherwise than a Model.
type Network struct {
	shop    *Workshop
	operand *operand
}

// NewNetwork returns a network with its weights, to be run in shop.
func NewNetwork(shop *Workshop, cfg nn.Config, weights []float32) (*Network, error) {
	o, err := newOperand(cfg, weights)
	if err != nil {
		return nil, err
	}
	return &Network{shop: shop, operand: o}, nil
}

// Padded returns the size of in enlarged to what the network takes.
func (n *Network) Padded(in Inputs) (height, width int) { return padded(in, n.operand.network) }

// Predict returns mean and log-variance, [batch, 2, height, width], for the
// images of a batch at their times.
func (n *Network) Predict(ctx context.Context, images, times []float32, height, width int) ([]float32, error) {
	x := tensors.FromFlatDataAndDimensions(images, len(times), len(images)/(len(times)*height*width), height, width)
	t := tensors.FromFlatDataAndDimensions(times, len(times))
	defer release(x, t)
	return n.shop.run(ctx, "prediction", n.operand, predictionBody(n.operand.network), x, t)
}

// Close frees what the network holds on its device.
func (n *Network) Close() {
	release(n.operand.vector)
	n.operand.vector = nil
}
