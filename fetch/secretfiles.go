package fetch

import (
	"errors"
	"fmt"
)

// CheckSecretFiles refuses files that others may read or change, by the key of
// the configuration or the flag that names each. An empty path is none; a file
// that is missing is for whoever reads it to report.
func CheckSecretFiles(files map[string]string) error {
	var errs []error
	for key, path := range files {
		if path == "" {
			continue
		}
		if err := CheckSecretFile(path); errors.Is(err, ErrExposed) {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}
