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
	runner *Runner
	loaded *loadedNetwork
}

// training holds the training settings recorded in the file of a network. This
// package reads nothing of them but the size of the patches.
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

// Side returns the side of the training patches in cells.
func (t training) Side() int { return t.side }

// Keys of the metadata of a model file: kind of network, design, and settings
// of the training.
const (
	kindKey     = "kind"
	designKey   = "design"
	trainingKey = "training"

	kindImputer = "imputer"
)

// NewModel returns a model from trained weights. Its file records the settings
// of the training as JSON.
func NewModel(runner *Runner, d Design, settings any, weights []float32) (*Model, error) {
	t, err := trainingOf(settings)
	if err != nil {
		return nil, err
	}
	o, err := newLoadedNetwork(d.Network(), weights)
	if err != nil {
		return nil, err
	}
	return &Model{design: d, training: t, runner: runner, loaded: o}, nil
}

// Design returns the design of the network.
func (m *Model) Design() Design { return m.design }

// Fingerprint returns the sha256 of the weights in hexadecimal.
func (m *Model) Fingerprint() string { return m.loaded.fingerprint }

// In returns the model for another runner.
func (m *Model) In(runner *Runner) *Model {
	o := *m.loaded
	o.vector = nil
	return &Model{design: m.design, training: m.training, runner: runner, loaded: &o}
}

// Weights returns the number of weights.
func (m *Model) Weights() int { return len(m.loaded.weights) }

// Vector returns the weights as a tensor that stays in the memory of the
// device until the model is closed.
func (m *Model) Vector() *tensors.Tensor { return m.loaded.tensor() }

// Close frees the model's memory on its device.
func (m *Model) Close() {
	release(m.loaded.vector)
	m.loaded.vector = nil
}

// Operations returns the multiplications and additions of a window of height x width, whose
// sides are multiples of eight; 0: they are not counted for its backbone.
func (m *Model) Operations(height, width int) float64 {
	return operations(m.loaded.network, height, width)
}

// Predict fills the gaps of windows. A window may have any size; it is padded
// with land to a size that the network takes.
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
		if err := m.design.takes(&in[i]); err != nil {
			return nil, fmt.Errorf("predict window %d: %w", i, err)
		}
	}
	out := make([]Prediction, len(in))
	for first := 0; first < len(in); {
		last := first + 1
		for last < len(in) && last-first < m.runner.cfg.Batch && in[last].Height == in[first].Height && in[last].Width == in[first].Width {
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
	batch, planes := m.runner.cfg.Batch, m.design.Planes()
	height, width := padded(in[0], m.loaded.network)
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
	answer, err := (&Network{m.runner, m.loaded}).Predict(ctx, data, times, height, width)
	if err != nil {
		return err
	}
	for i := range in {
		out[i] = m.decode(answer[i*2*cells:(i+1)*2*cells], width, &in[i])
	}
	return nil
}

// padded returns the size of in enlarged to one that the network takes.
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
			p.Mean[dst] = answer[src] + m.design.Base(in, dst)
			p.Sigma[dst] = float32(math.Exp(float64(answer[second+src]) / 2))
		}
	}
	return p
}

// Save returns the model as an ONNX file. side is the size of window that the
// file takes, which a vit has to fix; 0: any.
func (m *Model) Save(side int) ([]byte, error) {
	return save(m.loaded, kindImputer, m.design, m.settings, side)
}

func save(o *loadedNetwork, kind string, design any, settings json.RawMessage, side int) ([]byte, error) {
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

// Load reads a model that Save wrote, to be run in runner.
func Load(data []byte, runner *Runner) (*Model, error) {
	m := &Model{runner: runner}
	var err error
	if m.loaded, err = load(data, kindImputer, &m.design, &m.training); err != nil {
		return nil, err
	}
	if m.loaded.config != m.design.Network() {
		return nil, fmt.Errorf("read imputer: the network is %v, its design asks for %v", m.loaded.config, m.design.Network())
	}
	return m, nil
}

func load(data []byte, kind string, design any, t *training) (*loadedNetwork, error) {
	f, err := netfile.Decode(data)
	if err != nil {
		return nil, err
	}
	if f.Metadata[kindKey] != kind {
		return nil, fmt.Errorf("read %s: the file holds a network of kind %q instead", kind, f.Metadata[kindKey])
	}
	if err := json.Unmarshal([]byte(f.Metadata[designKey]), design); err != nil {
		return nil, fmt.Errorf("read %s: %s: %w", kind, designKey, err)
	}
	t.settings = json.RawMessage(f.Metadata[trainingKey])
	if err := t.read(); err != nil {
		return nil, fmt.Errorf("read %s: %w", kind, err)
	}
	return newLoadedNetwork(f.Config, f.Weights)
}
