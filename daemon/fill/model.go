package fill

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"lacuna/pipeline/parts"

	"lacuna/modelstore"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
)

// Models chooses the method for a granule, and keeps the models loaded, so that a
// granule does not wait for its model. A promotion by any process takes effect
// with the next granule. Each dataset has a champion of its own, which must not
// be filling while Choose or Champion is called for that dataset; a starter is
// shared by all.
type Models struct {
	parts ModelParts
	log   *slog.Logger
	pace  *speeds

	mu       sync.Mutex // guards the rest
	device   *openDevice
	retired  []*infer.Model // starters of devices before; they may still be filling
	loaded   map[string]*champion
	starters map[string]*infer.Model // by version
	chosen   map[string]Choice       // the last choice, by dataset
}

// ModelParts are the parts that Models is made of.
type ModelParts struct {
	Store *modelstore.Store // store of the champions; nil: there is none
	// Starters may fill a dataset that has no champion.
	Starters []*modelstore.Version
	// Open opens the device that networks run on, when the first one is loaded. It
	// is asked again at times while a device stands in for another.
	Open func() (infer.Device, error)
	// StandIn opens a device in the place of one that is lost; nil: there is none.
	StandIn func(lost error) (infer.Device, error)
	Now     func() time.Time // nil: time.Now
	// Speeds is the file that keeps how fast models are here; empty: it is measured
	// anew by every process.
	Speeds string
	Log    *slog.Logger
}

type champion struct {
	watch   *modelstore.Watch
	version string
	serving *modelstore.Version
	of      string // dataset that it was trained and judged on
	model   *infer.Model
	on      *openDevice // where it was loaded
}

// NewModels returns the models of a store. It touches nothing; Choose does.
func NewModels(parts ModelParts) *Models {
	log := parts.Log.With("component", "models")
	if parts.Now == nil {
		parts.Now = time.Now
	}
	return &Models{
		parts: parts, log: log, pace: &speeds{path: parts.Speeds, log: log},
		loaded: map[string]*champion{}, starters: map[string]*infer.Model{}, chosen: map[string]Choice{},
	}
}

// Close frees the models. None may be filling.
func (m *Models) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.loaded {
		if c.model != nil {
			c.model.Close()
		}
	}
	m.retire()
	for _, model := range m.retired {
		model.Close()
	}
	clear(m.loaded)
	m.retired = nil
}

// Champion returns the model that fills a dataset now. Without one the error is
// modelstore.ErrNoChampion. A new champion that does not load is passed over:
// the one before stays in use.
func (m *Models) Champion(dataset string) (*infer.Model, error) {
	if m.parts.Store == nil {
		return nil, fmt.Errorf("%w: no model store is configured", modelstore.ErrNoChampion)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.loaded[dataset]
	if c == nil {
		c = &champion{watch: m.parts.Store.Watch()} // before loading, so that no promotion is missed
		m.loaded[dataset] = c
	} else if changed, err := c.watch.Changed(); c.model != nil && c.on == m.look() && (err != nil || !changed) {
		return c.model, nil // a store that cannot be read just now is no reason to stop
	}
	serving, err := m.parts.Store.LoadChampion(dataset)
	if err == nil && (serving.Version.ID != c.version || c.on != m.look()) {
		err = m.replace(dataset, c, serving)
	}
	if err != nil {
		if c.model == nil {
			delete(m.loaded, dataset)
			return nil, err
		}
		m.log.Warn("champion left aside", "dataset", dataset, "serving", c.version, "err", err)
	}
	return c.model, nil
}

// judgedOn reports whether the loaded champion of a dataset was trained and judged
// on that dataset, and not on another whose name its card has.
func (m *Models) judgedOn(dataset string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.loaded[dataset]
	return c != nil && c.of == dataset
}

func (m *Models) replace(dataset string, c *champion, serving modelstore.Serving) error {
	device, err := m.open()
	if err != nil {
		return err
	}
	model, err := LoadModel(serving.Version, device)
	if err != nil {
		return err
	}
	m.pace.attach(model, device)
	for _, problem := range serving.Problems {
		m.log.Warn("version passed over", "dataset", dataset, "err", problem)
	}
	if c.model != nil {
		c.model.Close()
	}
	c.model, c.version, c.serving, c.of, c.on = model, serving.Version.ID, serving.Version, serving.Version.Card.Dataset, m.device
	m.log.Info("model loaded", "dataset", dataset, "version", c.version, "members", model.Members())
	return nil
}

// Version returns the version of a model that is loaded; nil: none has that name.
func (m *Models) Version(name string) *modelstore.Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.loaded {
		if c.version == name {
			return c.serving
		}
	}
	for _, v := range m.parts.Starters {
		if v.ID == name {
			return v
		}
	}
	return nil
}

