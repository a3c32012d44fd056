// Package statefile keeps small values in JSON files of the state folder, so
// that a part of the daemon remembers them over a stop or a crash. A file is
// there whole or not at all. The package knows nothing of their content.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/renameio/v2"
)

// Load reads a file into v and reports whether it was there.
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

// Save writes v to a file, whose folder must exist.
func Save(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, data, 0o644)
}
