package modelstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"lacuna/internal/durable"
)

// Pin is a version that garbage collection must keep.
type Pin struct {
	Time time.Time `json:"time"`
	By   string    `json:"by"`
	Why  string    `json:"why"`
}

// Pin keeps a version from garbage collection until it is unpinned.
func (s *Store) Pin(ctx context.Context, id, by, why string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return fmt.Errorf("pin %s: %w", id, err)
	}
	defer unlock()
	if _, err := s.Peek(id); err != nil {
		return fmt.Errorf("pin %s: %w", id, err)
	}
	data, err := json.Marshal(Pin{Time: s.now().UTC(), By: by, Why: why})
	if err != nil {
		return fmt.Errorf("pin %s: %w", id, err)
	}
	if err := durable.WriteFile(s.pinPath(id), append(data, '\n'), fileMode); err != nil {
		return fmt.Errorf("pin %s: %w", id, s.explain(err))
	}
	return nil
}

// Unpin removes a pin. It is no error if the version was not pinned.
func (s *Store) Unpin(ctx context.Context, id string) error {
	if !validID(id) {
		return fmt.Errorf("unpin: %w: %q is not the name of a version", ErrNotFound, id)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return fmt.Errorf("unpin %s: %w", id, err)
	}
	defer unlock()
	if err := os.Remove(s.pinPath(id)); err != nil && !isMissing(err) {
		return fmt.Errorf("unpin %s: %w", id, s.explain(err))
	}
	return nil
}

// Pins returns the pinned versions. A pin that cannot be read still pins.
func (s *Store) Pins() (map[string]Pin, error) {
	list, err := os.ReadDir(filepath.Join(s.dir, "pins"))
	if err != nil && !isMissing(err) {
		return nil, fmt.Errorf("read pins: %w", err)
	}
	pins := map[string]Pin{}
	for _, e := range list {
		if !validID(e.Name()) {
			continue
		}
		var p Pin
		data, err := readAtMost(s.pinPath(e.Name()), maxCardBytes)
		if err = errors.Join(err, json.Unmarshal(data, &p)); err != nil {
			p = Pin{Why: "the pin itself cannot be read: " + err.Error()}
		}
		pins[e.Name()] = p
	}
	return pins, nil
}

func (s *Store) pinPath(id string) string { return filepath.Join(s.dir, "pins", id) }
