package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"lacuna/internal/durable"
)

// Load reads a JSON file into v and reports whether it exists.
func Load(path string, v any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fmt.Errorf("%s is damaged, remove it: %w", path, err)
	}
	return true, nil
}

// Save replaces a file with v as JSON, for good. Its folder must exist.
func Save(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(path, data, 0o644); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}

// Remove removes a file; one that is gone already is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
