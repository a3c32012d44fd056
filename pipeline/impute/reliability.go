package impute

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
)

// Reliability estimates for each cell how likely it would have been a query
// cell in training, given what is visible: P(query | context). It is a
// heuristic for how well the imputer was taught to fill a cell, after section
// 4.4 of the paper, and no uncertainty.
type Reliability struct {
	design Design
	training
	shop    *Workshop
	operand *operand
}

const kindReliability = "reliability"

// ReliabilityPlanes is how many planes the classifier sees: where the context is,
// and the sea.
const ReliabilityPlanes = 2

// ReliabilityNetwork returns the network of the classifier of a design.
func ReliabilityNetwork(d Design) nn.Config {
	return nn.Config{Backbone: d.Backbone, Size: d.Size, In: ReliabilityPlanes, Out: 1}
}

// NewReliability returns the classifier of weights that were trained with the
// given settings, which its file records as JSON.
func NewReliability(shop *Workshop, d Design, settings any, weights []float32) (*Reliability, error) {
	t, err := trainingOf(settings)
	if err != nil {
		return nil, err
	}
	o, err := newOperand(ReliabilityNetwork(d), weights)
	if err != nil {
		return nil, err
	}
	return &Reliability{design: d, training: t, shop: shop, operand: o}, nil
}

// EncodeMasks draws what the classifier sees of a window.
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

// Probability returns P(query | context) of each cell of a window whose
// context is what is visible, 0 on land. Values are not looked at.
func (r *Reliability) Probability(ctx context.Context, in Inputs) ([]float32, error) {
	height, width := padded(in, r.operand.network)
	data := make([]float32, ReliabilityPlanes*height*width)
	EncodeMasks(Image{data, height, width}, &in)
	x := tensors.FromFlatDataAndDimensions(data, 1, ReliabilityPlanes, height, width)
	t := tensors.FromFlatDataAndDimensions([]float32{0}, 1)
	defer release(x, t)
	logits, err := r.shop.run(ctx, "reliability", r.operand, plainBody(r.operand.network), x, t)
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
func (r *Reliability) Fingerprint() string { return r.operand.fingerprint }

// Close frees what the network holds on its device.
func (r *Reliability) Close() {
	release(r.operand.vector)
	r.operand.vector = nil
}

// Save returns the network as an ONNX file; side as for Model.Save.
func (r *Reliability) Save(side int) ([]byte, error) {
	return save(r.operand, kindReliability, r.design, r.settings, side)
}

// LoadReliability reads a network that Save wrote.
func LoadReliability(data []byte, shop *Workshop) (*Reliability, error) {
	r := &Reliability{shop: shop}
	var err error
	if r.operand, err = load(data, kindReliability, &r.design, &r.training); err != nil {
		return nil, err
	}
	if r.operand.config != ReliabilityNetwork(r.design) {
		return nil, fmt.Errorf("read reliability: the network is %v, its design asks for %v", r.operand.config, ReliabilityNetwork(r.design))
	}
	return r, nil
}