// ModelFiles are the files of a version that fill. All but the first are optional.
func ModelFiles() []string {
	return []string{modelstore.ImputerFile, modelstore.MembersFile, modelstore.ReliabilityFile, modelstore.CalibrationFile, modelstore.ScalingFile}
}

// LoadModel makes a version of the store ready to fill.
func LoadModel(v *modelstore.Version, d infer.Device) (*infer.Model, error) {
	return LoadModelFrom(v.ID, d, func(name string) ([]byte, error) {
		if !v.Has(name) {
			return nil, nil
		}
		return v.ReadFile(name)
	})
}

// LoadModelFile makes the imputer in an ONNX file ready to fill. The other files
// of a version (members.onnx, calibration.json, scaling.json, reliability.onnx)
// are optional, and are loaded from the same folder. Without a scaling every
// field is scaled by the days around it.
func LoadModelFile(path string, d infer.Device) (*infer.Model, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".onnx")
	return LoadModelFrom(name, d, func(file string) ([]byte, error) {
		if file == modelstore.ImputerFile {
			return os.ReadFile(path)
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), file))
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return data, err
	})
}

// LoadModelFrom makes the version of a name ready to fill; read returns one of its
// ModelFiles, or nil for one that it does not have.
func LoadModelFrom(name string, d infer.Device, read func(file string) ([]byte, error)) (*infer.Model, error) {
	v := infer.Version{Name: name}
	var calibration, scaling []byte
	for file, dst := range map[string]*[]byte{
		modelstore.ImputerFile: &v.Imputer, modelstore.MembersFile: &v.Members, modelstore.ReliabilityFile: &v.Reliability,
		modelstore.CalibrationFile: &calibration, modelstore.ScalingFile: &scaling,
	} {
		var err error
		if *dst, err = read(file); err != nil {
			return nil, fmt.Errorf("load model %s: %w", name, err)
		}
	}
	if v.Imputer == nil {
		return nil, fmt.Errorf("load model %s: it has no %s, so it cannot fill: train an imputer, or choose another version", name, modelstore.ImputerFile)
	}
	c, err := parts.DecodeCalibration(calibration)
	if err != nil {
		return nil, fmt.Errorf("load model %s: read %s: %w", name, modelstore.CalibrationFile, err)
	}
	v.Calibration = c.Calibration
	if c.Members != nil {
		v.MembersCalibration = *c.Members
	}
	if scaling != nil {
		s, err := parts.DecodeScaling(scaling)
		if err != nil {
			return nil, fmt.Errorf("load model %s: read %s: %w", name, modelstore.ScalingFile, err)
		}
		v.Scaling = &infer.Scaling{
			Grid: s.Grid(), Transform: field.Transform{Log10: s.Log10, Floor: s.Floor}, Scaling: s.Samples(), Levels: s.Levels,
		}
		v.Covariates = s.Covariates
		if c := s.Constants; c != nil {
			v.Scaling.Constants = &infer.Constants{LengthKM: c.LengthKM, Days: c.Days, Nugget: c.Nugget}
		}
		for _, p := range s.Query {
			if p < 0 { // not known
				p = field.NaN()
			}
			v.Query = append(v.Query, p)
		}
	}
	return infer.Load(v, d)
}
