package infer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomlx/gomlx/backends"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
)

// Version is a version of a model as it is stored.
type Version struct {
	Name        string
	Imputer     []byte // ONNX
	Members     []byte // ONNX; nil: it cannot draw members
	Reliability []byte // ONNX; nil: P(query) is not known

	Calibration        impute.Calibration        // of the imputer's sigma
	MembersCalibration impute.MembersCalibration // of the members' deviations from the mean

	// Scaling is that of the training days. Nil: every field is scaled by what
	// is known around it, which serves a network far from where it was trained.
	Scaling *Scaling
	// Query is P(query) of every cell of the scaling's grid, NaN where it is
	// not known; nil: nowhere. A cell that was never query was never learned.
	Query []float32
}

// Scaling is how a model's anomalies are made, and for which grid.
type Scaling struct {
	Grid      field.Grid
	Transform field.Transform
	samples.Scaling
}

// Device is what the networks of a model run on.
type Device struct {
	Backend backends.Backend
	GPU     bool // larger windows and batches, in bfloat16
}

// ErrOtherGrid marks a field that a model was not made for.
var ErrOtherGrid = errors.New("the model is of another grid or transform")

// A Model is a version that is ready to fill. Its methods may be called at the
// same time; fields are filled one after the other, for a field takes the
// whole device.
type Model struct {
	version  Version
	design   impute.Design
	weights  int
	networks networks
	members  bool
	// reliability returns P(query | context) of a window; nil: not known.
	reliability func(ctx context.Context, in impute.Inputs) ([]float32, error)
	gpu         bool
	side        int // of the windows that a vit takes; 0: any
	close       func()

	turn sync.Mutex // held while a field is filled
	busy *busyTime  // of that field

	mu    sync.Mutex // guards what was learned of the device
	limit size       // what fitted after something did not; zero: everything did
	speed Speed
}

// networks is what a Model asks of its device. Batch is how many windows or
// members may go through at a time.
type networks interface {
	look(ctx context.Context, batch int, windows []impute.Inputs) ([]impute.Prediction, error)
	// scene keeps what does not change while members are drawn.
	scene(in impute.Inputs, p impute.Prediction) (scenery, error)
	clean(ctx context.Context, batch int, s scenery, t float32, x [][]float32) ([][]float32, error)
}

// Load makes a version ready on a device.
func Load(v Version, d Device) (*Model, error) {
	n, err := newDeviceNetworks(v, d)
	if err != nil {
		return nil, fmt.Errorf("load model %s: %w", v.Name, err)
	}
	m := &Model{
		version: v, design: n.imputer.Design(), weights: n.imputer.Weights(), networks: n, members: n.members != nil,
		gpu: d.GPU, close: n.Close,
	}
	if n.reliability != nil {
		m.reliability = n.reliability.Probability
	}
	if m.design.Backbone == nn.BackboneViT {
		m.side = n.imputer.Side()
	}
	if s := v.Scaling; s != nil {
		if len(s.Mean) != s.Grid.Len() || v.Query != nil && len(v.Query) != s.Grid.Len() || !(s.Std > 0) {
			n.Close()
			return nil, fmt.Errorf("load model %s: its mean map has %d cells, its grid %d, and its standard deviation is %g", v.Name, len(s.Mean), s.Grid.Len(), s.Std)
		}
	}
	return m, nil
}

// Close frees what the model holds. It must not be filling.
func (m *Model) Close() {
	if m.close != nil {
		m.close()
	}
}

// Name returns the name of the version.
func (m *Model) Name() string { return m.version.Name }

// Weights returns the number of weights of the imputer.
func (m *Model) Weights() int { return m.weights }

// Members reports whether the model can draw members.
func (m *Model) Members() bool { return m.members }

// Calibrated reports whether the imputer's sigma is corrected.
func (m *Model) Calibrated() bool { return len(m.version.Calibration.Factors) > 0 }

// Speed returns what the device was measured to need, zero where nothing was
// filled yet.
func (m *Model) Speed() Speed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.speed
}

// fits says in a sentence why the model cannot fill a scene.
func (m *Model) fits(scene Scene) error {
	grid, tr, s := scene.Frames[0].Grid, scene.Transform, m.version.Scaling
	switch given := scene.Scaling; {
	case given != nil && (len(given.Mean) != grid.Len() || !(given.Std > 0)):
		return fmt.Errorf("the scaling has %d cells and the standard deviation %g, the field is on %v", len(given.Mean), given.Std, grid)
	case given != nil:
		return nil
	case s == nil:
		return nil
	case !grid.Same(s.Grid):
		return fmt.Errorf("%w: model %s was trained on %v, the field is on %v: train a model for this grid, or fill with the method oi",
			ErrOtherGrid, m.version.Name, s.Grid, grid)
	case s.Transform.Log10 != tr.Log10:
		return fmt.Errorf("%w: model %s was trained in the space %v, the field is in %v: read the field as the training did",
			ErrOtherGrid, m.version.Name, s.Transform, tr)
	}
	return nil
}

// A size is how much goes through a network at once.
type size struct {
	window, batch int
	cells         int // of all windows of a batch; 0: any number
}

// Sizes where a config is silent. On a processor a window of 512 keeps all
// cores busy and takes some hundred megabytes; batches gain nothing there. A
// million cells keep a GPU busy, and the attention of more takes more memory
// than it has: batches are of small windows only.
const (
	windowCPU, batchCPU           = 512, 1
	windowGPU, batchGPU, cellsGPU = 1024, 16, 1 << 20
)

// size returns what to try for a config.
func (m *Model) size(cfg Network) size {
	s := size{window: orDefault(cfg.WindowCells, windowCPU), batch: orDefault(cfg.Batch, batchCPU)}
	if m.gpu {
		s = size{window: orDefault(cfg.WindowCells, windowGPU), batch: orDefault(cfg.Batch, batchGPU)}
		if cfg.Batch == 0 {
			s.cells = cellsGPU
		}
	}
	if m.side > 0 {
		s.window = m.side
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limit.batch > 0 {
		s.window, s.batch = min(s.window, m.limit.window), min(s.batch, m.limit.batch)
	}
	return s
}

// shrink returns what to try after s did not fit, and remembers it. It reports
// false where there is nothing smaller.
func (m *Model) shrink(s size) (size, bool) {
	switch {
	case s.batch > 1:
		s.batch /= 2
	case s.window/2 >= leastWindow && m.side == 0:
		s.window /= 2
	default:
		return s, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = s
	return s, true
}

// measured notes how long a part of a field of so many cells took.
func (m *Model) measured(part *time.Duration, took time.Duration, cells int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	per := time.Duration(float64(took) * 1e6 / float64(max(cells, 1)))
	if *part == 0 {
		*part = per
		return
	}
	*part = (*part + per) / 2 // the last fields count most: other work comes and goes
}
