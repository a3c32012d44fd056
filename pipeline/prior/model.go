package prior

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/nn/netfile"
)

// Config describes the network of a prior and its inputs.
type Config struct {
	Backbone string `json:"backbone" yaml:"backbone"`
	Size     string `json:"size" yaml:"size"`
	Schedule string `json:"schedule" yaml:"schedule"`

	Season    bool `json:"season" yaml:"season"`       // day of year as a condition
	Yesterday bool `json:"yesterday" yaml:"yesterday"` // yesterday's mask as a condition, where it is known

	// Frequency gives the network how often each cell of the window was observed
	// in training: where on the grid of the dataset it is.
	Frequency bool `json:"frequency" yaml:"frequency"`

	// Coverage adds the mean of the latents over the sea to the input, Vicinity
	// their means over squares about each cell, and Evidence a cell's own latent
	// to the output. All are functions of the softmax of the latents, the only
	// input that Ma, Zhou and Yu give; off, the network finds them by itself.
	Coverage bool `json:"coverage" yaml:"coverage"`
	Vicinity bool `json:"vicinity" yaml:"vicinity"`
	Evidence bool `json:"evidence" yaml:"evidence"`
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Backbone: nn.BackboneUNet, Size: nn.Small, Schedule: CosineSchedule,
		Season: true, Coverage: true, Vicinity: true, Evidence: true,
	}
}

// Validate reports everything wrong with c.
func (c Config) Validate() error {
	_, schedule := ScheduleOf(c.Schedule)
	_, network := nn.Count(c.Network())
	return errors.Join(schedule, network)
}

// Network returns the network of c.
func (c Config) Network() nn.Config {
	return nn.Config{Backbone: c.Backbone, Size: c.Size, In: c.channels(), Out: 1}
}

// Model is a trained prior with frozen weights on an engine. It may be used
// from several goroutines; their runs of the engine wait for one another.
type Model struct {
	cfg      Config
	net      denoiser
	schedule Schedule
	backend  backends.Backend
	weights  []float32
	places   Frequency // empty unless the config has it
	days     Days      // nil: yesterday is known where a Place says so

	reference *Reference // nil: not calibrated

	mu       sync.Mutex // guards the fields below, and serialises the engine
	vector   *tensors.Tensor
	programs map[programKey]*engine.Program
}

// NewModel returns the prior of a config and its weights, in the order of the
// network's layout. Nothing is compiled before the first draw. Of a config
// with Frequency, the map is zero: SetFrequency and Load set it.
func NewModel(b backends.Backend, cfg Config, weights []float32) (*Model, error) {
	schedule, err := ScheduleOf(cfg.Schedule)
	if err != nil {
		return nil, fmt.Errorf("prior config: %w", err)
	}
	network, err := nn.New(cfg.Network())
	if err != nil {
		return nil, fmt.Errorf("prior config: %w", err)
	}
	if len(weights) != network.Layout().Size {
		return nil, fmt.Errorf("make prior: %d weights, a %s %s has %d", len(weights), cfg.Size, cfg.Backbone, network.Layout().Size)
	}
	return &Model{
		cfg: cfg, net: denoiser{cfg, network}, schedule: schedule, backend: b,
		weights: slices.Clone(weights), programs: map[programKey]*engine.Program{},
	}, nil
}

// Where an ONNX file keeps the Config, the Frequency and the Reference, under the
// name that files have always had for it.
const (
	configKey    = "prior.config"
	frequencyKey = "prior.frequency"
	referenceKey = "prior.yardstick"
)

// Load returns the prior that Encode wrote.
func Load(b backends.Backend, data []byte) (*Model, error) {
	f, err := netfile.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("load prior: %w", err)
	}
	text, ok := f.Metadata[configKey]
	if !ok {
		return nil, fmt.Errorf("load prior: the file has no %s in its metadata; it is another network", configKey)
	}
	var cfg Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return nil, fmt.Errorf("load prior: %s: %w", configKey, err)
	}
	if cfg.Network() != f.Config {
		return nil, fmt.Errorf("load prior: %s asks for %+v, the file holds %+v", configKey, cfg.Network(), f.Config)
	}
	m, err := NewModel(b, cfg, f.Weights)
	if err != nil {
		return nil, err
	}
	if err := m.restore(f.Metadata); err != nil {
		return nil, fmt.Errorf("load prior: %w", err)
	}
	return m, nil
}

// restore reads the map and the reference that a file keeps beside the weights.
// A file without a reference is of a prior that was never calibrated.
func (m *Model) restore(metadata map[string]string) (err error) {
	if m.cfg.Frequency {
		if m.places, err = decodeFrequency(metadata[frequencyKey]); err != nil {
			return fmt.Errorf("%s: %w", frequencyKey, err)
		}
	}
	if text, ok := metadata[referenceKey]; ok {
		if m.reference, err = decodeReference(text); err != nil {
			return fmt.Errorf("%s: %w", referenceKey, err)
		}
	}
	return nil
}

// Encode returns the prior as an ONNX file. Its input "image" has the channels
// of the config in order: 2·softmax-1, sea, sine and cosine of the season,
// yesterday's mask and whether it is known, frequency, mean of the latents over
// all sea and around the cell; "time" is ln(α/σ) from -8 to 4 as 0 to 1; and
// "answer" is the logit of "observed", without the evidence of the cell itself.
func (m *Model) Encode() ([]byte, error) {
	text, err := json.Marshal(m.cfg)
	if err != nil {
		return nil, fmt.Errorf("write prior: %w", err)
	}
	f := netfile.File{Config: m.cfg.Network(), Weights: m.weights, Metadata: map[string]string{configKey: string(text)}}
	if m.cfg.Frequency {
		if f.Metadata[frequencyKey], err = m.places.encode(); err != nil {
			return nil, fmt.Errorf("write prior: %w", err)
		}
	}
	if m.reference != nil {
		text, err := json.Marshal(m.reference)
		if err != nil {
			return nil, fmt.Errorf("write prior: %w", err)
		}
		f.Metadata[referenceKey] = string(text)
	}
	if m.cfg.Backbone == nn.BackboneViT {
		f.Height, f.Width = 64, 64 // a vit is written for one size; the weights serve any
	}
	data, err := netfile.Encode(f)
	if err != nil {
		return nil, fmt.Errorf("write prior: %w", err)
	}
	return data, nil
}

// Config returns the settings of the network.
func (m *Model) Config() Config { return m.cfg }

// Schedule returns the schedule of its walks.
func (m *Model) Schedule() Schedule { return m.schedule }

// Weights returns a copy of the weights, for a training to begin with.
func (m *Model) Weights() []float32 { return slices.Clone(m.weights) }

// Fingerprint returns the sha256 of the weights in hexadecimal.
func (m *Model) Fingerprint() string {
	h := sha256.New()
	var four [4]byte
	for _, w := range m.weights {
		binary.LittleEndian.PutUint32(four[:], math.Float32bits(w))
		h.Write(four[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Close frees the memory that the model holds in its engine. A closed model can
// be used again: it compiles again.
func (m *Model) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.programs {
		p.Close()
	}
	clear(m.programs)
	if m.vector != nil {
		m.vector.FinalizeAll()
		m.vector = nil
	}
}

// SetWeights gives the model other weights and keeps its compiled programs: for
// evaluations during training.
func (m *Model) SetWeights(weights []float32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.vector != nil {
		m.vector.FinalizeAll()
		m.vector = nil
	}
	m.weights = slices.Clone(weights)
}
