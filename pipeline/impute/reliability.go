package impute

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
)

// Reliability estimates P(query | context): the probability that a cell would
// have been a query cell in training, given the visible ones. It is a heuristic
// for how well the imputer was taught to fill a cell, after section 4.4 of Ma,
// Zhou and Yu, and no uncertainty.
type Reliability struct {
	design Design
	training
	runner *Runner
	loaded *loadedNetwork
}

const kindReliability = "reliability"

// ReliabilityPlanes is the number of input planes of the classifier: the mask
// of the context and the sea.
const ReliabilityPlanes = 2

// ReliabilityNetwork returns the network of the classifier of a design.
func ReliabilityNetwork(d Design) nn.Config {
	return nn.Config{Backbone: d.Backbone, Size: d.Size, In: ReliabilityPlanes, Out: 1}
}

// NewReliability returns a classifier from trained weights. Its file records
// the settings of the training as JSON.
func NewReliability(runner *Runner, d Design, settings any, weights []float32) (*Reliability, error) {
	t, err := trainingOf(settings)
	if err != nil {
		return nil, err
	}
	o, err := newLoadedNetwork(ReliabilityNetwork(d), weights)
	if err != nil {
		return nil, err
	}
	return &Reliability{design: d, training: t, runner: runner, loaded: o}, nil
}

// EncodeMasks writes the classifier's inputs for a window.
func EncodeMasks(m Image, in *Inputs) {
	clear(m.Data)
	mask, sea := m.Plane(0), m.Plane(1)
	for i := range in.Sea {
		at := i/in.Width*m.Width + i%in.Width
		mask[at], sea[at] = number(in.Visible[i]), number(in.Sea[i])
	}
}

func number(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

// Probability returns P(query | context) of each cell of a window, with the
// visible cells as context; 0 on land. Values are not read.
func (r *Reliability) Probability(ctx context.Context, in Inputs) ([]float32, error) {
	height, width := padded(in, r.loaded.network)
	data := make([]float32, ReliabilityPlanes*height*width)
	EncodeMasks(Image{data, height, width}, &in)
	x := tensors.FromFlatDataAndDimensions(data, 1, ReliabilityPlanes, height, width)
	t := tensors.FromFlatDataAndDimensions([]float32{0}, 1)
	defer release(x, t)
	logits, err := r.runner.run(ctx, "reliability", r.loaded, plainBody(r.loaded.network), x, t)
	if err != nil {
		return nil, fmt.Errorf("estimate reliability: %w", err)
	}
	out := make([]float32, in.Cells())
	for i, sea := range in.Sea {
		if sea {
			out[i] = float32(1 / (1 + math.Exp(-float64(logits[i/in.Width*width+i%in.Width]))))
		}
	}
	return out, nil
}

// Fingerprint returns the sha256 of the weights in hexadecimal.
func (r *Reliability) Fingerprint() string { return r.loaded.fingerprint }

// Close frees the network's memory on its device.
func (r *Reliability) Close() {
	release(r.loaded.vector)
	r.loaded.vector = nil
}

// Save returns the network as an ONNX file; side as for Model.Save.
func (r *Reliability) Save(side int) ([]byte, error) {
	return save(r.loaded, kindReliability, r.design, r.settings, side)
}

// LoadReliability reads a network that Save wrote.
func LoadReliability(data []byte, runner *Runner) (*Reliability, error) {
	r := &Reliability{runner: runner}
	var err error
	if r.loaded, err = load(data, kindReliability, &r.design, &r.training); err != nil {
		return nil, err
	}
	if r.loaded.config != ReliabilityNetwork(r.design) {
		return nil, fmt.Errorf("read reliability: the network is %v, its design asks for %v", r.loaded.config, ReliabilityNetwork(r.design))
	}
	return r, nil
}
