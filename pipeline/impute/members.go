package impute

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
)

// Members draws fields that could be the truth: the prediction of a Model plus
// residuals. Its network learned to take noise off residuals,
//
//	r = (u - mean) / sigma
//
// seeing everything that the model sees, what the model said, and the noised
// residual wherever it is known. So unlike the model it is a denoiser of what
// is hidden, and following its flow from noise gives a residual that could be.
type Members struct {
	model *Model
	training
	pair    pairing
	shop    *Workshop
	operand *operand
}

// pairing is recorded with a members network: it is of use with one model only.
type pairing struct {
	Design  Design `json:"design"`  // of the members network; its extras are those of the model
	Imputer string `json:"imputer"` // fingerprint of the model
}

const kindMembers = "members"

// Planes that the network of members sees beyond those of the model: mean,
// sigma, the noised residual and where it is known.
const memberPlanes = 4

// MembersNetwork returns the network for members of a model.
func MembersNetwork(model, own Design) nn.Config {
	return nn.Config{Backbone: own.Backbone, Size: own.Size, In: model.Planes() + memberPlanes, Out: 1}
}

// NewMembers returns the members of a model, of weights that were trained with
// the given settings, which their file records as JSON.
func NewMembers(model *Model, d Design, settings any, weights []float32) (*Members, error) {
	t, err := trainingOf(settings)
	if err != nil {
		return nil, err
	}
	o, err := newOperand(MembersNetwork(model.design, d), weights)
	if err != nil {
		return nil, err
	}
	return &Members{
		model: model, training: t, pair: pairing{Design: d, Imputer: model.Fingerprint()},
		shop: model.shop, operand: o,
	}, nil
}

// Fingerprint returns the sha256 of the weights in hexadecimal.
func (m *Members) Fingerprint() string { return m.operand.fingerprint }

// Close frees what the members hold on their device; the model stays.
func (m *Members) Close() {
	release(m.operand.vector)
	m.operand.vector = nil
}

// Save returns the network as an ONNX file; side as for Model.Save.
func (m *Members) Save(side int) ([]byte, error) {
	return save(m.operand, kindMembers, m.pair, m.settings, side)
}

// LoadMembers reads a network that Save wrote. It refuses a model that it was
// not trained with.
func LoadMembers(data []byte, model *Model) (*Members, error) {
	m := &Members{model: model, shop: model.shop}
	var err error
	if m.operand, err = load(data, kindMembers, &m.pair, &m.training); err != nil {
		return nil, err
	}
	if m.pair.Imputer != model.Fingerprint() {
		return nil, fmt.Errorf("read members: they belong to imputer %.12s, not to %.12s", m.pair.Imputer, model.Fingerprint())
	}
	if want := MembersNetwork(model.design, m.pair.Design); m.operand.config != want {
		return nil, fmt.Errorf("read members: the network is %v, its design asks for %v", m.operand.config, want)
	}
	return m, nil
}

// A Target is a window with what its model said of it.
type Target struct {
	Inputs
	Prediction
	// Stream is where the noise of the members comes from: that of member m is
	// Stream.Sub(m), in whatever company it is drawn.
	Stream noise.Stream
}

// Draw returns members of each target, by target and member. Visible cells
// keep their value. All targets must have the same size.
func (m *Members) Draw(ctx context.Context, targets []Target, members int, ode ODE) ([][][]float32, error) {
	out := make([][][]float32, len(targets))
	for i := range out {
		out[i] = make([][]float32, members)
		if targets[i].Height != targets[0].Height || targets[i].Width != targets[0].Width {
			return nil, fmt.Errorf("draw members: target %d is %d x %d, the first %d x %d", i,
				targets[i].Height, targets[i].Width, targets[0].Height, targets[0].Width)
		}
		if err := targets[i].Validate(); err != nil {
			return nil, fmt.Errorf("draw members of target %d: %w", i, err)
		}
	}
	for first := 0; first < len(targets)*members; first += m.shop.cfg.Batch {
		end := min(first+m.shop.cfg.Batch, len(targets)*members)
		g := m.gather(targets, members, span{first, end})
		err := ode.Run(ctx, g.clean, g.x, g.streams)
		release(g.scenery)
		if err != nil {
			return nil, fmt.Errorf("draw members: %w", err)
		}
		for i := first; i < end; i++ {
			out[i/members][i%members] = targets[i/members].add(g.x[i-first], g.width)
		}
	}
	return out, nil
}

// add returns the field of a residual that is laid out in rows of a width.
func (t Target) add(residual []float32, width int) []float32 {
	out := make([]float32, t.Cells())
	for i := range out {
		out[i] = t.Mean[i]
		if !t.Visible[i] && t.Sea[i] {
			out[i] += t.Sigma[i] * residual[i/t.Width*width+i%t.Width]
		}
	}
	return out
}

type span struct{ first, end int }

// A gathering is members that are drawn together: residuals and what does not
// change while noise is taken off them.
type gathering struct {
	m             *Members
	height, width int
	x             [][]float32
	streams       []noise.Stream
	scenery       *tensors.Tensor // [batch, planes of the model + 3, height, width]
}

func (m *Members) gather(targets []Target, members int, s span) *gathering {
	g := &gathering{m: m}
	g.height, g.width = padded(targets[0].Inputs, m.operand.network)
	batch, cells, still := m.shop.cfg.Batch, g.height*g.width, m.stillPlanes()
	data := make([]float32, batch*still*cells)
	own := make([]float32, targets[0].Cells())
	for i := s.first; i < s.end; i++ {
		t := &targets[i/members]
		picture := Image{data[(i-s.first)*still*cells : (i-s.first+1)*still*cells], g.height, g.width}
		m.encode(picture, &t.Inputs, t.Prediction)
		x := make([]float32, cells)
		stream := t.Stream.Sub(uint64(i % members))
		stream.Normals(own, 0)
		for k, eps := range own {
			if !t.Visible[k] && t.Sea[k] {
				x[k/t.Width*g.width+k%t.Width] = eps
			}
		}
		g.x, g.streams = append(g.x, x), append(g.streams, stream)
	}
	g.scenery = tensors.FromFlatDataAndDimensions(data, batch, still, g.height, g.width)
	return g
}

// clean is the Cleaner of a gathering.
func (g *gathering) clean(ctx context.Context, t float32, x [][]float32) ([][]float32, error) {
	batch, cells := g.m.shop.cfg.Batch, g.height*g.width
	data := make([]float32, batch*cells)
	for i := range x {
		copy(data[i*cells:], x[i])
	}
	answer, err := g.m.step(ctx, g.scenery, residuals{data, batch, g.height, g.width}, t)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(x))
	for i := range out {
		out[i] = answer[i*cells : (i+1)*cells]
	}
	return out, nil
}
