package impute

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
)

// Members draws equally likely fields: the prediction of a Model plus
// residuals. Its network learned to remove noise from residuals,
//
//	r = (u - mean) / sigma
//
// seeing the inputs of the model, its prediction, and the noised residual
// wherever it is known. So unlike the model it is a denoiser of the hidden
// cells, and following its probability flow from noise draws a residual.
type Members struct {
	model *Model
	training
	pair   pairing
	runner *Runner
	loaded *loadedNetwork
}

// pairing is recorded with a members network, which works with one model only.
type pairing struct {
	Design  Design `json:"design"`  // design of the members network; its extras are those of the model
	Imputer string `json:"imputer"` // fingerprint of the model
}

const kindMembers = "members"

// Input planes of the members network beyond those of the model: mean, sigma,
// the noised residual and its mask.
const memberPlanes = 4

// MembersNetwork returns the network for members of a model.
func MembersNetwork(model, own Design) nn.Config {
	return nn.Config{Backbone: own.Backbone, Size: own.Size, In: model.Planes() + memberPlanes, Out: 1}
}

// NewMembers returns the members of a model from trained weights. Their file
// records the settings of the training as JSON.
func NewMembers(model *Model, d Design, settings any, weights []float32) (*Members, error) {
	t, err := trainingOf(settings)
	if err != nil {
		return nil, err
	}
	o, err := newLoadedNetwork(MembersNetwork(model.design, d), weights)
	if err != nil {
		return nil, err
	}
	o.network = nn.Pooled(o.network, memberPlaces)
	return &Members{
		model: model, training: t, pair: pairing{Design: d, Imputer: model.Fingerprint()},
		runner: model.runner, loaded: o,
	}, nil
}

// memberPlaces is how many places the network of members attends to in a large
// window: all of a window of 256x256 cells. It is asked some forty times for each member,
// while the imputer, which makes the mean, is asked once and attends to all.
const memberPlaces = 1024

// Fingerprint returns the sha256 of the weights in hexadecimal.
func (m *Members) Fingerprint() string { return m.loaded.fingerprint }

// Close frees the members' memory on their device; the model stays.
func (m *Members) Close() {
	release(m.loaded.vector)
	m.loaded.vector = nil
}

// Save returns the network as an ONNX file; side as for Model.Save.
func (m *Members) Save(side int) ([]byte, error) {
	return save(m.loaded, kindMembers, m.pair, m.settings, side)
}

// LoadMembers reads a network that Save wrote. It refuses a model that it was
// not trained with.
func LoadMembers(data []byte, model *Model) (*Members, error) {
	m := &Members{model: model, runner: model.runner}
	var err error
	if m.loaded, err = load(data, kindMembers, &m.pair, &m.training); err != nil {
		return nil, err
	}
	if m.pair.Imputer != model.Fingerprint() {
		return nil, fmt.Errorf("read members: they belong to imputer %.12s, not to %.12s", m.pair.Imputer, model.Fingerprint())
	}
	if want := MembersNetwork(model.design, m.pair.Design); m.loaded.config != want {
		return nil, fmt.Errorf("read members: the network is %v, its design asks for %v", m.loaded.config, want)
	}
	m.loaded.network = nn.Pooled(m.loaded.network, memberPlaces)
	return m, nil
}

// A Target is a window with its model's prediction.
type Target struct {
	Inputs
	Prediction
	// Stream gives the noise of the members: that of member m is Stream.Sub(m),
	// whichever members are drawn together.
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
	for first := 0; first < len(targets)*members; first += m.runner.cfg.Batch {
		end := min(first+m.runner.cfg.Batch, len(targets)*members)
		g := m.gather(targets, members, span{first, end})
		err := ode.Run(ctx, g.clean, g.x, g.streams)
		release(g.conditioning)
		if err != nil {
			return nil, fmt.Errorf("draw members: %w", err)
		}
		for i := first; i < end; i++ {
			out[i/members][i%members] = targets[i/members].add(g.x[i-first], g.width)
		}
	}
	return out, nil
}

// add returns the field of a residual stored in rows of the given width.
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

// A drawBatch holds members that are drawn together: their residuals, and the
// conditioning, which stays the same from step to step.
type drawBatch struct {
	m             *Members
	height, width int
	x             [][]float32
	streams       []noise.Stream
	conditioning  *tensors.Tensor // [batch, planes of the model + 3, height, width]
}

func (m *Members) gather(targets []Target, members int, s span) *drawBatch {
	g := &drawBatch{m: m}
	g.height, g.width = padded(targets[0].Inputs, m.loaded.network)
	batch, cells, still := m.runner.cfg.Batch, g.height*g.width, m.stillPlanes()
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
	g.conditioning = tensors.FromFlatDataAndDimensions(data, batch, still, g.height, g.width)
	return g
}

func (g *drawBatch) clean(ctx context.Context, t float32, x [][]float32) ([][]float32, error) {
	batch, cells := g.m.runner.cfg.Batch, g.height*g.width
	data := make([]float32, batch*cells)
	for i := range x {
		copy(data[i*cells:], x[i])
	}
	answer, err := g.m.step(ctx, g.conditioning, residuals{data, batch, g.height, g.width}, t)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(x))
	for i := range out {
		out[i] = answer[i*cells : (i+1)*cells]
	}
	return out, nil
}
