package fill

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"lacuna/daemon/state"
	"lacuna/pipeline/infer"
)

// speeds are the measured speeds of models, kept in a file, so that the first
// granule after a start has the tier that this machine has time for.
type speeds struct {
	path string // empty: they are not kept
	log  *slog.Logger

	mu   sync.Mutex // guards all
	all  []modelSpeed
	read bool // the file was read
}

// modelSpeed are the speeds of a model on a device, by the cells of a field.
type modelSpeed struct {
	Model  string              `json:"model"`
	Device string              `json:"device"`
	Cells  map[int]infer.Speed `json:"cells"`
}

// keptSpeeds is how many models are kept, those that were measured last.
const keptSpeeds = 16

// attach has a model begin with the speeds that are kept, and keeps what it
// measures.
func (s *speeds) attach(m *infer.Model, d infer.Device) {
	if s.path == "" {
		return
	}
	device := d.Backend.Description()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read {
		// A damaged file counts as none: what is measured from now on replaces it.
		if _, err := state.Load(s.path, &s.all); err != nil {
			s.log.Warn("speeds of models are measured anew", "err", err)
			s.all = nil
		}
		s.read = true
	}
	known := map[int]infer.Speed{}
	if i := s.find(m.Name(), device); i >= 0 {
		known = maps.Clone(s.all[i].Cells)
	}
	m.Remember(known, func(cells int, speed infer.Speed) {
		if err := s.keep(m.Name(), device, cells, speed); err != nil {
			s.log.Warn("speed of a model not kept", "model", m.Name(), "err", err)
		}
	})
}

func (s *speeds) find(model, device string) int {
	return slices.IndexFunc(s.all, func(k modelSpeed) bool { return k.Model == model && k.Device == device })
}

// keep replaces the speed of a model with fields of a size; the model becomes the
// last one.
func (s *speeds) keep(model, device string, cells int, speed infer.Speed) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := modelSpeed{Model: model, Device: device, Cells: map[int]infer.Speed{}}
	if i := s.find(model, device); i >= 0 {
		k = s.all[i]
		s.all = slices.Delete(s.all, i, i+1)
	}
	k.Cells[cells] = speed
	s.all = append(s.all, k)
	s.all = s.all[max(len(s.all)-keptSpeeds, 0):]
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return fmt.Errorf("keep the speed: %w", err)
	}
	return state.Save(s.path, s.all)
}
