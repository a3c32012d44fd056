package impute

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

// Reliability estimates for each cell how likely it would have been a query
// cell in training, given what is visible: P(query | context). It is a
// heuristic for how well the imputer was taught to fill a cell, after section
// 4.4 of the paper, and no uncertainty.
type Reliability struct {
	config  TrainConfig
	shop    *Workshop
	operand *operand
}

const kindReliability = "reliability"

// Planes of the classifier: where the context is, and the sea.
const reliabilityPlanes = 2

func reliabilityNetwork(d Design) nn.Config {
	return nn.Config{Backbone: d.Backbone, Size: d.Size, In: reliabilityPlanes, Out: 1}
}

// ReliabilityConfig returns the settings of the classifier for patches like
// cfg's: a tiny network that learns fast, in a third of the steps and batches of
// at least as many cells as 32 windows of 64×64 have. With a third of
// that it says less than the share of cells that are query does.
func ReliabilityConfig(cfg TrainConfig) TrainConfig {
	const cells = 32 * 64 * 64
	cfg.Design = Design{Backbone: cfg.Design.Backbone, Size: nn.Tiny}
	cfg.Steps = max(cfg.Steps/3, 1)
	cfg.Batch = max(cfg.Batch, cells/(cfg.Side*cfg.Side))
	cfg.LearningRate, cfg.WarmupSteps, cfg.EMADecay = 1e-2, min(cfg.WarmupSteps, cfg.Steps/10), min(cfg.EMADecay, 0.99)
	cfg.Clean, cfg.Beta, cfg.SpreadOnly = 1, 0, false
	return cfg
}

// TrainReliability trains the classifier on the partitions of source: over the
// sea, is a cell query or not? It ends as Train does.
func TrainReliability(ctx context.Context, shop *Workshop, m Material, source Source, cfg TrainConfig, hooks train.Hooks) (*Reliability, train.Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, train.Report{}, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(reliabilityNetwork(cfg.Design))
	if err != nil {
		return nil, train.Report{}, err
	}
	t := cfg.task(network)
	t.Kind, t.Loss, t.Fill = kindReliability, reliabilityLoss(network), maskLessons{newLessons(m, source, cfg)}.fill
	t.Dims = [][]int{{cfg.Batch, reliabilityPlanes, cfg.Side, cfg.Side}, {cfg.Batch}, {cfg.Batch, 2, cfg.Side, cfg.Side}}
	weights, report, err := shop.train(ctx, cfg, t, hooks)
	if err != nil {
		return nil, report, fmt.Errorf("train reliability: %w", err)
	}
	o, err := newOperand(reliabilityNetwork(cfg.Design), weights)
	return &Reliability{config: cfg, shop: shop, operand: o}, report, err
}

// maskLessons makes lessons of masks alone.
type maskLessons struct{ *lessons }

func (l maskLessons) fill(ctx context.Context, b *train.Batch, item int, n uint64) error {
	t, err := l.teach(ctx, b, n)
	if err != nil {
		return err
	}
	x, y := l.cfg.planes(b, imageTensor, item), l.cfg.planes(b, targetTensor, item)
	encodeMasks(x, &t.in)
	target, weight := y.plane(valueOfTarget), y.plane(weightOfTarget)
	for i := range target {
		target[i], weight[i] = number(t.Query[i]), number(t.in.Sea[i])
	}
	b.Buffers[timeTensor][item] = 0
	x.flip(t.flipNS, t.flipWE)
	y.flip(t.flipNS, t.flipWE)
	return nil
}

func encodeMasks(m image, in *Inputs) {
	clear(m.data)
	mask, sea := m.plane(0), m.plane(1)
	for i := range in.Sea {
		at := i/in.Width*m.width + i%in.Width
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
	data := make([]float32, reliabilityPlanes*height*width)
	encodeMasks(image{data, height, width}, &in)
	x := tensors.FromFlatDataAndDimensions(data, 1, reliabilityPlanes, height, width)
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
	return save(r.operand, kindReliability, r.config.Design, r.config, side)
}

// LoadReliability reads a network that Save wrote.
func LoadReliability(data []byte, shop *Workshop) (*Reliability, error) {
	r := &Reliability{shop: shop}
	var design Design
	var err error
	if r.operand, err = load(data, kindReliability, &design, &r.config); err != nil {
		return nil, err
	}
	if r.operand.config != reliabilityNetwork(design) {
		return nil, fmt.Errorf("read reliability: the network is %v, its design asks for %v", r.operand.config, reliabilityNetwork(design))
	}
	return r, nil
}
