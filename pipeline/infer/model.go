package infer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/gomlx/gomlx/backends"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
)

// Version is a stored version of a model.
type Version struct {
	Name        string
	Imputer     []byte // ONNX
	Members     []byte // ONNX; nil: the version cannot draw members
	Reliability []byte // ONNX; nil: the version has no P(query | context)

	Calibration        impute.Calibration        // factors on the imputer's sigma
	MembersCalibration impute.MembersCalibration // scales the members' deviations from the mean

	// Scaling is that of the training days. Nil: every field is scaled by its
	// own window of days, which suits a network far from where it was trained.
	Scaling *Scaling
	// Query is P(query) of every cell of the scaling's grid, NaN where it is
	// not known; nil: not known anywhere. A cell that was never query was never
	// learned.
	Query []float32
	// Covariates are the constants of those that the networks see, on the scaling's grid.
	Covariates []samples.Channel
}

// Scaling turns values into a model's anomalies, on one grid.
type Scaling struct {
	Grid      field.Grid
	Transform field.Transform
	samples.Scaling
	Constants *Constants // of the analysis that the networks depart from; nil: the defaults
	// Levels are changes of the level of the data; the mean map is at the level after the
	// last of them, and fields from before are brought there and back.
	Levels []samples.Level
}

// Device is the engine that runs the networks of a model.
type Device struct {
	Backend backends.Backend
	GPU     bool // use larger windows and batches, in bfloat16
	// Away says why the device stands in for the GPU that was asked for; empty: it
	// does not.
	Away string
	// Try computes a little, which a device that is gone does not; nil: it cannot go.
	Try func() error
}

// ErrOtherGrid marks a field that a model was not made for.
var ErrOtherGrid = errors.New("the model was made for another grid or transform")

// A Model is a version that is ready to fill. Its methods may be called at the
// same time; networks fill one field after the other, for a field takes the
// whole device.
type Model struct {
	version  Version
	design   impute.Design
	weights  int
	channels []samples.Channel // in the order of the design
	networks networks
	members  bool
	// reliability returns P(query | context) of a window; nil: not known.
	reliability func(ctx context.Context, in impute.Inputs) ([]float32, error)
	gpu         bool
	side        int // side of the windows that a vit takes; 0: any
	close       func()

	turn sync.Mutex // held while networks fill a field
	busy *busyTime  // time of the networks on that field

	mu     sync.Mutex     // guards the rest
	users  int            // who keep the networks
	closed bool           // they are freed when nobody does
	limit  size           // size that fitted after a larger one ran out of memory; zero: no limit found
	speeds map[int]Speed  // by the cells of a field
	trials map[int]trials // likewise
	keep   func(cells int, s Speed)
}

// networks are the networks of a Model on its device. Batch is how many windows
// or members may go through at a time.
type networks interface {
	predict(ctx context.Context, batch int, windows []impute.Inputs) ([]impute.Prediction, error)
	// scene prepares the inputs that stay the same while members are drawn.
	scene(in impute.Inputs, p impute.Prediction) (conditioning, error)
	clean(ctx context.Context, batch int, s conditioning, t float32, x [][]float32) ([][]float32, error)
	// flow draws members of a window without coming back between two steps, where the
	// device gains by it; false: it does not.
	flow(batch int, s conditioning, told func()) (impute.Flow, bool)
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
	m.channels = samples.ChannelsOf(m.design.Channels(), v.Covariates)
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

// Use keeps the networks until release is called, also if the model is closed
// meanwhile. It must not be closed yet.
func (m *Model) Use() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		m.users--
		last := m.closed && m.users == 0
		m.mu.Unlock()
		if last {
			m.free()
		}
	})
}

// Close frees the networks, or has the last one of those who use them do so. No field
// may be in work but theirs.
func (m *Model) Close() {
	m.mu.Lock()
	used := m.users > 0
	m.closed = true
	m.mu.Unlock()
	if !used {
		m.free()
	}
}

func (m *Model) free() {
	if m.close != nil {
		m.close()
	}
}

// OnGPU reports whether the networks run on a GPU.
func (m *Model) OnGPU() bool { return m.gpu }

// Name returns the name of the version.
func (m *Model) Name() string { return m.version.Name }

// Weights returns the number of weights of the imputer.
func (m *Model) Weights() int { return m.weights }

// Members reports whether the model can draw members.
func (m *Model) Members() bool { return m.members }

// Calibrated reports whether the imputer's sigma is corrected.
func (m *Model) Calibrated() bool { return len(m.version.Calibration.Factors) > 0 }

// Remember begins with speeds that were measured before, by the cells of a
// field, and has keep called with those that are measured from now on. It is
// called before the first field.
func (m *Model) Remember(speeds map[int]Speed, keep func(cells int, s Speed)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.speeds, m.keep = maps.Clone(speeds), keep
}

// Speed returns the measured speed of the device with fields of so many cells,
// zero before the first.
func (m *Model) Speed(cells int) Speed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.speeds[cells]
}

// fits returns an error if the model cannot fill the scene.
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

// queryFits reports whether the P(query) map of the version is one of a grid, also
// where the days are scaled by others than those of the training: the places that
// were never to be reconstructed are the same.
func (m *Model) queryFits(grid field.Grid) bool {
	own := m.version.Scaling
	return m.version.Query != nil && own != nil && grid.Same(own.Grid)
}

// Reliable reports whether the model knows the reliability of the cells of a grid.
func (m *Model) Reliable(grid field.Grid) bool { return m.reliability != nil || m.queryFits(grid) }

// A size is the amount of data that goes through a network at once.
type size struct {
	window, batch int
	cells         int // limit on the cells of a batch; 0: none
}

// Default sizes. On a processor a window of 512 keeps all
// cores busy and takes some hundred megabytes; batches gain nothing there. A
// million cells keep a GPU busy: batches are of small windows only.
const (
	windowCPU, batchCPU           = 512, 1
	windowGPU, batchGPU, cellsGPU = 1024, 16, 1 << 20
)

// size returns the size to try first for a config.
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

// shrink returns the next smaller size after s did not fit, and remembers it.
// It returns false if there is none.
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

// perMillion returns a time of a field as that of a million cells.
func perMillion(took time.Duration, cells int) time.Duration {
	return time.Duration(float64(took) * 1e6 / float64(max(cells, 1)))
}

// measured updates the speed with fields of so many cells. got are times of one
// field; a part that is zero was not measured.
func (m *Model) measured(cells int, got Speed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	update := func(was, took time.Duration) time.Duration {
		per := perMillion(took, cells)
		if was == 0 || took == 0 {
			return was + per
		}
		return (was + per) / 2 // recent fields count most: the load of the machine changes
	}
	s := m.speeds[cells]
	s = Speed{Analysis: update(s.Analysis, got.Analysis), Look: update(s.Look, got.Look), Step: update(s.Step, got.Step)}
	if m.speeds == nil {
		m.speeds = map[int]Speed{}
	}
	m.speeds[cells] = s
	if m.keep != nil {
		m.keep(cells, s)
	}
}
