package impute

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/nn/netfile"
)

// A Model predicts fields. Its methods may be called at the same time.
type Model struct {
	design Design
	training
	shop    *Workshop
	operand *operand
}

// training is how a network was trained, as its file records it. Nothing here
// looks at more of it than the size of the patches.
type training struct {
	settings json.RawMessage
	side     int
}

func trainingOf(settings any) (t training, err error) {
	if t.settings, err = json.Marshal(settings); err != nil {
		return t, fmt.Errorf("settings of the training: %w", err)
	}
	return t, t.read()
}

func (t *training) read() error {
	var patches struct {
		Side int `json:"side"`
	}
	if err := json.Unmarshal(t.settings, &patches); err != nil {
		return fmt.Errorf("settings of the training: %w", err)
	}
	t.side = patches.Side
	return nil
}

// Side returns the size of the patches that the network has learned from, in
// cells.
func (t training) Side() int { return t.side }

// The metadata of a model file: what the network is for, how it is fed, and
// how it was trained.
const (
	kindKey     = "kind"
	designKey   = "design"
	trainingKey = "training"

	kindImputer = "imputer"
)

// NewModel returns the model of weights that were trained with the given
// settings, which its file records as JSON.
func NewModel(shop *Workshop, d Design, settings any, weights []float32) (*Model, error) {
	t, err := trainingOf(settings)
	if err != nil {
		return nil, err
	}
	o, err := newOperand(d.Network(), weights)
	if err != nil {
		return nil, err
	}
	return &Model{design: d, training: t, shop: shop, operand: o}, nil
}

// Design returns what the network is and sees.
func (m *Model) Design() Design { return m.design }

// Fingerprint returns the sha256 of the weights in hexadecimal.
func (m *Model) Fingerprint() string { return m.operand.fingerprint }

// In returns the model for another workshop.
func (m *Model) In(shop *Workshop) *Model {
	o := *m.operand
	o.vector = nil
	return &Model{design: m.design, training: m.training, shop: shop, operand: &o}
}

// Weights returns the number of weights.
func (m *Model) Weights() int { return len(m.operand.weights) }

// Vector returns the weights as a tensor that stays in the memory of the
// device until the model is closed.
func (m *Model) Vector() *tensors.Tensor { return m.operand.tensor() }

// Close frees what the model holds in its workshop's device.
func (m *Model) Close() {
	release(m.operand.vector)
	m.operand.vector = nil
}

// Predict fills the gaps of windows. A window may have any size; what it lacks
// to a multiple of what the network takes counts as land.
func (m *Model) Predict(ctx context.Context, in []Inputs) ([]Prediction, error) {
	out, err := m.Denoise(ctx, in, nil)
	if err != nil {
		return nil, err
	}
	for i := range out {
		compose(out[i], in[i])
	}
	return out, nil
}

// Denoise returns predictions of the windows whose visible cells are at the
// given levels; nil: all clean. The mean is that of the anomaly.
func (m *Model) Denoise(ctx context.Context, in []Inputs, levels []Level) ([]Prediction, error) {
	for i := range in {
		if err := in[i].Validate(); err != nil {
			return nil, fmt.Errorf("predict window %d: %w", i, err)
		}
	}
	out := make([]Prediction, len(in))
	for first := 0; first < len(in); {
		last := first + 1
		for last < len(in) && last-first < m.shop.cfg.Batch && in[last].Height == in[first].Height && in[last].Width == in[first].Width {
			last++
		}
		var at []Level
		if levels != nil {
			at = levels[first:last]
		}
		if err := m.chunk(ctx, out[first:last], in[first:last], at); err != nil {
			return nil, fmt.Errorf("predict %d windows of %d x %d: %w", last-first, in[first].Height, in[first].Width, err)
		}
		first = last
	}
	return out, nil
}

// chunk predicts windows of one size, not more than a batch.
func (m *Model) chunk(ctx context.Context, out []Prediction, in []Inputs, levels []Level) error {
	batch, planes := m.shop.cfg.Batch, m.design.Planes()
	height, width := padded(in[0], m.operand.network)
	cells := height * width
	data, times := make([]float32, batch*planes*cells), make([]float32, batch)
	for i := range in {
		var l Level
		if levels != nil {
			l = levels[i]
		}
		m.design.Encode(Image{data[i*planes*cells : (i+1)*planes*cells], height, width}, &in[i], l)
		times[i] = l.T
	}
	answer, err := (&Network{m.shop, m.operand}).Predict(ctx, data, times, height, width)
	if err != nil {
		return err
	}
	for i := range in {
		out[i] = m.decode(answer[i*2*cells:(i+1)*2*cells], width, &in[i])
	}
	return nil
}

// padded returns the size of in enlarged to what the network takes.
func padded(in Inputs, n nn.Network) (height, width int) {
	up := func(size int) int { return (size + n.Multiple() - 1) / n.Multiple() * n.Multiple() }
	return up(in.Height), up(in.Width)
}

// decode reads the answer for a window from two planes of a given width.
func (m *Model) decode(answer []float32, width int, in *Inputs) Prediction {
	n := in.Cells()
	p := Prediction{Mean: make([]float32, n), Sigma: make([]float32, n)}
	second := len(answer) / 2
	for row := range in.Height {
		for col := range in.Width {
			dst, src := row*in.Width+col, row*width+col
			unit := m.design.Unit(in, dst)
			p.Mean[dst] = unit*answer[src] + m.design.Base(in, dst)
			p.Sigma[dst] = unit * float32(math.Exp(float64(answer[second+src])/2))
		}
	}
	return p
}

// Save returns the model as an ONNX file. side is the size of window that the
// file takes, which a vit needs; 0: any.
func (m *Model) Save(side int) ([]byte, error) {
	return save(m.operand, kindImputer, m.design, m.settings, side)
}

func save(o *operand, kind string, design any, settings json.RawMessage, side int) ([]byte, error) {
	meta := map[string]string{kindKey: kind}
	for key, v := range map[string]any{designKey: design, trainingKey: settings} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("write %s: %s: %w", kind, key, err)
		}
		meta[key] = string(text)
	}
	if o.config.Backbone != nn.BackboneViT {
		side = 0 // any size
	}
	data, err := netfile.Encode(netfile.File{Config: o.config, Weights: o.weights, Height: side, Width: side, Metadata: meta})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", kind, err)
	}
	return data, nil
}

// Load reads a model that Save wrote, to be run in shop.
func Load(data []byte, shop *Workshop) (*Model, error) {
	m := &Model{shop: shop}
	var err error
	if m.operand, err = load(data, kindImputer, &m.design, &m.training); err != nil {
		return nil, err
	}
	if m.operand.config != m.design.Network() {
		return nil, fmt.Errorf("read imputer: the network is %v, its design asks for %v", m.operand.config, m.design.Network())
	}
	return m, nil
}

func load(data []byte, kind string, design any, t *training) (*operand, error) {
	f, err := netfile.Decode(data)
	if err != nil {
		return nil, err
	}
	if f.Metadata[kindKey] != kind {
		return nil, fmt.Errorf("read %s: the file holds a network of kind %q", kind, f.Metadata[kindKey])
	}
	if err := json.Unmarshal([]byte(f.Metadata[designKey]), design); err != nil {
		return nil, fmt.Errorf("read %s: %s: %w", kind, designKey, err)
	}
	t.settings = json.RawMessage(f.Metadata[trainingKey])
	if err := t.read(); err != nil {
		return nil, fmt.Errorf("read %s: %w", kind, err)
	}
	return newOperand(f.Config, f.Weights)
}
