package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"lacuna/modelstore"
	"lacuna/pipeline/field"
	"lacuna/pipeline/finetune"
	"lacuna/pipeline/infer"
)

// Models keeps the champions of a store loaded, so that a granule does not
// wait for its model. A promotion by whatever process is seen at the next
// granule. Each dataset has a model of its own, which must not be filling
// while its champion is asked for.
type Models struct {
	store  *modelstore.Store
	device infer.Device
	log    *slog.Logger

	mu     sync.Mutex // guards what is loaded
	loaded map[string]*champion
}

type champion struct {
	watch   *modelstore.Watch
	version string
	model   *infer.Model
}

// NewModels returns the models of a store, to run on a device. It touches
// nothing; Champion does.
func NewModels(store *modelstore.Store, device infer.Device, log *slog.Logger) *Models {
	return &Models{store: store, device: device, log: log.With("component", "models"), loaded: map[string]*champion{}}
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
	clear(m.loaded)
}

// Choose returns what fills a dataset now: where its method is model, its
// champion, and optimal interpolation while there is none or it does not load.
// Without models, a nil m, it is optimal interpolation too.
func (m *Models) Choose(dataset string, fill infer.Config) (infer.Config, *infer.Model) {
	if fill.Method != infer.MethodModel {
		return fill, nil
	}
	if m != nil {
		model, err := m.Champion(dataset)
		if err == nil {
			return fill, model
		}
		m.log.Warn("filling without a model", "dataset", dataset, "method", "oi", "err", err)
	}
	fill.Method = "oi"
	return fill, nil
}

// Champion returns the model that is to serve a dataset now. Without one the
// error is modelstore.ErrNoChampion. A new champion that does not load is
// passed over: the one before serves on.
func (m *Models) Champion(dataset string) (*infer.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.loaded[dataset]
	if c == nil {
		c = &champion{watch: m.store.Watch()} // before loading, so that no promotion is missed
		m.loaded[dataset] = c
	} else if changed, err := c.watch.Changed(); c.model != nil && (err != nil || !changed) {
		return c.model, nil // a store that cannot be read just now is no reason to stop
	}
	serving, err := m.store.LoadChampion(dataset)
	if err == nil && serving.Version.ID != c.version {
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

func (m *Models) replace(dataset string, c *champion, serving modelstore.Serving) error {
	model, err := LoadModel(serving.Version, m.device)
	if err != nil {
		return err
	}
	for _, problem := range serving.Problems {
		m.log.Warn("version passed over", "dataset", dataset, "err", problem)
	}
	if c.model != nil {
		c.model.Close()
	}
	c.model, c.version = model, serving.Version.ID
	m.log.Info("model loaded", "dataset", dataset, "version", c.version, "members", model.Members())
	return nil
}

// LoadModel makes a version of the store ready to fill.
func LoadModel(v *modelstore.Version, d infer.Device) (*infer.Model, error) {
	return loadModel(v.ID, d, func(name string) ([]byte, error) {
		if !v.Has(name) {
			return nil, nil
		}
		return v.ReadFile(name)
	})
}

// LoadModelFile makes the imputer in an ONNX file ready to fill. What lies
// beside it under the names of a version (members.onnx, calibration.json,
// scaling.json, reliability.onnx) is taken along where it is there. Without a
// scaling every field is scaled by the days around it.
func LoadModelFile(path string, d infer.Device) (*infer.Model, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".onnx")
	return loadModel(name, d, func(file string) ([]byte, error) {
		if file == finetune.ImputerFile {
			return os.ReadFile(path)
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), file))
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return data, err
	})
}

// loadModel reads the files of a version; read returns nil for one that is not
// there.
func loadModel(name string, d infer.Device, read func(file string) ([]byte, error)) (*infer.Model, error) {
	v := infer.Version{Name: name}
	var calibration, scaling []byte
	for file, dst := range map[string]*[]byte{
		finetune.ImputerFile: &v.Imputer, finetune.MembersFile: &v.Members, finetune.ReliabilityFile: &v.Reliability,
		finetune.CalibrationFile: &calibration, finetune.ScalingFile: &scaling,
	} {
		var err error
		if *dst, err = read(file); err != nil {
			return nil, fmt.Errorf("load model %s: %w", name, err)
		}
	}
	if v.Imputer == nil {
		return nil, fmt.Errorf("load model %s: it has no %s, so it cannot fill: train an imputer, or choose another version", name, finetune.ImputerFile)
	}
	c, err := finetune.DecodeCalibration(calibration)
	if err != nil {
		return nil, fmt.Errorf("load model %s: %w", name, err)
	}
	v.Calibration = c.Calibration
	if c.Members != nil {
		v.MembersCalibration = *c.Members
	}
	if scaling != nil {
		s, err := finetune.DecodeScaling(scaling)
		if err != nil {
			return nil, fmt.Errorf("load model %s: %w", name, err)
		}
		v.Scaling = &infer.Scaling{
			Grid: field.Grid{Lat: s.Lat, Lon: s.Lon}, Transform: field.Transform{Log10: s.Log10, Floor: s.Floor}, Scaling: s.Samples(),
		}
	}
	return infer.Load(v, d)
}
